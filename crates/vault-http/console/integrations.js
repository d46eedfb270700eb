// Integrations: programs that use credentials.

import { call } from './api.js';
import { h } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { Page, badge, confirm, day, openDialog, paged, secretBox, table, time } from './parts.js';

/** @typedef {import('./api.js').Integration} Integration */

/** @param {string} text */
const patterns = (text) => {
  const all = text.split(/[\n,]/).map((line) => line.trim()).filter(Boolean);
  return all.length ? all : undefined;
};

/** @type {[string, string][]} */
const OVERLAPS = [['0', 'At once'], ['3600', 'After 1 hour'], ['86400', 'After 24 hours'], ['604800', 'After 7 days']];

/**
 * A token, shown once.
 * @param {string} name
 * @param {string} token
 * @param {() => void} closed
 */
function showToken(name, token, closed) {
  const dialog = openDialog(`Token of ${name}`, (close) => [h('div', { class: 'page-body' },
    h('p', null, 'Give it to the owner of the job over a channel that you trust. It is not shown again.'),
    secretBox(token, 'the token'),
    h('p', { class: 'hint' }, 'The job reads it from a file: orgvault exec --token-file FILE --namespace NAMESPACE -- COMMAND'),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')))], true);
  dialog.addEventListener('close', closed);
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
  #done = '';

  label() {
    return 'Integrations';
  }

  async content() {
    this.actions(h('button', { type: 'button', class: 'primary', onclick: () => this.#create() }, 'Create an integration'));
    /** @param {Integration[]} rows */
    const view = (rows) => table('Integrations', [
      ['Name', ({ name }) => h('span', { class: 'long' }, name)],
      ['Namespaces', ({ namespaces }) => namespaces.map((pattern) => h('span', { class: 'label' }, pattern))],
      ['State', ({ state }) => badge(state, state === 'active' ? 'good' : 'bad')],
      ['Token last used', ({ last_used_at: at, previous_token_until: until }) => [time(at), until ? h('span', { class: 'hint block' }, 'previous token until ', time(until)) : null]],
      ['Expires', ({ expires_at: at }) => day(at, 'never')],
      ['(Actions)', (integration) => this.#buttons(integration)],
    ], rows, 'No integrations yet. Create one for each batch job: its token lets the job use the credentials of the namespaces that you name.');
    return [this.#done && h('p', { class: 'note good', role: 'status' }, this.#done), await paged('/integrations?limit=50', view, 'integration')];
  }

  /** @param {string} text */
  async #say(text) {
    this.#done = text;
    await this.refresh();
  }

  #create() {
    const name = field({ label: 'Name', pointer: '/name', required: true, placeholder: 'nightly import', maxlength: 64 });
    const { namespaces, expires } = placeFields({});
    openDialog('Create an integration', (close) => [form({
      fields: () => [name, namespaces, expires], content: [name.row, namespaces.row, expires.row], submit: 'Create', busy: 'Creating…',
      send: async () => {
        const { body } = await call('POST', '/integrations', { body: { name: name.read(), namespaces: namespaces.read(), expires_at: expires.read() } });
        close();
        showToken(body.name, body.token, () => void this.#say(`Created integration ${body.name}.`));
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }

  /** @param {Integration} integration */
  #buttons(integration) {
    const { integration_id: id, name, state } = integration;
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, danger = false) =>
      h('button', { type: 'button', class: danger ? 'quiet danger' : 'quiet', 'aria-label': `${text} ${name}`, onclick }, text);
    const turn = (/** @type {string} */ to) => async () => {
      await call('PATCH', `/integrations/${id}`, { body: { state: to } });
      await this.#say(to === 'active' ? `Enabled ${name}.` : `Disabled ${name}: its tokens do not work.`);
    };
    return h('div', { class: 'buttons' },
      button('New token', () => this.#rotate(integration)),
      button('Edit', () => this.#edit(integration)),
      state === 'active'
        ? button('Disable', () => confirm({ heading: `Disable ${name}?`, text: ['Its tokens stop working at once. Credentials already issued still work: revoke them at the storage provider.'], submit: 'Disable', busy: 'Disabling…', act: turn('disabled') }))
        : button('Enable', () => confirm({ heading: `Enable ${name}?`, text: ['Its tokens work again.'], submit: 'Enable', busy: 'Enabling…', danger: false, act: turn('active') })),
      button('Delete', () => confirm({ heading: `Delete ${name}?`, text: ['All its tokens are revoked, and its activations end.'], submit: 'Delete', busy: 'Deleting…', act: async () => {
        await call('DELETE', `/integrations/${id}`);
        await this.#say(`Deleted integration ${name}.`);
      } }), true));
  }

  /** @param {Integration} integration */
  #rotate({ integration_id: id, name }) {
    const overlap = field({ label: 'The old token stops working', pointer: '/overlap', options: OVERLAPS, value: '86400', parse: Number });
    openDialog(`New token for ${name}`, (close) => [form({
      fields: () => [overlap], content: [overlap.row], submit: 'Issue a new token', busy: 'One moment…',
      send: async () => {
        const { body } = await call('POST', `/integrations/${id}/rotate`, { body: { overlap: overlap.read() } });
        close();
        showToken(name, body.token, () => void this.#say(`Issued a new token for ${name}.`));
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }

  /** @param {Integration} integration */
  #edit(integration) {
    const { namespaces, expires } = placeFields(integration);
    const before = expires.control.value;
    openDialog(`Edit ${integration.name}`, (close) => [form({
      fields: () => [namespaces, expires], content: [namespaces.row, expires.row], submit: 'Save', busy: 'Saving…',
      send: async () => {
        const body = { namespaces: namespaces.read(), expires_at: expires.control.value === before ? undefined : expires.read() ?? null };
        await call('PATCH', `/integrations/${integration.integration_id}`, { body });
        close();
        await this.#say(`Saved ${integration.name}.`);
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }
}

customElements.define('ov-integrations', Integrations);
