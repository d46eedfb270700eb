// Lists that are loaded as a whole: sorted, turned over, chosen from and exported without asking the server again.

import { Problem, call } from './api.js';
import { announce, h, readdress } from './dom.js';
import { count } from './forms.js';
import { badge, openDialog } from './parts.js';
import { table } from './blocks.js';

/**
 * @template T
 * @typedef {object} Column
 * @property {string} heading
 * @property {(row: T) => import('./dom.js').Child | import('./dom.js').Child[]} cell
 * @property {(row: T) => string | number | undefined} [value] what it is exported as and sorted by; what has none comes last
 * @property {(row: T) => number} [order] what it is sorted by instead
 * @property {string} [style] the class of its cells
 * @property {(row: T) => string} [group] the heading above rows with the same, while the list is sorted by this column
 */

/**
 * @template T
 * @typedef {object} ListOptions
 * @property {string} caption
 * @property {string} noun of one row
 * @property {string} empty
 * @property {Column<T>[]} columns
 * @property {T[]} rows
 * @property {boolean} [partial] whether the server has more rows than these
 * @property {string} [sort] the heading that it is sorted by at first
 * @property {string} [file] the name of the file that an export makes, without its ending; none: there is no export
 * @property {(row: T) => string} [rowName] what a row is called; with it rows can be chosen
 * @property {[string, (rows: T[]) => void][]} [several] what can be done with the chosen rows
 * @property {boolean} [dense] whether each row is one line that opens the link in it
 */

/** Rows that are shown on one page. */
const ROWS = 100;
/** Rows of one answer of the server. */
const ANSWER = 1000;
/** The order of texts. One for all comparisons: making it takes longer than comparing. */
const COLLATOR = new Intl.Collator('en', { numeric: true });

/**
 * The order and the page of a list, which the address keeps.
 * @param {string} sort the order if it names none
 */
function stateOf(sort) {
  const query = new URLSearchParams(location.hash.split('?')[1]);
  return {
    sort: query.get('sort') ?? sort,
    down: query.has('down'),
    page: Math.max(0, Number(query.get('page') ?? 1) - 1) || 0,
  };
}

/**
 * All rows behind `path`, up to `most`.
 * @template T
 * @param {string} path
 * @param {number} [most]
 * @returns {Promise<{rows: T[], partial: boolean}>}
 */
export async function loadAll(path, most = ANSWER) {
  /** @type {T[]} */
  const rows = [];
  let next = /** @type {string | null} */ (`${path}${path.includes('?') ? '&' : '?'}limit=${ANSWER}`);
  while (next && rows.length < most) {
    const answer = await call('GET', next);
    rows.push(...answer.body);
    next = answer.next;
  }
  return { rows, partial: next !== null };
}

/**
 * A list.
 * @template T
 * @param {ListOptions<T>} options
 */
export function list({
  caption,
  noun,
  empty,
  columns,
  rows,
  partial = false,
  sort = '',
  file,
  rowName,
  several = [],
  dense = false,
}) {
  const state = stateOf(sort);
  /** @type {Set<T>} */
  const chosen = new Set();
  const box = h('div');
  const status = h('p', { class: 'muted total' });
  const bar = h('div', { class: 'chosen', role: 'group', 'aria-label': 'With the selected rows', hidden: true });

  const sorted = () => {
    const column = columns.find(({ heading }) => heading === state.sort);
    const value = column?.order ?? column?.value;
    if (!value) return rows;
    const sign = state.down ? -1 : 1;
    return rows
      .map((row) => ({ row, key: value(row) }))
      .sort(({ key: a }, { key: b }) => {
        if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
        return sign * (typeof a === 'number' && typeof b === 'number' ? a - b : COLLATOR.compare(String(a), String(b)));
      })
      .map(({ row }) => row);
  };
  const sortBy = (/** @type {string} */ heading) => {
    state.down = state.sort === heading && !state.down;
    state.sort = heading;
    state.page = 0;
    show();
    announce(`Sorted by ${heading.toLowerCase()}, ${state.down ? 'descending' : 'ascending'}.`);
    /** @type {HTMLElement | null} */ (box.querySelector(`[data-sort="${CSS.escape(heading)}"]`))?.focus();
  };
  const head = (/** @type {string} */ heading) => {
    if (!columns.find((one) => one.heading === heading)?.value) return null;
    const here = state.sort === heading;
    return {
      sort: here ? (state.down ? 'descending' : 'ascending') : 'none',
      content: h(
        'button',
        { type: 'button', class: 'sort', 'data-sort': heading, onclick: () => sortBy(heading) },
        heading,
        h('span', { 'aria-hidden': 'true' }, here ? (state.down ? ' ↓' : ' ↑') : ''),
      ),
    };
  };
  const shownRows = () => sorted().slice(state.page * ROWS, (state.page + 1) * ROWS);
  const showChosen = () => {
    bar.hidden = chosen.size === 0;
    bar.replaceChildren(
      h('strong', null, `${count(chosen.size, noun)} selected`),
      (chosen.size >= ROWS &&
        chosen.size < rows.length &&
        h(
          'button',
          {
            type: 'button',
            class: 'quiet',
            onclick: () => {
              for (const row of rows) chosen.add(row);
              show();
            },
          },
          `Select all ${rows.length.toLocaleString('en')}`,
        )) ||
        '',
      ...several.map(([text, act]) =>
        h('button', { type: 'button', class: 'quiet', onclick: () => act([...chosen]) }, text),
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          onclick: () => {
            chosen.clear();
            show();
          },
        },
        'Clear',
      ),
    );
  };
  /** @type {[string, (row: T) => any, string][]} */
  const cells = columns.map(({ heading, cell, style }) => [heading, cell, style ?? '']);
  if (rowName && several.length) {
    const [first, ...rest] = cells;
    const name = rowName;
    // The box stands with the row's name, which stays the first cell.
    if (first) {
      cells.splice(
        0,
        cells.length,
        [
          first[0],
          (row) => {
            const tick = h('input', {
              type: 'checkbox',
              class: 'choose',
              'aria-label': `Select ${name(row)}`,
              onchange: () => {
                if (tick.checked) chosen.add(row);
                else chosen.delete(row);
                showChosen();
              },
            });
            tick.checked = chosen.has(row);
            return [tick, first[1](row)].flat();
          },
          first[2],
        ],
        ...rest,
      );
    }
  }
  const show = () => {
    const [path = '', text] = location.hash.split('?');
    const query = new URLSearchParams(text);
    for (const [name, value] of [
      ['sort', state.sort],
      ['down', state.down ? 'yes' : ''],
      ['page', state.page ? String(state.page + 1) : ''],
    ]) {
      if (value) query.set(String(name), value);
      else query.delete(String(name));
    }
    readdress(query.size ? `${path}?${query}` : path);
    const pages = Math.max(1, Math.ceil(rows.length / ROWS));
    state.page = Math.min(state.page, pages - 1);
    const shown = shownRows();
    const turn = (/** @type {number} */ to, /** @type {string} */ text) =>
      h(
        'button',
        {
          type: 'button',
          disabled: to < 0 || to >= pages,
          onclick: () => {
            state.page = to;
            show();
            box.closest('.page-body')?.scrollIntoView();
            announce(`Page ${to + 1} of ${pages}.`);
            // The same button if it still leads somewhere, else the other.
            const buttons = /** @type {HTMLButtonElement[]} */ ([...box.querySelectorAll('.pages button')]);
            (
              buttons.find((button) => button.textContent === text && !button.disabled) ??
              buttons.find((button) => !button.disabled)
            )?.focus({ preventScroll: true });
          },
        },
        text,
      );
    status.textContent =
      rows.length === 0
        ? ''
        : `${count(rows.length, noun)}${partial ? ', and more on the server: narrow the filters to see the others' : ''}`;
    const choose = h(
      'button',
      {
        type: 'button',
        class: 'quiet',
        onclick: () => {
          const all = shown.every((row) => chosen.has(row));
          for (const row of shown)
            if (all) chosen.delete(row);
            else chosen.add(row);
          show();
          announce(`${count(chosen.size, noun)} selected.`);
          /** @type {HTMLElement | null} */ (box.querySelector('.list-head button'))?.focus();
        },
      },
      pages > 1 ? 'Select all of this page' : 'Select all',
    );
    const sortable = columns.filter(({ value }) => value);
    const narrowSort = h(
      'select',
      { 'aria-label': 'Sort by', class: 'narrow-only', onchange: () => sortBy(narrowSort.value) },
      h('option', { value: '' }, 'Sort by…'),
      sortable.map(({ heading }) => h('option', { value: heading, selected: heading === state.sort }, heading)),
    );
    box.replaceChildren(
      ...[
        rows.length > 0 &&
          h(
            'div',
            { class: 'list-head' },
            status,
            h(
              'div',
              { class: 'buttons' },
              rowName && several.length > 0 && choose,
              narrowSort,
              file &&
                ['CSV', 'JSON'].map((kind) =>
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'quiet',
                      'aria-label': `Export as ${kind}`,
                      onclick: () => save(file, kind, columns, sorted()),
                    },
                    `↓ ${kind}`,
                  ),
                ),
            ),
          ),
        bar,
        table(caption, cells, shown, empty, head, columns.find(({ heading }) => heading === state.sort)?.group),
        pages > 1 &&
          h(
            'nav',
            { class: 'pages', 'aria-label': 'Pages' },
            turn(state.page - 1, '← Previous'),
            h('span', { class: 'muted' }, `Page ${state.page + 1} of ${pages}`),
            turn(state.page + 1, 'Next →'),
          ),
      ].filter((part) => part instanceof Node),
    );
    showChosen();
  };
  if (dense) {
    box.classList.add('dense');
    // A click outside the links and boxes of a row opens it, unless it selected text.
    box.addEventListener('click', (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest('a, button, input, label') || getSelection()?.toString()) return;
      target.closest('tbody tr')?.querySelector('a')?.click();
    });
  }
  show();
  return box;
}

/**
 * Downloads rows as a file.
 * @template T
 * @param {string} name
 * @param {string} kind
 * @param {Column<T>[]} columns
 * @param {T[]} rows
 */
export function save(name, kind, columns, rows) {
  const written = columns.filter(({ value }) => value);
  const line = (/** @type {unknown[]} */ cells) => cells.map(cellOf).join(',');
  const text =
    kind === 'JSON'
      ? `${JSON.stringify(rows, null, 2)}\n`
      : [
          line(written.map(({ heading }) => heading)),
          ...rows.map((row) => line(written.map(({ value }) => value?.(row) ?? ''))),
        ].join('\r\n');
  const url = URL.createObjectURL(new Blob([text], { type: kind === 'JSON' ? 'application/json' : 'text/csv' }));
  h('a', { href: url, download: `${name}.${kind.toLowerCase()}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  announce(`Exported ${rows.length} rows.`);
}

/**
 * A cell of a CSV file. Spreadsheets run what begins like a formula: an apostrophe keeps it text.
 * @param {unknown} value
 */
function cellOf(value) {
  const text = String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Runs an action on several rows, one after the other, and shows the result of each row.
 * @template T
 * @param {object} options
 * @param {string} options.heading
 * @param {T[]} options.rows
 * @param {(row: T) => string} options.name
 * @param {(row: T) => Promise<string>} options.act returns the result in words
 * @param {() => void} options.done called when the answer was read
 */
export async function doSeveral({ heading, rows, name, act, done }) {
  const results = h('ul', { class: 'checks' });
  const progress = h('p', { class: 'muted', role: 'status' });
  let stopped = false;
  const dialog = openDialog(heading, (close) => [
    h(
      'div',
      { class: 'page-body' },
      progress,
      results,
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close')),
    ),
  ]);
  dialog.addEventListener('close', () => {
    stopped = true;
    done();
  });
  let refused = 0;
  for (const [number, row] of rows.entries()) {
    if (stopped) return;
    progress.textContent = `${number} of ${rows.length}…`;
    let [text, kind] = ['', 'good'];
    try {
      text = await act(row);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      [text, kind] = [error.errors[0]?.detail ?? error.detail, 'bad'];
      refused += 1;
    }
    results.append(
      h(
        'li',
        null,
        badge(kind === 'good' ? 'done' : 'refused', kind),
        h('span', null, h('strong', null, name(row)), ` ${text}`),
      ),
    );
  }
  progress.textContent = `${rows.length - refused} done, ${refused} refused.`;
}
