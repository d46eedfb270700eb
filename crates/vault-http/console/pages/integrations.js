// Integrations: programs that use credentials.

import { call, query } from '../parts/api.js';
import { go, h, parted } from '../parts/dom.js';
import { checkbox, field, form } from '../parts/forms.js';
import { accessFields, actionsOf, showToken } from '../parts/integration-actions.js';
import { list, loadAll } from '../parts/list.js';
import { loadUsage } from '../parts/chart.js';
import { DENIED, DENIED_DAYS, deniedIn } from '../rules/denied.js';
import { Page, badge, day, flash, live, menu, openDialog, time } from '../parts/parts.js';

/** @typedef {import('../parts/api.js').Integration} Integration */

class Integrations extends Page {
  label() {
    return 'Integrations';
  }

  async content() {
    this.actions(
      h('button', { type: 'button', class: 'primary', onclick: () => this.#create() }, 'Create an integration'),
    );
    const [{ rows, partial }, recent, { body: usage }] = await Promise.all([
      /** @type {Promise<{rows: Integration[], partial: boolean}>} */ (loadAll('/integrations')),
      loadUsage({ days: DENIED_DAYS }),
      call('GET', '/integrations/usage'),
    ]);
    const create = this.once('create');
    if (create) queueMicrotask(() => this.#create(create === 'yes' ? '' : create));
    return [
      list({
        caption: 'Integrations',
        noun: 'integration',
        partial,
        file: 'integrations',
        rows,
        empty:
          'No integrations yet. Create one for each job: its token lets the job use the credentials of its namespaces.',
        columns: this.#columns(deniedIn(recent), usage),
      }),
    ];
  }

  /**
   * @param {import('../rules/denied.js').Denial[]} denied the latest first
   * @param {import('../parts/api.js').IntegrationUsage[]} usage
   * @returns {import('../parts/list.js').Column<Integration>[]}
   */
  #columns(denied, usage) {
    const usages = new Map(usage.map((one) => [one.id, one]));
    // The last use of the token does not include runs of trusted workloads.
    const lastRun = (/** @type {Integration} */ { id, last_used_at: at }) =>
      [usages.get(id)?.last_activated_at, at].filter(Boolean).sort().at(-1);
    const deniedOf = (/** @type {string} */ id) => denied.filter(({ integration }) => integration === id);
    const times = (/** @type {string} */ id) => deniedOf(id).reduce((sum, { count }) => sum + count, 0);
    return [
      {
        heading: 'Name',
        cell: ({ id, name, state, managed_by: set }) => [
          h('a', { class: 'long', href: `#/integrations/${id}` }, name),
          state === 'active' ? null : badge(state, 'bad'),
          set ? h('span', { class: 'hint block' }, `managed by documents: ${set}`) : null,
        ],
        value: ({ name }) => name,
      },
      {
        heading: 'Access',
        cell: ({ namespaces }) =>
          namespaces.map((pattern) => h('span', { class: 'label whole', translate: 'no' }, parted(pattern))),
        value: ({ namespaces }) => namespaces.join(' '),
      },
      {
        heading: 'Last run',
        cell: (row) => [
          time(lastRun(row)),
          row.previous_token_until
            ? h('span', { class: 'hint block' }, 'previous token until ', time(row.previous_token_until))
            : null,
        ],
        value: lastRun,
      },
      {
        heading: 'Runs (30 d)',
        cell: ({ id }) => usages.get(id)?.activations.toLocaleString('en') ?? null,
        value: ({ id }) => usages.get(id)?.activations,
      },
      {
        heading: `Denied (${DENIED_DAYS} d)`,
        cell: ({ id }) => deniedCell(deniedOf(id), times(id)),
        value: ({ id }) => times(id) || undefined,
      },
      { heading: 'Expires', cell: ({ expires_at: at }) => day(at, 'never'), value: ({ expires_at: at }) => at },
      {
        heading: '(Actions)',
        cell: (integration) => h('div', { class: 'buttons' }, menu(integration.name, actionsOf(integration, this))),
      },
    ];
  }

  /** @param {string} namespace */
  #create(namespace = '') {
    const name = field({
      label: 'Name',
      pointer: '/name',
      required: true,
      placeholder: 'nightly import',
      maxlength: 64,
    });
    const { namespaces, expires } = accessFields({ namespaces: namespace ? [namespace] : [] });
    const token = checkbox('Issue a token', {
      checked: true,
      hint: 'Not needed if the job has its own identity token: GitHub Actions, GitLab CI, Kubernetes, SPIFFE. Choose the trusted jobs next.',
    });
    openDialog('Create an integration', (close) => [
      form({
        fields: () => [name, namespaces, expires],
        content: [name.row, namespaces.row, expires.row, token.row],
        submit: 'Create',
        busy: 'Creating…',
        send: async () => {
          const { body } = await call('POST', '/integrations', {
            body: {
              name: name.read(),
              namespaces: namespaces.read(),
              expires_at: expires.read(),
              token: token.control.checked ? undefined : false,
            },
          });
          close();
          const open = (/** @type {string} */ tab) => {
            flash(`Created integration ${body.name}.`);
            go(`#/integrations/${body.id}?tab=${tab}`);
          };
          if (body.token) showToken(body, body.token, () => open('access'));
          else open('workloads');
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }
}

/**
 * @param {import('../rules/denied.js').Denial[]} denied
 * @param {number} times
 */
function deniedCell([latest], times) {
  if (!latest) return null;
  const { integration: actor, action, namespace, last } = latest;
  return [
    h('a', { class: 'over', href: `#/audit${query({ actor, action })}` }, `${times}×`),
    h('span', { class: 'hint block' }, `${DENIED[action]}${namespace ? `: ${namespace}` : ''}`),
    live('relative', last, 'ago'),
  ];
}

customElements.define('ov-integrations', Integrations);
