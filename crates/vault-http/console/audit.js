// The audit of the organization.

import { call, query } from './api.js';
import { go, h } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { Page, exactTime, openDialog, paged, table } from './parts.js';
import { ACTIONS, Names, sentence } from './words.js';

/** @typedef {import('./api.js').AuditEntry} AuditEntry */

/** Actions of the operator's that no organization's audit has. */
const ELSEWHERE = /^(instance|database)\./;
/** @type {[string, string][]} */
const KINDS = [['', 'Anybody'], ['account', 'All accounts'], ['integration', 'All integrations'], ['operator', 'Operators'], ['system', 'The system'], ['unknown', 'Unknown']];
/** @type {[string, number][]} */
const SPANS = [['Last 24 hours', 1], ['Last 7 days', 7], ['Last 30 days', 30]];

class Audit extends Page {
  label() {
    return 'Audit';
  }

  async content() {
    const get = (/** @type {string} */ name) => this.query.get(name) ?? '';
    const names = await Names.load();
    const [accounts, integrations, credentials] = await Promise.all(['/accounts', '/integrations', '/organization-vault'].map(async (path) => (await call('GET', `${path}?limit=1000`)).body));
    const choice = (/** @type {string} */ id, /** @type {string} */ name) => /** @type {[string, string]} */ ([id, name]);
    /** @param {[string, string][]} options @param {string} value */
    const including = (options, value) => !value || options.some(([id]) => id === value) ? options : [...options, choice(value, names.of(value.split(':').at(-1)) ?? value)];
    const actors = including([...KINDS, ...accounts.map((/** @type {any} */ { id, email }) => choice(id, email)), ...integrations.map((/** @type {any} */ { id, name }) => choice(id, name))], get('actor'));
    const subjects = including([choice('', 'Anything'), ...credentials.map((/** @type {any} */ { id, namespace, type }) => choice(id, `${namespace} (${type})`)),
      ...integrations.map((/** @type {any} */ { id, name }) => choice(id, `integration ${name}`)), ...accounts.map((/** @type {any} */ { id, email }) => choice(id, email))], get('subject'));
    const actions = including([choice('', 'Anything'), ...Object.entries(ACTIONS).filter(([action]) => !ELSEWHERE.test(action)).map(([action, text]) => choice(action, inWords(action, text)))], get('action'));
    const all = {
      actor: field({ label: 'Who', pointer: '/actor', options: actors, value: get('actor') }),
      action: field({ label: 'Did what', pointer: '/action', options: actions, value: get('action') }),
      subject: field({ label: 'About', pointer: '/subject', options: subjects, value: get('subject') }),
      since: field({ label: 'Since', pointer: '/since', type: 'datetime-local', value: writeTime(get('since') || undefined), parse: readTime }),
      until: field({ label: 'Until', pointer: '/until', type: 'datetime-local', value: writeTime(get('until') || undefined), parse: readTime }),
    };
    for (const { row } of Object.values(all)) row.querySelector('.optional')?.remove();
    const filtered = [...this.query.values()].some(Boolean);
    const send = async () => {
      const hash = `#/audit${query(Object.fromEntries(Object.entries(all).map(([name, { read }]) => [name, read()])))}`;
      if (location.hash === hash) await this.refresh();
      else go(hash);
    };
    const search = form({
      fields: () => Object.values(all), content: Object.values(all).map(({ row }) => row), submit: 'Filter', busy: 'Filter', send,
      buttons: [
        ...SPANS.map(([text, days]) => h('button', { type: 'button', class: 'quiet', onclick: () => {
          all.since.write(writeTime(new Date(Date.now() - days * 86_400_000).toISOString()));
          all.until.write('');
          void send();
        } }, text)),
        filtered && h('a', { class: 'button', href: '#/audit' }, 'Clear')],
    });
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Audit');
    /** @param {AuditEntry[]} rows */
    const view = (rows) => table('Audit', [
      ['When', ({ at }) => exactTime(at)],
      ['What', (entry) => h('span', null, sentence(entry, names))],
      ['From', ({ network }) => network ?? null],
      ['(Entry)', (entry) => h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', 'aria-label': `The entry of ${entry.at}`, onclick: () => raw(entry) }, 'Entry'))],
    ], rows, filtered ? 'No entry of this part of the audit fits these filters.' : 'No entries yet.');
    const wanted = { since: get('since'), until: get('until'), action: get('action'), actor: get('actor'), subject: get('subject'), limit: '50' };
    return [search, await paged(`/audit${query(wanted)}`, view, 'entry')];
  }
}

/** What actions are about, by the first part of their names. @type {Record<string, string>} */
const SUBJECTS = {
  credential: 'a credential', credentials: 'a credential', integration: 'an integration', namespace: 'a namespace', activation: 'a namespace', receiver: 'a receiver',
};

/**
 * An action as a choice.
 * @param {string} action
 * @param {string} text
 */
function inWords(action, text) {
  return text.replace('%', SUBJECTS[action.split('.')[0] ?? ''] ?? 'an account');
}

/**
 * Shows an entry as the interface gives it.
 * @param {AuditEntry} entry
 */
function raw(entry) {
  openDialog('Audit entry', (close) => [h('div', { class: 'page-body' }, h('pre', { translate: 'no', tabindex: '0' }, JSON.stringify(entry, null, 2)),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close')))]);
}

customElements.define('ov-audit', Audit);
