// A credential in the page, and how it is loaded.

import { call } from './api.js';
import { h } from './dom.js';

/** @typedef {import('./api.js').Credential} Credential */

/**
 * @param {Pick<Credential, 'labels'>} credential
 * @param {number} [most]
 */
export function labels({ labels: all = {} }, most = Infinity) {
  const texts = Object.entries(all).map(([name, value]) => (value ? `${name}:${value}` : name));
  const more = texts.slice(most);
  return [
    ...texts.slice(0, most).map((text) => h('span', { class: 'label', translate: 'no', title: text }, text)),
    more.length > 0 &&
      h(
        'span',
        { class: 'label more', title: more.join('\n') },
        `+${more.length}`,
        h('span', { class: 'hidden' }, ' more labels'),
      ),
  ];
}

/**
 * One credential, and its entity tag.
 * @param {string} id
 */
export async function load(id) {
  const { body, etag } = await call('GET', `/organization-vault/${id}`);
  return { credential: /** @type {Credential} */ (body), etag: etag ?? '' };
}
