// Namespaces, frozen and thawed.

import { call, query } from '../parts/api.js';
import { h, parted } from '../parts/dom.js';
import { count, field, form } from '../parts/forms.js';
import { confirmFreeze } from '../parts/freezing.js';
import { some } from '../rules/freezing.js';
import { doSeveral, list, loadAll } from '../parts/list.js';
import { Page, badge, confirm, live, openDialog } from '../parts/parts.js';
import { Names, who } from '../parts/words.js';

/** @typedef {import('../parts/api.js').Namespace} Namespace */

/** The server counts no further. */
const MOST = 1000;

class Namespaces extends Page {
  label() {
    return 'Namespaces';
  }

  async content() {
    this.actions(h('button', { type: 'button', onclick: () => this.#freezeNamed() }, 'Freeze a namespace'));
    const [{ rows: loaded, partial }, { body: freezes }, names] = await Promise.all([
      /** @type {Promise<{rows: Namespace[], partial: boolean}>} */ (loadAll('/namespaces')),
      call('GET', `/audit${query({ action: 'namespace.frozen', limit: '1000' })}`),
      Names.load({ credentials: false }),
    ]);
    const freezeOf = (/** @type {string} */ one) =>
      /** @type {import('../parts/api.js').AuditEntry[]} */ (freezes).find(({ namespace }) => namespace === one);
    const [named, freeze] = [this.query.get('namespace'), this.once('freeze')];
    if (freeze) queueMicrotask(() => this.#confirm({ namespace: freeze, frozen: false }));
    const rows = loaded.toSorted(
      (one, other) =>
        Number(other.namespace === named) - Number(one.namespace === named) ||
        Number(other.frozen) - Number(one.frozen),
    );
    return [
      list({
        caption: 'Namespaces',
        noun: 'namespace',
        rows,
        partial,
        file: 'namespaces',
        empty: 'No namespaces yet. Saving a credential creates its namespace.',
        rowName: ({ namespace }) => namespace,
        several: [
          { name: 'Freeze', act: (chosen) => this.#several('Freeze', chosen) },
          { name: 'Thaw', act: (chosen) => this.#several('Thaw', chosen) },
        ],
        columns: [
          {
            heading: 'Namespace',
            cell: ({ namespace }) =>
              h('a', { class: 'long', href: `#/credentials${query({ namespace })}` }, parted(namespace)),
            value: ({ namespace }) => namespace,
          },
          {
            heading: 'Credentials',
            cell: ({ credentials }) => (credentials >= MOST ? '1,000 or more' : credentials),
            value: ({ credentials }) => credentials,
          },
          {
            heading: 'State',
            cell: ({ namespace, frozen }) =>
              frozen ? [badge('frozen', 'warn'), frozenBy(freezeOf(namespace), names)] : null,
            value: ({ frozen }) => (frozen ? 'frozen' : ''),
          },
          { heading: '(Actions)', cell: (row) => this.#button(row) },
        ],
      }),
    ];
  }

  /**
   * Freezes or thaws several.
   * @param {'Freeze' | 'Thaw'} what
   * @param {Namespace[]} rows
   */
  #several(what, rows) {
    const freezes = what === 'Freeze';
    const act = async () =>
      void doSeveral({
        heading: what,
        rows,
        name: ({ namespace }) => namespace,
        done: () => void this.refresh(),
        act: async ({ namespace }) => {
          await call('POST', `/namespaces/${what.toLowerCase()}`, { body: { namespace } });
          return freezes ? 'Frozen: new activations are refused.' : 'Thawed.';
        },
      });
    const names = rows.map(({ namespace }) => namespace);
    if (freezes) void confirmFreeze(names, act);
    else
      confirm({
        heading: `Thaw ${count(rows.length, 'namespace')}?`,
        submit: 'Thaw',
        busy: 'One moment…',
        danger: false,
        text: ['Jobs can use their credentials again.', some(names)],
        act,
      });
  }

  /** @param {string} namespace */
  async #freeze(namespace) {
    const { body } = await call('POST', '/namespaces/freeze', { body: { namespace } });
    const concerned = `${count(body.credentials, 'credential')}, ${count(body.integrations, 'integration')}`;
    const doubt = body.credentials || body.integrations ? '' : ' Nothing is in it: check the spelling.';
    await this.done(
      `Froze ${namespace} (${concerned}). New activations are refused. Credentials already issued still work: revoke them at the storage provider.${doubt}`,
      () => this.#thaw(namespace),
    );
  }

  /** @param {string} namespace */
  async #thaw(namespace) {
    await call('POST', '/namespaces/thaw', { body: { namespace } });
    await this.done(`Thawed ${namespace}.`, () => this.#freeze(namespace));
  }

  #freezeNamed() {
    const namespace = field({
      label: 'Namespace',
      pointer: '/namespace',
      required: true,
      mono: true,
      placeholder: 'imports/nightly',
    });
    openDialog('Freeze a namespace', (close) => [
      form({
        fields: () => [namespace],
        content: [
          h('p', null, 'All activations of it are refused until it is thawed, also before it holds a credential.'),
          namespace.row,
        ],
        submit: 'Freeze',
        busy: 'Freezing…',
        send: async () => {
          await this.#freeze(namespace.read());
          close();
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }

  /** @param {Pick<Namespace, 'namespace' | 'frozen'>} row */
  #confirm({ namespace, frozen }) {
    if (frozen) {
      confirm({
        heading: `Thaw ${namespace}?`,
        text: ['Jobs can use its credentials again.'],
        submit: 'Thaw',
        busy: 'Thawing…',
        danger: false,
        act: () => this.#thaw(namespace),
      });
    } else void confirmFreeze([namespace], () => this.#freeze(namespace));
  }

  /** @param {Namespace} row */
  #button(row) {
    const { namespace, frozen } = row;
    const text = frozen ? 'Thaw' : 'Freeze';
    return h(
      'div',
      { class: 'buttons' },
      h(
        'button',
        { type: 'button', class: 'quiet', 'aria-label': `${text} ${namespace}`, onclick: () => this.#confirm(row) },
        text,
      ),
    );
  }
}

/**
 * Who froze a namespace, and when.
 * @param {import('../parts/api.js').AuditEntry | undefined} entry
 * @param {Names} names
 */
function frozenBy(entry, names) {
  return entry ? h('span', { class: 'hint' }, ' by ', who(entry, names), ', ', live('relative', entry.at)) : null;
}

customElements.define('ov-namespaces', Namespaces);
