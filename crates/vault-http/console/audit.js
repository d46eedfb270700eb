// The audit of the organization.

import { call, query } from './api.js';
import { go, h, parted } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { Page, paged, table, time } from './parts.js';

/** @typedef {import('./api.js').AuditEntry} AuditEntry */

/** @type {[string, string][]} */
const ACTORS = [['', 'Anybody'], ['account', 'Accounts'], ['integration', 'Integrations'], ['operator', 'Operators'], ['system', 'The system'], ['unknown', 'Unknown']];

/**
 * What the organization's accounts and integrations are called, by their ids.
 * @returns {Promise<Map<string, string>>}
 */
async function names() {
  try {
    const [accounts, integrations] = await Promise.all([call('GET', '/accounts?limit=1000'), call('GET', '/integrations?limit=1000')]);
    return new Map([
      ...accounts.body.map((/** @type {import('./api.js').Account} */ { id, email }) => [id, email]),
      ...integrations.body.map((/** @type {import('./api.js').Integration} */ { integration_id: id, name }) => [id, name]),
    ]);
  } catch {
    return new Map(); // ids say it too
  }
}

/** @param {AuditEntry} entry */
function details({ namespace, purpose, credentials, request_id: request, session, count }) {
  /** @type {[string, string | undefined][]} */
  const said = [['namespace', namespace], ['purpose', purpose], ['times', count && count > 1 ? String(count) : undefined],
    ['credentials', credentials?.map(({ id, version, form }) => `${id} version ${version} (${form})`).join(', ')]];
  /** @type {[string, string | undefined][]} */
  const ids = [['session', session], ['request', request]];
  const lines = (/** @type {[string, string | undefined][]} */ pairs) => pairs.filter(([, value]) => value)
    .map(([name, value]) => h('span', { class: 'block hint' }, `${name} `, h('code', null, value ?? '')));
  const traces = lines(ids);
  return [...lines(said), traces.length > 0 && h('details', { class: 'ids' }, h('summary', null, 'Ids'), traces)];
}

class Audit extends Page {
  label() {
    return 'Audit';
  }

  async content() {
    const get = (/** @type {string} */ name) => this.query.get(name) ?? '';
    const all = {
      since: field({ label: 'Since', pointer: '/since', type: 'datetime-local', value: writeTime(get('since') || undefined), parse: readTime }),
      until: field({ label: 'Until', pointer: '/until', type: 'datetime-local', value: writeTime(get('until') || undefined), parse: readTime }),
      action: field({ label: 'Action', pointer: '/action', value: get('action'), placeholder: 'credential.saved' }),
      actor: field({ label: 'By', pointer: '/actor', options: ACTORS, value: get('actor') }),
      subject: field({ label: 'About (id)', pointer: '/subject', value: get('subject') }),
    };
    for (const { row } of Object.values(all)) row.querySelector('.optional')?.remove();
    const filtered = [...this.query.values()].some(Boolean);
    const search = form({
      fields: () => Object.values(all), content: Object.values(all).map(({ row }) => row), submit: 'Filter', busy: 'Filter',
      send: async () => {
        const hash = `#/audit${query(Object.fromEntries(Object.entries(all).map(([name, { read }]) => [name, read()])))}`;
        if (location.hash === hash) await this.refresh();
        else go(hash);
      },
      buttons: [filtered && h('a', { class: 'button', href: '#/audit' }, 'Clear')],
    });
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Audit');
    const known = await names();
    const name = (/** @type {string | undefined} */ id) => {
      const found = id && known.get(id);
      return found ? parted(found) : id && h('code', null, id);
    };
    /** @param {string} subject a kind and an id, or a kind alone */
    const about = (subject) => {
      const [kind = '', id] = subject.split(':');
      return [id ? `${kind} ` : kind, name(id)];
    };
    /** @param {AuditEntry[]} rows */
    const view = (rows) => table('Audit', [
      ['When', ({ at }) => time(at)],
      ['Action', ({ action }) => action],
      ['By', ({ actor, account, integration, network }) => [account || integration ? `${actor} ` : actor, name(account ?? integration), network ? h('span', { class: 'block hint' }, `from ${network}`) : null]],
      ['About', ({ subject }) => about(subject)],
      ['Details', details],
    ], rows, filtered ? 'No entry fits these filters.' : 'No entries yet.');
    const wanted = { since: get('since'), until: get('until'), action: get('action'), actor: get('actor'), subject: get('subject'), limit: '50' };
    return [search, await paged(`/audit${query(wanted)}`, view, 'row')];
  }
}

customElements.define('ov-audit', Audit);
