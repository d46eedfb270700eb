// Lists that are loaded as a whole: sorted, turned over, chosen from and exported without asking the server again.

import { Problem, call } from './api.js';
import { announce, button, h, readdress } from './dom.js';
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
 * @property {{name: string, act: (rows: T[]) => void}[]} [several] what can be done with the chosen rows
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
export function list(options) {
  return new List(options).box;
}

/** @template T */
class List {
  box = h('div');
  /** @type {ListOptions<T>} */
  #options;
  /** The order and the page. */
  #state;
  /** @type {Set<T>} */
  #chosen = new Set();
  #status = h('p', { class: 'muted total' });
  #bar = h('div', { class: 'chosen', role: 'group', 'aria-label': 'With the selected rows', hidden: true });

  /** @param {ListOptions<T>} options */
  constructor(options) {
    this.#options = options;
    this.#state = stateOf(options.sort ?? '');
    if (options.dense) this.#openRows();
    this.#show();
  }

  /** A click outside the links and boxes of a row opens it, unless it selected text. */
  #openRows() {
    this.box.classList.add('dense');
    this.box.addEventListener('click', (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest('a, button, input, label') || getSelection()?.toString()) return;
      target.closest('tbody tr')?.querySelector('a')?.click();
    });
  }

  #sorted() {
    const { rows, columns } = this.#options;
    const column = columns.find(({ heading }) => heading === this.#state.sort);
    const value = column?.order ?? column?.value;
    if (!value) return rows;
    const sign = this.#state.down ? -1 : 1;
    return rows
      .map((row) => ({ row, key: value(row) }))
      .sort(({ key: a }, { key: b }) => {
        if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
        return sign * (typeof a === 'number' && typeof b === 'number' ? a - b : COLLATOR.compare(String(a), String(b)));
      })
      .map(({ row }) => row);
  }

  /** @param {string} heading */
  #sortBy(heading) {
    const state = this.#state;
    state.down = state.sort === heading && !state.down;
    state.sort = heading;
    state.page = 0;
    this.#show();
    announce(`Sorted by ${heading.toLowerCase()}, ${state.down ? 'descending' : 'ascending'}.`);
    /** @type {HTMLElement | null} */ (this.box.querySelector(`[data-sort="${CSS.escape(heading)}"]`))?.focus();
  }

  /** @param {string} heading */
  #head(heading) {
    if (!this.#options.columns.find((one) => one.heading === heading)?.value) return null;
    const { sort, down } = this.#state;
    const here = sort === heading;
    return {
      sort: here ? (down ? 'descending' : 'ascending') : 'none',
      content: h(
        'button',
        { type: 'button', class: 'sort', 'data-sort': heading, onclick: () => this.#sortBy(heading) },
        heading,
        h('span', { 'aria-hidden': 'true' }, here ? (down ? ' ↓' : ' ↑') : ''),
      ),
    };
  }

  /** Shows what can be done with the chosen rows. */
  #showChosen() {
    const { rows, noun, several = [] } = this.#options;
    const chosen = this.#chosen;
    const all = () => {
      for (const row of rows) chosen.add(row);
      this.#show();
    };
    const none = () => {
      chosen.clear();
      this.#show();
    };
    this.#bar.hidden = chosen.size === 0;
    this.#bar.replaceChildren(
      h('strong', null, `${count(chosen.size, noun)} selected`),
      ...(chosen.size >= ROWS && chosen.size < rows.length
        ? [button(`Select all ${rows.length.toLocaleString('en')}`, all, { class: 'quiet' })]
        : []),
      ...several.map(({ name, act }) => button(name, () => act([...chosen]), { class: 'quiet' })),
      button('Clear', none, { class: 'quiet' }),
    );
  }

  /**
   * A column whose cells have a box that chooses the row.
   * @param {Column<T>} column
   */
  #withBox(column) {
    return {
      ...column,
      cell: (/** @type {T} */ row) => {
        const tick = h('input', {
          type: 'checkbox',
          class: 'choose',
          'aria-label': `Select ${this.#options.rowName?.(row)}`,
          onchange: () => {
            if (tick.checked) this.#chosen.add(row);
            else this.#chosen.delete(row);
            this.#showChosen();
          },
        });
        tick.checked = this.#chosen.has(row);
        return [tick, column.cell(row)].flat();
      },
    };
  }

  /** Writes the order and the page into the address. */
  #readdress() {
    const { sort, down, page } = this.#state;
    const [path = '', text] = location.hash.split('?');
    const query = new URLSearchParams(text);
    const kept = { sort, down: down ? 'yes' : '', page: page ? String(page + 1) : '' };
    for (const [name, value] of Object.entries(kept)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    readdress(query.size ? `${path}?${query}` : path);
  }

  #show() {
    const { rows, columns, caption, empty, noun, partial } = this.#options;
    const state = this.#state;
    const pages = Math.max(1, Math.ceil(rows.length / ROWS));
    this.#readdress();
    state.page = Math.min(state.page, pages - 1);
    const shown = this.#sorted().slice(state.page * ROWS, (state.page + 1) * ROWS);
    const more = partial ? ', and more on the server: narrow the filters to see the others' : '';
    this.#status.textContent = rows.length ? `${count(rows.length, noun)}${more}` : '';
    // The box stands with the row's name, which stays the first cell.
    const cells = this.#choosable ? columns.map((one, index) => (index ? one : this.#withBox(one))) : columns;
    const group = columns.find(({ heading }) => heading === state.sort)?.group;
    this.box.replaceChildren(
      ...(rows.length ? [this.#listHead(shown, pages)] : []),
      this.#bar,
      table(caption, cells, shown, empty, (heading) => this.#head(heading), group),
      ...(pages > 1 ? [this.#pages(pages)] : []),
    );
    this.#showChosen();
  }

  get #choosable() {
    const { rowName, several = [] } = this.#options;
    return rowName !== undefined && several.length > 0;
  }

  /**
   * What stands above the table.
   * @param {T[]} shown
   * @param {number} pages
   */
  #listHead(shown, pages) {
    const { columns, file } = this.#options;
    const sortable = columns.filter(({ value }) => value);
    const narrowSort = h(
      'select',
      { 'aria-label': 'Sort by', class: 'narrow-only', onchange: () => this.#sortBy(narrowSort.value) },
      h('option', { value: '' }, 'Sort by…'),
      sortable.map(({ heading }) => h('option', { value: heading, selected: heading === this.#state.sort }, heading)),
    );
    const kinds = file ? ['CSV', 'JSON'] : [];
    return h(
      'div',
      { class: 'list-head' },
      this.#status,
      h(
        'div',
        { class: 'buttons' },
        this.#choosable &&
          button(pages > 1 ? 'Select all of this page' : 'Select all', () => this.#choosePage(shown), {
            class: 'quiet',
          }),
        narrowSort,
        kinds.map((kind) =>
          button(`↓ ${kind}`, () => save(file ?? '', kind, columns, this.#sorted()), {
            class: 'quiet',
            'aria-label': `Export as ${kind}`,
          }),
        ),
      ),
    );
  }

  /** @param {T[]} shown */
  #choosePage(shown) {
    const all = shown.every((row) => this.#chosen.has(row));
    for (const row of shown)
      if (all) this.#chosen.delete(row);
      else this.#chosen.add(row);
    this.#show();
    announce(`${count(this.#chosen.size, this.#options.noun)} selected.`);
    /** @type {HTMLElement | null} */ (this.box.querySelector('.list-head button'))?.focus();
  }

  /** @param {number} pages */
  #pages(pages) {
    const { page } = this.#state;
    return h(
      'nav',
      { class: 'pages', 'aria-label': 'Pages' },
      button('← Previous', () => this.#turn(page - 1, pages, '← Previous'), { disabled: page === 0 }),
      h('span', { class: 'muted' }, `Page ${page + 1} of ${pages}`),
      button('Next →', () => this.#turn(page + 1, pages, 'Next →'), { disabled: page + 1 >= pages }),
    );
  }

  /**
   * @param {number} to
   * @param {number} pages
   * @param {string} text of the button
   */
  #turn(to, pages, text) {
    this.#state.page = to;
    this.#show();
    this.box.closest('.page-body')?.scrollIntoView();
    announce(`Page ${to + 1} of ${pages}.`);
    // The same button if it still leads somewhere, else the other.
    const open = /** @type {HTMLButtonElement[]} */ ([...this.box.querySelectorAll('.pages button:not(:disabled)')]);
    (open.find(({ textContent }) => textContent === text) ?? open[0])?.focus({ preventScroll: true });
  }
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
