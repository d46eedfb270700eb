// The list of credentials.

import { call, query } from './api.js';
import { go, h } from './dom.js';
import { field, form } from './forms.js';
import { Page, badge, day, healthBadge, paged, table } from './parts.js';
import * as session from './session.js';

/** @typedef {import('./api.js').Credential} Credential */

/** Rows of a page: enough to read through, few enough to show at once. */
const ROWS = '50';

/** @type {Record<import('./api.js').CredentialType, string>} */
export const TYPE_NAMES = { s3: 'S3 bucket', azure_identity: 'Azure identity', gcs: 'Google Cloud Storage', 'direct-link': 'Direct link' };

/** @type {[string, string][]} */
const TYPES = [['', 'All types'], ...Object.entries(TYPE_NAMES)];
/** @type {[string, string][]} */
const HEALTH = [['', 'Any health'], ['healthy', 'Healthy'], ['failing', 'Failing'], ['expiring', 'Expiring'], ['expired', 'Expired'], ['unchecked', 'Unchecked']];
/** @type {[string, string][]} */
const EXPIRY = [['', 'Any time'], ['7', 'In 7 days'], ['30', 'In 30 days'], ['90', 'In 90 days'], ['365', 'In a year']];

/**
 * Where a credential leads, in a few words.
 * @param {Credential} credential
 */
export function place({ information = {} }) {
  const text = information.bucket ?? information.host ?? [information.account_name, information.container].filter(Boolean).join(' / ');
  return String(text || information.tenant_id || '');
}

/** @param {Credential} credential */
export function labels({ labels: all = {} }) {
  return Object.entries(all).map(([name, value]) => h('span', { class: 'label' }, value ? `${name}:${value}` : name));
}

class Credentials extends Page {
  label() {
    return 'Credentials';
  }

  async content() {
    if (session.mayWrite()) this.actions(h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'));
    const get = (/** @type {string} */ name) => this.query.get(name) ?? '';
    const filtered = [...this.query.values()].some(Boolean);
    const within = Number(get('within'));
    const before = within ? new Date(Date.now() + within * 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z') : '';
    const filters = { namespace: get('namespace'), type: get('type'), label: get('label'), health: get('health'), expires_before: before, limit: ROWS };
    const empty = filtered ? 'No credential fits these filters.' : session.mayWrite() ? 'No credentials yet. Add the first one: its secrets can be used by your jobs, and are never shown again.' : 'No credentials yet.';
    /** @param {Credential[]} rows */
    const view = (rows) => table('Credentials', [
      ['Namespace', (row) => h('a', { class: 'long', href: `#/credentials/${row.id}` }, row.namespace)],
      ['Type', ({ type }) => TYPE_NAMES[type]],
      ['Where', (row) => h('span', { class: 'long' }, place(row))],
      ['Labels', (row) => row.damaged ? badge('damaged', 'bad') : labels(row)],
      ['Health', ({ health, staged_version: staged }) => [healthBadge(health), staged ? [' ', badge('staged')] : []].flat()],
      ['Expires', ({ expires_at: at }) => at ? day(at, '') : null],
      ['Last used', ({ last_activated_at: at }) => day(at, 'never')],
    ], rows, empty);
    return [this.#filters(get, filtered), await paged(`/organization-vault${query(filters)}`, view, 'credential')];
  }

  /**
   * @param {(name: string) => string} get
   * @param {boolean} filtered
   */
  #filters(get, filtered) {
    const all = {
      namespace: field({ label: 'Namespace', pointer: '/namespace', value: get('namespace'), placeholder: 'imports/nightly' }),
      type: field({ label: 'Type', pointer: '/type', options: TYPES, value: get('type') }),
      label: field({ label: 'Label', pointer: '/label', value: get('label'), placeholder: 'team:data', parse: (text) => {
        if (text && !text.includes(':')) throw 'Write name:value.';
        return text || undefined;
      } }),
      health: field({ label: 'Health', pointer: '/health', options: HEALTH, value: get('health') }),
      within: field({ label: 'Expires', options: EXPIRY, value: get('within') }),
    };
    for (const { row } of Object.values(all)) row.querySelector('.optional')?.remove();
    const search = form({
      fields: () => Object.values(all), content: Object.values(all).map(({ row }) => row), submit: 'Filter', busy: 'Filter',
      send: async () => {
        const chosen = Object.fromEntries(Object.entries(all).map(([name, { read }]) => [name, read()]));
        const hash = `#/credentials${query(chosen)}`;
        if (location.hash === hash) await this.refresh();
        else go(hash);
      },
      buttons: [filtered && h('a', { class: 'button', href: '#/credentials' }, 'Clear')],
    });
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Credentials');
    return search;
  }
}

/**
 * One credential, and its entity tag.
 * @param {string} id
 */
export async function load(id) {
  const { body, etag } = await call('GET', `/organization-vault/${id}`);
  return { credential: /** @type {Credential} */ (body), etag: etag ?? '' };
}

customElements.define('ov-credentials', Credentials);
