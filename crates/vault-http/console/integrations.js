// Integrations: programs that use credentials.

import { call, query } from './api.js';
import { h, parted } from './dom.js';
import { checkbox, field, form, readTime, writeTime } from './forms.js';
import { jobLines } from './jobs.js';
import { list, loadAll } from './list.js';
import { DENIED, DENIED_DAYS, loadDenials } from './denied.js';
import { Page, badge, confirm, day, live, menu, openDialog, secretBox, time } from './parts.js';
import { showTrusts } from './trusts.js';

/** @typedef {import('./api.js').Integration} Integration */

/** @param {string} text */
const patterns = (text) => {
  const all = text.split(/[\n,]/).map((line) => line.trim()).filter(Boolean);
  return all.length ? all : undefined;
};

/** @type {[string, string][]} */
const OVERLAPS = [['0', 'Immediately'], ['3600', 'After 1 hour'], ['86400', 'After 24 hours'], ['604800', 'After 7 days']];

/** An integration whose token was used within so many days is deleted only after its name is typed. */
const IN_USE = 30;

/**
 * A token, shown once.
 * @param {import('./jobs.js').Job} integration
 * @param {string} token
 * @param {() => void} closed
 */
function showToken(integration, token, closed) {
  const { name } = integration;
  const dialog = openDialog(`Token of ${name}`, (close) => [h('div', { class: 'page-body' },
    h('p', null, 'Give it to the owner of the job over a channel that you trust. It is shown only once.'),
    secretBox(token, 'the token'),
    h('h3', null, 'Connect a job'), jobLines(integration),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')))], true);
  dialog.classList.add('wide');
  dialog.addEventListener('close', closed);
}

/**
 * How the job of an integration is connected.
 * @param {Integration} integration
 */
function showLines(integration) {
  openDialog(`Connect ${integration.name}`, (close) => [h('div', { class: 'page-body' }, jobLines(integration),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close')))]).classList.add('wide');
}

/** @param {Partial<Integration>} integration */
function placeFields({ namespaces = [], expires_at: at }) {
  return {
    namespaces: field({ label: 'Namespaces', pointer: '/namespaces', rows: 3, required: true, mono: true, value: namespaces.join('\n'), placeholder: 'imports/nightly\nexports/*',
      hint: 'One in each line. A name, or a prefix and /* for all below it.', parse: patterns }),
    expires: field({ label: 'Expires', pointer: '/expires_at', type: 'datetime-local', value: writeTime(at), parse: readTime }),
  };
}

class Integrations extends Page {
  label() {
    return 'Integrations';
  }

  async content() {
    this.actions(h('button', { type: 'button', class: 'primary', onclick: () => this.#create() }, 'Create an integration'));
    const [{ rows, partial }, { rows: denied }] = await Promise.all([/** @type {Promise<{rows: Integration[], partial: boolean}>} */ (loadAll('/integrations')), loadDenials()]);
    const deniedOf = (/** @type {string} */ id) => denied.filter(({ integration }) => integration === id);
    const times = (/** @type {string} */ id) => deniedOf(id).reduce((sum, { count }) => sum + count, 0);
    const [named, lines, create, edit, add] = ['name', 'lines', 'create', 'edit', 'add'].map((name) => this.query.get(name) ?? '');
    this.query = new URLSearchParams(); // what the address asks for is opened once
    if (create) queueMicrotask(() => this.#create(create === 'yes' ? '' : create));
    const wanted = rows.find(({ id }) => id === lines);
    if (wanted) queueMicrotask(() => showLines(wanted));
    const edited = rows.find(({ id }) => id === edit);
    if (edited) queueMicrotask(() => this.#edit(edited, add));
    return [list({
      caption: 'Integrations', noun: 'integration', partial, file: 'integrations',
      rows: named ? rows.toSorted((one, other) => Number(other.name === named) - Number(one.name === named)) : rows,
      empty: 'No integrations yet. Create one for each job: its token lets the job use the credentials of its namespaces.',
      columns: [
        { heading: 'Name', cell: ({ name, managed_by: set }) => [h('span', { class: 'long' }, name), set ? h('span', { class: 'hint block' }, `managed by documents: ${set}`) : null], value: ({ name }) => name },
        { heading: 'Namespaces', cell: ({ namespaces }) => namespaces.map((pattern) => h('span', { class: 'label whole', translate: 'no' }, parted(pattern))), value: ({ namespaces }) => namespaces.join(' ') },
        { heading: 'State', cell: ({ state }) => badge(state, state === 'active' ? 'good' : 'bad'), value: ({ state }) => state },
        { heading: 'Token last used', cell: ({ last_used_at: at, previous_token_until: until }) => [time(at), until ? h('span', { class: 'hint block' }, 'previous token until ', time(until)) : null], value: ({ last_used_at: at }) => at },
        { heading: `Denied (${DENIED_DAYS} d)`, cell: ({ id }) => {
          const [latest] = deniedOf(id);
          return latest ? [h('a', { class: 'over', href: `#/audit${query({ actor: id, action: latest.action })}` }, `${times(id)}×`), h('span', { class: 'hint block' }, `${DENIED[latest.action]}${latest.namespace ? `: ${latest.namespace}` : ''}`), live('relative', latest.last, 'ago')] : null;
        }, value: ({ id }) => times(id) || undefined },
        { heading: 'Expires', cell: ({ expires_at: at }) => day(at, 'never'), value: ({ expires_at: at }) => at },
        { heading: '(Actions)', cell: (integration) => this.#buttons(integration) },
      ],
    })];
  }

  /** @param {string} namespace */
  #create(namespace = '') {
    const name = field({ label: 'Name', pointer: '/name', required: true, placeholder: 'nightly import', maxlength: 64 });
    const { namespaces, expires } = placeFields({ namespaces: namespace ? [namespace] : [] });
    const token = checkbox('Issue a token', { checked: true, hint: 'Not needed if the job has its own identity token: GitHub Actions, GitLab CI, Kubernetes, SPIFFE. Choose the trusted jobs next.' });
    openDialog('Create an integration', (close) => [form({
      fields: () => [name, namespaces, expires], content: [name.row, namespaces.row, expires.row, token.row], submit: 'Create', busy: 'Creating…',
      send: async () => {
        const { body } = await call('POST', '/integrations', { body: { name: name.read(), namespaces: namespaces.read(), expires_at: expires.read(), token: token.control.checked ? undefined : false } });
        close();
        if (!body.token) {
          await this.done(`Created integration ${body.name}.`);
          showTrusts(body);
          return;
        }
        showToken(body, body.token, () => void this.done(`Created integration ${body.name}.`));
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }

  /** @param {Integration} integration */
  #buttons(integration) {
    const { id, name, state, last_used_at: used } = integration;
    const inUse = used !== undefined && Date.now() - Date.parse(used) < IN_USE * 86_400_000;
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, danger = false) =>
      h('button', { type: 'button', class: danger ? 'quiet danger' : 'quiet', 'aria-label': `${text} ${name}`, onclick }, text);
    const turn = (/** @type {string} */ to) => async () => {
      await call('PATCH', `/integrations/${id}`, { body: { state: to } });
      await this.done(to === 'active' ? `Enabled ${name}.` : `Disabled ${name}. Its tokens do not work.`);
    };
    return h('div', { class: 'buttons' },
      button('Connect a job', () => showLines(integration)), menu(name, [
      button('Trusted workloads', () => showTrusts(integration)),
      button('New token', () => this.#rotate(integration)),
      button('Edit', () => this.#edit(integration)),
      state === 'active'
        ? button('Disable', () => confirm({ heading: `Disable ${name}?`, text: ['Its tokens stop working immediately. Credentials already issued still work: revoke them at the storage provider.'], submit: 'Disable', busy: 'Disabling…', act: turn('disabled') }))
        : button('Enable', () => confirm({ heading: `Enable ${name}?`, text: ['Its tokens work again.'], submit: 'Enable', busy: 'Enabling…', danger: false, act: turn('active') })),
      button('Delete', () => confirm({ heading: `Delete ${name}?`, submit: 'Delete', busy: 'Deleting…', typed: inUse ? name : '',
        text: [inUse ? h('p', { class: 'note bad' }, h('strong', null, 'In use. '), 'Its token was last used ', time(used), '.') : 'Its token was not used in the last 30 days.', 'All its tokens are revoked, and its activations end. Its jobs are denied from then on.'], act: async () => {
        await call('DELETE', `/integrations/${id}`);
        await this.done(`Deleted integration ${name}.`);
      } }), true)]));
  }

  /** @param {Integration} integration */
  #rotate(integration) {
    const { id, name } = integration;
    const overlap = field({ label: 'The old token stops working', pointer: '/overlap', options: OVERLAPS, value: '86400', parse: Number });
    openDialog(`New token for ${name}`, (close) => [form({
      fields: () => [overlap], content: [overlap.row], submit: 'Issue a new token', busy: 'One moment…',
      send: async () => {
        const { body } = await call('POST', `/integrations/${id}/rotate`, { body: { overlap: overlap.read() } });
        close();
        showToken(integration, body.token, () => void this.done(`Issued a new token for ${name}.`));
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }

  /**
   * @param {Integration} integration
   * @param {string} [add] a namespace to add
   */
  #edit(integration, add = '') {
    const { namespaces, expires } = placeFields(integration);
    if (add) namespaces.write([...integration.namespaces, add].join('\n'));
    const before = expires.text();
    openDialog(`Edit ${integration.name}`, (close) => [form({
      fields: () => [namespaces, expires], content: [namespaces.row, expires.row], submit: 'Save', busy: 'Saving…',
      send: async () => {
        const body = { namespaces: namespaces.read(), expires_at: expires.text() === before ? undefined : expires.read() ?? null };
        await call('PATCH', `/integrations/${integration.id}`, { body });
        close();
        await this.done(`Saved ${integration.name}.`);
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }
}

customElements.define('ov-integrations', Integrations);
