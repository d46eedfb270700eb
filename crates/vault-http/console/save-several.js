// Saves several pasted keys together: each gets a namespace and, if the text has none, a bucket.

import { call } from './api.js';
import { go, h } from './dom.js';
import { field, form } from './forms.js';
import { doSeveral } from './list.js';
import { openDialog } from './parts.js';
import { table } from './blocks.js';

/** @typedef {import('./paste.js').Recognized} Recognized */

/**
 * @param {Recognized[]} keys
 * @param {(type: import('./api.js').CredentialType, values: Record<string, string>) => Record<string, any>} dataOf the data of a request from the texts of its fields
 * @param {(type: import('./api.js').CredentialType) => boolean} needsBucket
 */
export function saveSeveral(keys, dataOf, needsBucket) {
  const rows = keys.map((key) => {
    const source = key.source.replace(/^the /, '');
    const named = (/** @type {string} */ label, /** @type {string} */ value) => {
      const one = field({ label: `${label} of ${source}`, required: true, mono: true, value });
      one.row.querySelector('label')?.classList.add('hidden');
      return one;
    };
    return { key, source, namespace: named('Namespace', key.name), bucket: needsBucket(key.type) && !key.values.bucket ? named('Bucket', '') : null };
  });
  openDialog(`Save ${keys.length} credentials`, (close) => [form({
    fields: () => rows.flatMap(({ namespace, bucket }) => bucket ? [namespace, bucket] : [namespace]),
    content: [table('Keys to save', [
      ['Key', ({ source }) => source],
      ['Namespace', ({ namespace }) => namespace.row],
      ['Bucket', ({ key, bucket }) => bucket?.row ?? key.values.bucket ?? null],
    ], rows, '')],
    submit: 'Save all', busy: 'Saving…',
    send: async () => {
      close();
      void doSeveral({ heading: 'Save', rows, name: ({ namespace }) => namespace.text(), done: () => go('#/credentials'), act: async ({ key, namespace, bucket }) => {
        const data = dataOf(key.type, { ...key.values, ...(bucket ? { bucket: bucket.text() } : {}) });
        await call('PATCH', '/organization-vault', { body: { type: key.type, namespace: namespace.text().trim(), data, expires_at: key.expiresAt } });
        return 'Saved. Its secrets are encrypted and are never shown again.';
      } });
    },
    buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
  })]).classList.add('wide');
}
