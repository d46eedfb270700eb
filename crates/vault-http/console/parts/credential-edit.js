// The description, labels and expiry of a credential are changed.

import { call } from './api.js';
import { load } from './credential.js';
import { button, h } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { live, openDialog } from './parts.js';
import { readLabels } from '../rules/labels.js';
import { isKeyless } from '../rules/credentials.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {'description' | 'expires'} First the field that gets the focus
 * @typedef {{credential: Credential, etag: string, page: import('./parts.js').Page, first?: First}} Edited
 */

/** @param {Credential} credential */
const labelText = ({ labels = {} }) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');

/** @param {Credential} credential */
function fieldsOf(credential) {
  return {
    description: field({
      label: 'Description',
      pointer: '/description',
      maxlength: 500,
      value: credential.description ?? '',
    }),
    labels: field({
      label: 'Labels',
      pointer: '/labels',
      rows: 3,
      mono: true,
      value: labelText(credential),
      hint: 'One in each line: name: value.',
      parse: readLabels,
    }),
    expires: field({
      label: 'Expires',
      pointer: '/expires_at',
      type: 'datetime-local',
      value: writeTime(credential.expires_at),
      hint: 'When the current data expires at its issuer.',
      parse: readTime,
    }),
    vend: field({
      label: 'Jobs receive',
      pointer: '/vend',
      value: credential.vend,
      options: [
        ['any', 'Saved key or temporary credentials'],
        ['short', 'Temporary credentials only'],
      ],
    }),
  };
}

/**
 * What the fields change.
 * @param {Credential} credential
 * @param {ReturnType<typeof fieldsOf>} fields
 * @param {string} expiresBefore
 */
function changed(credential, fields, expiresBefore) {
  const labels = fields.labels.read();
  const removed = Object.fromEntries(
    Object.keys(credential.labels ?? {})
      .filter((name) => !(name in labels))
      .map((name) => [name, null]),
  );
  return {
    labels: { ...labels, ...removed },
    description: fields.description.read() ?? (credential.description === undefined ? undefined : null),
    expires_at: fields.expires.text() === expiresBefore ? undefined : (fields.expires.read() ?? null),
    vend: fields.vend.read() === credential.vend ? undefined : fields.vend.read(),
  };
}

/** @param {Edited} edited */
export function editCredential({ credential, etag, page, first = 'description' }) {
  const fields = fieldsOf(credential);
  const expiresBefore = fields.expires.text();
  // After a conflict, the one button saves over the other change.
  let [tag, overwrites] = [etag, false];
  openDialog('Edit', (close) => [
    form({
      fields: () => Object.values(fields),
      content: Object.values(fields)
        .filter((one) => one !== fields.vend || !isKeyless(credential.type))
        .map(({ row }) => row),
      submit: () => (overwrites ? 'Save mine' : 'Save'),
      busy: 'Saving…',
      send: async () => {
        const body = changed(credential, fields, expiresBefore);
        await call('PATCH', `/organization-vault/${credential.id}`, { body, headers: { 'If-Match': tag } });
        close();
        await page.done('Saved.');
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      explain: ({ code }) => {
        if (code !== 'precondition-failed') return null;
        return conflict(credential, (now, newTag) => {
          [tag, overwrites] = [newTag, true];
          return () => {
            close();
            void page.refresh().then(() => editCredential({ credential: now, etag: newTag, page }));
          };
        });
      },
    }),
  ]);
  fields[first].control.focus();
}

/**
 * What was changed after an edit was opened, perhaps in another tab of the same user, and the way to the other change.
 * @param {Credential} before
 * @param {(now: Credential, etag: string) => () => void} found returns what shows the other change
 */
function conflict(before, found) {
  const box = h('span', null, 'Loading the other change…');
  void load(before.id).then(
    ({ credential: now, etag }) => {
      const compared = [
        { name: 'description', old: before.description ?? '', other: now.description ?? '' },
        { name: 'labels', old: labelText(before), other: labelText(now).replaceAll('\n', ', ') },
        { name: 'expiry', old: before.expires_at ?? '', other: now.expires_at ?? '' },
        { name: '“Jobs receive”', old: before.vend, other: now.vend },
        { name: 'the current version', old: String(before.version), other: String(now.version) },
      ];
      const differing = compared.filter(({ old, other }) => old.replaceAll('\n', ', ') !== other);
      const show = found(now, etag);
      box.replaceChildren(
        'Changed elsewhere ',
        live('relative', now.updated_at),
        ': ',
        differing.map(({ name, other }) => (other ? `${name} to “${other}”` : `${name} (now empty)`)).join(', ') ||
          'a version of it',
        '. ',
        button('Show theirs', show, { class: 'quiet' }),
      );
      const submit = box.closest('form')?.querySelector('[type="submit"]');
      if (submit) submit.textContent = 'Save mine';
    },
    () => {
      box.textContent = 'Close this, reload the page and edit again.';
    },
  );
  return box;
}
