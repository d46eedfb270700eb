// Blocks of pages: tables, facts, sections, and lists that are loaded page by page.

import { Problem, call } from './api.js';
import { announce, freshId, h } from './dom.js';
import { count } from './forms.js';
import { problemNote } from './parts.js';

/** @typedef {import('./dom.js').Child} Child */

/**
 * @template T
 * @typedef {object} TableColumn
 * @property {string} heading
 * @property {(row: T) => Child | Child[]} cell
 * @property {string} [style] the class of its cells
 */

/**
 * A table whose rows become cards where there is no room.
 * @template T
 * @param {string} caption for screen readers
 * @param {TableColumn<T>[]} columns
 * @param {T[]} rows
 * @param {string} empty said in place of a table without rows
 * @param {(heading: string) => {content: Child, sort?: string} | null} [head] what stands in place of a heading's text
 * @param {(row: T) => string} [group] the heading above a row and the following ones with the same
 */
export function table(caption, columns, rows, empty, head, group) {
  if (!rows.length) return h('p', { class: 'empty' }, empty);
  const named = (/** @type {string} */ heading) =>
    heading.startsWith('(') ? h('span', { class: 'hidden' }, heading.slice(1, -1)) : heading;
  return h(
    'div',
    { class: 'table' },
    h(
      'table',
      null,
      h('caption', { class: 'hidden' }, caption),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          columns.map(({ heading, style }) => {
            const own = head?.(heading);
            return h('th', { scope: 'col', 'aria-sort': own?.sort, class: style }, own ? own.content : named(heading));
          }),
        ),
      ),
      h(
        'tbody',
        null,
        rows
          .map((row, number) => {
            const before = rows[number - 1];
            const above =
              group &&
              (!before || group(before) !== group(row)) &&
              h('tr', { class: 'group-row' }, h('th', { scope: 'colgroup', colspan: columns.length }, group(row)));
            return [
              above,
              h(
                'tr',
                null,
                columns.map(({ heading, cell, style }, index) => {
                  const content = cell(row);
                  const label = heading.startsWith('(') ? null : heading;
                  const box = h('div', null, content);
                  return index === 0
                    ? h('th', { scope: 'row', 'data-label': label, class: style }, box)
                    : h('td', { 'data-label': label, class: style }, box);
                }),
              ),
            ];
          })
          .flat(),
      ),
    ),
  );
}

/**
 * Names and what they are.
 * @param {{name: string, value: Child | Child[]}[]} entries
 */
export function facts(entries) {
  return h(
    'dl',
    { class: 'facts' },
    entries.map(({ name, value }) => h('div', null, h('dt', null, name), h('dd', null, value))),
  );
}

/**
 * The most important facts, side by side.
 * @param {{name: string, value: Child, more: Child[]}[]} entries
 */
export function strip(entries) {
  return h(
    'dl',
    { class: 'strip' },
    entries.map(({ name, value, more }) =>
      h('div', null, h('dt', null, name), h('dd', null, h('strong', null, value)), h('dd', { class: 'hint' }, more)),
    ),
  );
}

/**
 * A part of a page with a heading.
 * @param {string} heading
 * @param {...(Child | Child[])} children
 */
export function section(heading, ...children) {
  const id = freshId();
  return h('section', { 'aria-labelledby': id, class: 'card' }, h('h2', { id }, heading), ...children);
}

/**
 * A list that is loaded page by page, each behind the previous one's `Link`.
 * @template T
 * @param {string} first the path of the first page
 * @param {(rows: T[]) => Node} view
 * @param {string} noun of one row, for screen readers
 */
export async function paged(first, view, noun) {
  /** @type {string[]} */
  const before = [];
  let here = first;
  const list = h('div');
  const previous = h('button', { type: 'button', onclick: () => void turn(before.pop() ?? first) }, '← Previous');
  const next = h('button', { type: 'button' }, 'Next →');
  const pages = h('nav', { class: 'pages', 'aria-label': 'Pages' }, previous, h('span', { class: 'muted' }), next);
  /** @type {string | null} */
  let following = null;
  next.addEventListener('click', () => {
    if (!following) return;
    before.push(here);
    void turn(following);
  });
  /** @param {string} path */
  const turn = async (path) => {
    try {
      await show(path);
      announce(`Page ${before.length + 1}.`);
      scrollTo(0, 0);
      // A button that leads nowhere any more gives the focus to the other.
      if (
        document.activeElement === document.body ||
        (document.activeElement instanceof HTMLButtonElement && document.activeElement.disabled)
      )
        (next.disabled ? previous : next).focus({ preventScroll: true });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      list.replaceChildren(problemNote(error));
    }
  };
  /** @param {string} path */
  const show = async (path) => {
    list.setAttribute('aria-busy', 'true');
    const { body, next: link } = await call('GET', path);
    here = path;
    following = link;
    list.replaceChildren(view(body));
    list.removeAttribute('aria-busy');
    pages.hidden = !before.length && !following;
    previous.disabled = !before.length;
    next.disabled = !following;
    const position = pages.querySelector('span');
    if (position) position.textContent = `Page ${before.length + 1}, ${count(body.length, noun)}`;
  };
  await show(first);
  return h('div', null, list, pages);
}
