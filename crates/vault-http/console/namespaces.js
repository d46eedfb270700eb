// Namespaces, frozen and thawed.

import { call, query } from './api.js';
import { h } from './dom.js';
import { count, field, form } from './forms.js';
import { Page, badge, confirm, openDialog, paged, table } from './parts.js';

/** @typedef {import('./api.js').Namespace} Namespace */

/** The server counts no further. */
const MOST = 1000;

class Namespaces extends Page {
  #done = '';

  label() {
    return 'Namespaces';
  }

  async content() {
    this.actions(h('button', { type: 'button', onclick: () => this.#freezeNamed() }, 'Freeze a namespace'));
    /** @param {Namespace[]} rows */
    const view = (rows) => table('Namespaces', [
      ['Namespace', ({ namespace }) => h('a', { class: 'long', href: `#/credentials${query({ namespace })}` }, namespace)],
      ['Credentials', ({ credentials }) => credentials >= MOST ? '1,000 or more' : credentials],
      ['State', ({ frozen }) => frozen ? badge('frozen', 'warn') : badge('open', 'good')],
      ['(Actions)', (row) => this.#button(row)],
    ], rows, 'No namespaces yet. Saving a credential creates its namespace.');
    return [this.#done && h('p', { class: 'note good', role: 'status' }, this.#done), await paged('/namespaces?limit=50', view, 'namespace')];
  }

  /** @param {string} text */
  async #say(text) {
    this.#done = text;
    await this.refresh();
  }

  /** @param {string} namespace */
  async #freeze(namespace) {
    const { body } = await call('POST', '/namespaces/freeze', { body: { namespace } });
    const concerned = `${count(body.credentials, 'credential')}, ${count(body.integrations, 'integration')}`;
    const doubt = body.credentials || body.integrations ? '' : ' Nothing is in it: check the spelling.';
    await this.#say(`Froze ${namespace} (${concerned}). New activations are refused. Credentials already issued still work: revoke them at the storage provider.${doubt}`);
  }

  #freezeNamed() {
    const namespace = field({ label: 'Namespace', pointer: '/namespace', required: true, mono: true, placeholder: 'imports/nightly' });
    openDialog('Freeze a namespace', (close) => [form({
      fields: () => [namespace], content: [h('p', null, 'All activations of it are refused until it is thawed, also before it holds a credential.'), namespace.row], submit: 'Freeze', busy: 'Freezing…',
      send: async () => {
        await this.#freeze(namespace.read());
        close();
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
    })]);
  }

  /** @param {Namespace} row */
  #button({ namespace, frozen }) {
    const ask = () => frozen
      ? confirm({ heading: `Thaw ${namespace}?`, text: ['Jobs can use its credentials again.'], submit: 'Thaw', busy: 'Thawing…', danger: false, act: async () => {
        await call('POST', '/namespaces/thaw', { body: { namespace } });
        await this.#say(`Thawed ${namespace}.`);
      } })
      : confirm({ heading: `Freeze ${namespace}?`, text: ['All activations of it are refused until it is thawed: jobs that use it fail.'], submit: 'Freeze', busy: 'Freezing…', act: () => this.#freeze(namespace) });
    const text = frozen ? 'Thaw' : 'Freeze';
    return h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', 'aria-label': `${text} ${namespace}`, onclick: ask }, text));
  }
}

customElements.define('ov-namespaces', Namespaces);
