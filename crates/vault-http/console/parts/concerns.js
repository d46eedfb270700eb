// What needs attention, in the page.

import { call } from './api.js';
import { section } from './blocks.js';
import { checkOne } from './checking.js';
import { button, freshId, h, parted } from './dom.js';
import { field, form, readTime } from './forms.js';
import { doSeveral } from './list.js';
import { badge, live, openDialog } from './parts.js';
import { dayAhead } from '../rules/concerns.js';

/**
 * @typedef {import('../rules/concerns.js').Part} Part
 * @typedef {import('../rules/concerns.js').Act} Act
 * @typedef {import('../rules/concerns.js').Concern} Concern
 * @typedef {(text?: string, undo?: () => Promise<void>) => Promise<void>} Done reloads the page, and shows what was done
 */

/** @param {Part} part */
function rendered(part) {
  if (typeof part === 'string') return part;
  if ('href' in part) return h('a', { class: 'object', href: part.href, translate: 'no' }, parted(part.name));
  if ('when' in part) return live(part.when, part.at);
  if ('code' in part) return h('code', null, part.code);
  return h('strong', { translate: 'no' }, part.strong);
}

/**
 * @param {Act} act
 * @param {Done} done
 */
function action(act, done) {
  if ('href' in act) return h('a', { class: 'button quiet', href: act.href }, act.name);
  const check = () =>
    doSeveral({
      heading: 'Check',
      rows: act.check,
      name: ({ namespace }) => namespace,
      done: () => void done(),
      act: ({ id }) => checkOne(id),
    });
  return button(act.name, check, { class: 'quiet' });
}

/**
 * @param {string} concern
 * @param {string | null} until
 * @param {Done} done
 */
async function put(concern, until, done) {
  const change = (/** @type {string | null} */ until) => async () => {
    await call('PUT', '/account/set-aside', { body: { concern, until } });
  };
  await change(until)();
  await done(until ? 'Set aside. Only your overview has changed.' : 'Shown again.', until ? change(null) : undefined);
}

/**
 * What the user does with a row: it is set aside, or shown again.
 * @param {Concern} concern
 * @param {Done} done
 */
function asideButton({ key, text, until }, done) {
  if (until) return button('Show again', () => put(key, null, done), { class: 'quiet' });
  const ask = () => {
    const ahead = field({
      label: 'Until',
      options: [
        ['1', 'Tomorrow'],
        ['7', 'In a week'],
        ['', 'A date'],
      ],
    });
    const date = field({ label: 'Date', pointer: '/until', type: 'datetime-local', required: true, parse: readTime });
    const show = () => {
      date.row.hidden = ahead.text() !== '';
    };
    ahead.control.addEventListener('change', show);
    show();
    openDialog('Set aside', (close) => [
      form({
        fields: () => (ahead.text() ? [ahead] : [ahead, date]),
        content: [
          h('p', null, text.map(rendered)),
          h('p', { class: 'hint' }, 'Only for you, at most one year. If it gets worse, it is shown before.'),
          ahead.row,
          date.row,
        ],
        submit: 'Set aside',
        busy: 'Setting aside…',
        send: async () => {
          await put(key, ahead.text() ? dayAhead(Number(ahead.text()), Date.now()) : date.read(), done);
          close();
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  };
  return button('Set aside…', ask, { class: 'quiet' });
}

/**
 * @param {ReturnType<typeof import('../rules/concerns.js').grouped>} groups
 * @param {{certain: boolean, limits: string, done: Done}} options `certain`: whether nothing is unknown
 */
export function attention(groups, { certain, limits, done }) {
  const lists = groups.flatMap(({ heading, kind, rows, count }) => {
    const id = freshId();
    return [
      h(
        'h3',
        { id, class: 'group' },
        h('span', { class: `dot ${kind}`, 'aria-hidden': 'true' }),
        `${heading} `,
        badge(count.toLocaleString('en'), kind),
      ),
      h(
        'ul',
        { class: 'concerns', 'aria-labelledby': id },
        rows.map((row) =>
          h(
            'li',
            null,
            h('span', null, row.text.map(rendered), row.until && [' Set aside until ', live('until', row.until), '.']),
            h('span', { class: 'by' }, row.by),
            h(
              'span',
              { class: 'acts' },
              row.acts.map((act) => action(act, done)),
              row.key && asideButton(row, done),
            ),
          ),
        ),
      ),
    ];
  });
  return section(
    'Needs attention',
    groups.every(({ group }) => group === 'aside') &&
      h('p', { class: `note ${certain ? 'good' : ''}` }, 'Nothing needs attention.'),
    ...lists,
    limits && h('p', { class: 'hint' }, limits),
  );
}
