// What needs attention, in the page.

import { section } from './blocks.js';
import { checkOne } from './checking.js';
import { button, freshId, h, parted } from './dom.js';
import { doSeveral } from './list.js';
import { badge, live } from './parts.js';

/**
 * @typedef {import('../rules/concerns.js').Part} Part
 * @typedef {import('../rules/concerns.js').Act} Act
 * @typedef {import('../rules/concerns.js').Concern} Concern
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
 * @param {() => void} done
 */
function action(act, done) {
  if ('href' in act) return h('a', { class: 'button quiet', href: act.href }, act.name);
  const check = () =>
    doSeveral({
      heading: 'Check',
      rows: act.check,
      name: ({ namespace }) => namespace,
      done,
      act: ({ id }) => checkOne(id),
    });
  return button(act.name, check, { class: 'quiet' });
}

/**
 * @param {ReturnType<typeof import('../rules/concerns.js').grouped>} groups
 * @param {{certain: boolean, limits: string, done: () => void}} options `certain`: whether nothing is unknown
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
        rows.map(({ text, by, acts }) =>
          h(
            'li',
            null,
            h('span', null, text.map(rendered)),
            h('span', { class: 'by' }, by),
            h(
              'span',
              { class: 'acts' },
              acts.map((act) => action(act, done)),
            ),
          ),
        ),
      ),
    ];
  });
  return section(
    'Needs attention',
    ...lists,
    !groups.length && h('p', { class: `note ${certain ? 'good' : ''}` }, 'Nothing needs attention.'),
    limits && h('p', { class: 'hint' }, limits),
  );
}
