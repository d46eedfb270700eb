// What an admin does with an integration: from its row in the list, and from its page.

import { call } from './api.js';
import { button, go, h } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { jobLines } from './jobs.js';
import { confirm, flash, openDialog, time } from './parts.js';
import { secretBox } from './copy.js';

/** @typedef {import('./api.js').Integration} Integration */
/** @typedef {import('./parts.js').Page} Page */

/** @type {[string, string][]} */
const OVERLAPS = [
  ['0', 'Immediately'],
  ['3600', 'After 1 hour'],
  ['86400', 'After 24 hours'],
  ['604800', 'After 7 days'],
];

/** An integration whose token was used within this number of days is deleted only after its name is typed. */
const IN_USE = 30;

/** @param {string} text */
const patterns = (text) => {
  const all = text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean);
  return all.length ? all : undefined;
};

/**
 * The fields of an integration that can be changed.
 * @param {Partial<Integration>} integration
 */
export function accessFields({ namespaces = [], expires_at: at }) {
  return {
    namespaces: field({
      label: 'Namespaces',
      pointer: '/namespaces',
      rows: 3,
      required: true,
      mono: true,
      value: namespaces.join('\n'),
      placeholder: 'imports/nightly\nexports/*',
      hint: 'One in each line. A name, or a prefix and /* for all below it.',
      parse: patterns,
    }),
    expires: field({
      label: 'Expires',
      pointer: '/expires_at',
      type: 'datetime-local',
      value: writeTime(at),
      parse: readTime,
    }),
  };
}

/**
 * Shows a token, once.
 * @param {import('./jobs.js').Job} integration
 * @param {string} token
 * @param {() => void} closed
 */
export function showToken(integration, token, closed) {
  const dialog = openDialog(
    `Token of ${integration.name}`,
    (close) => [
      h(
        'div',
        { class: 'page-body' },
        h('p', null, 'Give it to the owner of the job over a channel that you trust. It is shown only once.'),
        secretBox(token, 'the token'),
        h('h3', null, 'Connect a job'),
        jobLines(integration),
        h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')),
      ),
    ],
    true,
  );
  dialog.classList.add('wide');
  dialog.addEventListener('close', closed);
}

/**
 * The buttons of an integration, for a menu.
 * @param {Integration} integration
 * @param {Page} page
 */
export function actionsOf(integration, page) {
  const { id, name, state } = integration;
  const act = (/** @type {string} */ text, /** @type {() => void} */ does, style = '') =>
    button(text, does, { class: style, 'aria-label': `${text} ${name}` });
  const reload = () => void page.done(`Issued a new token for ${name}.`);
  return [
    act('Connect a job', () => go(`#/integrations/${id}?tab=connect`)),
    act('Trusted workloads', () => go(`#/integrations/${id}?tab=workloads`)),
    act('New token', () => replaceToken(integration, reload)),
    act('Edit', () => edit(integration, page)),
    state === 'active'
      ? act('Disable', () => turn(integration, page, 'disabled'))
      : act('Enable', () => turn(integration, page, 'active')),
    act('Delete', () => remove(integration, page), 'danger'),
  ];
}

/**
 * Asks before an integration is disabled or enabled.
 * @param {Integration} integration
 * @param {Page} page
 * @param {'active' | 'disabled'} to
 */
function turn({ id, name }, page, to) {
  /** @type {(to: 'active' | 'disabled') => () => Promise<void>} */
  const change = (to) => async () => {
    await call('PATCH', `/integrations/${id}`, { body: { state: to } });
    await page.done(
      to === 'active' ? `Enabled ${name}.` : `Disabled ${name}. Its tokens do not work.`,
      change(to === 'active' ? 'disabled' : 'active'),
    );
  };
  const off = to === 'disabled';
  confirm({
    heading: `${off ? 'Disable' : 'Enable'} ${name}?`,
    text: [
      off
        ? 'Its tokens stop working immediately. Credentials already issued still work: revoke them at the storage provider.'
        : 'Its tokens work again.',
    ],
    submit: off ? 'Disable' : 'Enable',
    busy: off ? 'Disabling…' : 'Enabling…',
    danger: off,
    act: change(to),
  });
}

/**
 * @param {Integration} integration
 * @param {Page} page
 */
function remove({ id, name, last_used_at: used }, page) {
  const inUse = used !== undefined && Date.now() - Date.parse(used) < IN_USE * 86_400_000;
  confirm({
    heading: `Delete ${name}?`,
    submit: 'Delete',
    busy: 'Deleting…',
    typed: inUse ? name : '',
    text: [
      inUse
        ? h('p', { class: 'note bad' }, h('strong', null, 'In use. '), 'Its token was last used ', time(used), '.')
        : `Its token was not used in the last ${IN_USE} days.`,
      'All its tokens are revoked, and its activations end. Its jobs are denied from then on.',
    ],
    act: async () => {
      await call('DELETE', `/integrations/${id}`);
      const done = `Deleted integration ${name}.`;
      if (location.hash.startsWith('#/integrations/')) {
        flash(done);
        go('#/integrations');
      } else await page.done(done);
    },
  });
}

/**
 * Issues a new token, because a token is shown only once.
 * @param {Integration} integration
 * @param {() => void} done
 */
export function replaceToken(integration, done) {
  const { id, name } = integration;
  const overlap = field({
    label: 'The old token stops working',
    pointer: '/overlap',
    options: OVERLAPS,
    value: '86400',
    parse: Number,
  });
  openDialog(`New token for ${name}`, (close) => [
    form({
      fields: () => [overlap],
      content: [overlap.row],
      submit: 'Issue a new token',
      busy: 'One moment…',
      send: async () => {
        const { body } = await call('POST', `/integrations/${id}/rotate`, { body: { overlap: overlap.read() } });
        close();
        showToken(integration, body.token, done);
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    }),
  ]);
}

/**
 * Changes namespaces and expiry.
 * @param {Integration} integration
 * @param {Page} page
 * @param {string} [add] a namespace to add
 */
export function edit(integration, page, add = '') {
  const { namespaces, expires } = accessFields(integration);
  if (add) namespaces.write([...integration.namespaces, add].join('\n'));
  const before = expires.text();
  openDialog(`Edit ${integration.name}`, (close) => [
    form({
      fields: () => [namespaces, expires],
      content: [namespaces.row, expires.row],
      submit: 'Save',
      busy: 'Saving…',
      send: async () => {
        const body = {
          namespaces: namespaces.read(),
          expires_at: expires.text() === before ? undefined : (expires.read() ?? null),
        };
        await call('PATCH', `/integrations/${integration.id}`, { body });
        close();
        await page.done(`Saved ${integration.name}.`);
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    }),
  ]);
}
