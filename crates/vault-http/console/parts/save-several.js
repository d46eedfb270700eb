// Saves several pasted keys together: each gets a namespace and, if the text has none, a bucket.

import { call } from './api.js';
import { TYPE_NAMES } from '../rules/credentials.js';
import { go, h } from './dom.js';
import { field, form } from './forms.js';
import { doSeveral } from './list.js';
import { openDialog } from './parts.js';
import { table } from './blocks.js';

/**
 * @typedef {import('./api.js').ReadEntry} ReadEntry
 * @typedef {ReadEntry & {type: import('./api.js').CredentialType, data: Record<string, any>}} Key an entry that can be saved
 */

/**
 * What an entry is called.
 * @param {ReadEntry} one
 */
export const titleOf = ({ name, type, data }) =>
  [name && `“${name}”`, type && TYPE_NAMES[type], data?.access_key_id && `…${data.access_key_id.slice(-4)}`]
    .filter(Boolean)
    .join(', ') || 'Without a name';

/**
 * The bucket, or the list of buckets.
 * @param {string} text
 */
export const buckets = (text) => {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  return names.length > 1 ? names : names[0];
};

/**
 * @param {Key[]} keys
 * @param {(type: import('./api.js').CredentialType) => boolean} needsBucket
 */
export function saveSeveral(keys, needsBucket) {
  const rows = keys.map((key) => {
    const title = titleOf(key);
    const named = (/** @type {string} */ label, /** @type {string} */ value) => {
      const one = field({ label: `${label} of ${title}`, required: true, mono: true, value });
      one.row.querySelector('label')?.classList.add('hidden');
      return one;
    };
    return {
      key,
      title,
      namespace: named('Namespace', key.name),
      bucket: needsBucket(key.type) && !key.data.bucket ? named('Bucket', '') : null,
    };
  });
  openDialog(`Save ${keys.length} credentials`, (close) => [
    form({
      fields: () => rows.flatMap(({ namespace, bucket }) => (bucket ? [namespace, bucket] : [namespace])),
      content: [
        table(
          'Keys to save',
          [
            { heading: 'Key', cell: ({ title }) => title },
            { heading: 'Namespace', cell: ({ namespace }) => namespace.row },
            { heading: 'Bucket', cell: ({ key, bucket }) => bucket?.row ?? key.data.bucket ?? null },
          ],
          rows,
          '',
        ),
      ],
      submit: 'Save all',
      busy: 'Saving…',
      send: async () => {
        close();
        void doSeveral({
          heading: 'Save',
          rows,
          name: ({ namespace }) => namespace.text(),
          done: () => go('#/credentials'),
          act: async ({ key, namespace, bucket }) => {
            const data = { ...key.data, ...(bucket ? { bucket: buckets(bucket.text()) } : {}) };
            await call('PATCH', '/organization-vault', {
              body: { type: key.type, namespace: namespace.text().trim(), data, expires_at: key.expires_at },
            });
            return 'Saved. Its secrets are encrypted and are never shown again.';
          },
        });
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    }),
  ]).classList.add('wide');
}
