// One integration: what it may use, what it used, which workloads it trusts, and how a job is connected.

import { query } from '../parts/api.js';
import { CHART_DAYS, loadUsage, usageChart } from '../parts/chart.js';
import { place } from '../rules/credentials.js';
import { DENIED, deniedIn, matches } from '../rules/denied.js';
import { button, h, parted } from '../parts/dom.js';
import { count } from '../parts/forms.js';
import { actionsOf, edit } from '../parts/integration-actions.js';
import { jobLines } from '../parts/jobs.js';
import { loadAll } from '../parts/list.js';
import { Page, badge, live, menu, time } from '../parts/parts.js';
import { strip, table } from '../parts/blocks.js';
import { tabs } from '../parts/tabs.js';
import { trusts } from '../parts/trusts.js';
import { rhythm } from '../rules/usage.js';

/**
 * @typedef {import('../parts/api.js').Integration} Integration
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').NamespaceUsage} NamespaceUsage
 */

/** Credentials that are listed for each pattern. */
const EACH = 20;
/** Credentials that are searched. */
const SEARCHED = 5000;

class IntegrationPage extends Page {
  label() {
    return 'Integration';
  }

  async content() {
    const id = this.params[0] ?? '';
    const [{ rows: all }, { rows: credentials, partial }, usage] = await Promise.all([
      /** @type {Promise<{rows: Integration[]}>} */ (loadAll('/integrations')),
      /** @type {Promise<{rows: Credential[], partial: boolean}>} */ (loadAll('/organization-vault', SEARCHED)),
      loadUsage({ integration: id }),
    ]);
    this.crumbs(h('a', { href: '#/integrations' }, 'Integrations'), ' /');
    const integration = all.find((one) => one.id === id);
    if (!integration) return missing(id);
    const { name, managed_by: set, namespaces } = integration;
    this.heading(name);
    this.actions(
      h('a', { class: 'button primary', href: `#/integrations/${id}?tab=connect` }, 'Connect a job'),
      menu(name, actionsOf(integration, this)),
    );
    const [add = '', wanted] = ['add', 'edit'].map((one) => this.once(one));
    if (add || wanted) queueMicrotask(() => edit(integration, this, add));
    const denied = deniedIn(usage);
    return [
      set &&
        h(
          'p',
          { class: 'note' },
          'This integration is managed by the documents ',
          h('code', null, set),
          '. Applying them overwrites changes that are made here.',
        ),
      factsOf(integration, usage, denied, () => edit(integration, this)),
      tabs(this, name, [
        {
          name: 'access',
          heading: 'Access',
          content: () => [
            access(namespaces, credentials),
            partial && h('p', { class: 'hint' }, `Among the newest ${SEARCHED.toLocaleString('en')} credentials.`),
          ],
        },
        { name: 'runs', heading: 'Runs', content: () => runsOf(id, usage, denied) },
        { name: 'workloads', heading: 'Trusted workloads', content: () => trusts(integration) },
        { name: 'connect', heading: 'Connect', content: () => jobLines(integration) },
      ]),
    ];
  }
}

/** @param {string} id */
function missing(id) {
  return [
    h('p', { class: 'empty' }, 'This integration does not exist. It may have been deleted.'),
    h(
      'p',
      { class: 'buttons' },
      h('a', { class: 'button primary', href: '#/integrations' }, 'All integrations'),
      h('a', { class: 'button', href: `#/audit${query({ subject: id })}` }, 'Search the audit log'),
    ),
  ];
}

/**
 * The most important facts.
 * @param {Integration} integration
 * @param {import('../parts/api.js').NamespaceUsage} usage
 * @param {import('../rules/denied.js').Denial[]} denied the latest first
 * @param {() => void} change
 */
function factsOf(
  { state, last_used_at: used, previous_token_until: until, expires_at: expires },
  usage,
  denied,
  change,
) {
  const times = denied.reduce((sum, one) => sum + one.count, 0);
  const runs = usage.uses.reduce((sum, { activations }) => sum + activations, 0);
  const last = usage.uses
    .map(({ last_activated_at: at }) => at)
    .sort()
    .at(-1);
  const [latest] = denied;
  const period = `in ${CHART_DAYS} days`;
  return strip([
    {
      name: 'State',
      value: badge(state, state === 'active' ? 'good' : 'bad'),
      more: [
        'Token last used ',
        used ? live('relative', used) : 'never',
        until ? [', previous token until ', time(until)] : [],
      ].flat(),
    },
    {
      name: 'Runs',
      value: runs ? `${runs.toLocaleString('en')} ${period}` : 'None',
      more: last ? ['Last ', live('relative', last)] : [period],
    },
    {
      name: 'Denied',
      value: times ? h('span', { class: 'over' }, `${times.toLocaleString('en')}×`) : 'None',
      more: latest ? [`${DENIED[latest.action]}, last `, live('relative', latest.last)] : [period],
    },
    {
      name: 'Expires',
      value: expires ? live('deadline', expires) : 'Never',
      more: [button('Change', change, { class: 'quiet' })],
    },
  ]);
}

/**
 * The patterns of an integration, and the credentials that each matches now.
 * @param {string[]} patterns
 * @param {Credential[]} credentials
 */
function access(patterns, credentials) {
  return table(
    'Access',
    [
      { heading: 'Pattern', cell: (pattern) => h('code', null, parted(pattern)) },
      {
        heading: 'Credentials',
        cell: (pattern) => {
          const found = credentials
            .filter(({ namespace }) => matches([pattern], namespace))
            .toSorted((one, other) => one.namespace.localeCompare(other.namespace));
          if (!found.length) return h('span', { class: 'muted' }, 'None. Its jobs are denied until one is saved.');
          const listed = h(
            'ul',
            { class: 'plain' },
            found
              .slice(0, EACH)
              .map((one) =>
                h(
                  'li',
                  null,
                  h('a', { href: `#/credentials/${one.id}` }, parted(one.namespace)),
                  h('span', { class: 'hint' }, ` ${place(one)}`),
                ),
              ),
          );
          return [
            listed,
            found.length > EACH
              ? h(
                  'a',
                  { href: `#/credentials${query({ namespace: pattern.replace(/\*$/, '') })}` },
                  `All ${count(found.length, 'credential')}`,
                )
              : null,
          ];
        },
      },
    ],
    patterns,
    '',
  );
}

/**
 * @param {string} id
 * @param {NamespaceUsage} usage
 * @param {import('../rules/denied.js').Denial[]} denied
 */
function runsOf(id, usage, denied) {
  return [
    usage.uses.length + denied.length > 0 && usageChart(usage, { actor: id }),
    table(
      'Runs',
      [
        {
          heading: 'Namespace',
          cell: ({ namespace }) => h('a', { href: `#/credentials${query({ namespace })}` }, parted(namespace)),
        },
        { heading: 'Runs', cell: ({ activations }) => activations.toLocaleString('en') },
        { heading: 'How often', cell: (use) => rhythm(use, CHART_DAYS) },
        { heading: 'Last', cell: ({ last_activated_at: at }) => time(at) },
      ],
      usage.uses.toSorted((one, other) => other.last_activated_at.localeCompare(one.last_activated_at)),
      `No runs in the last ${CHART_DAYS} days.`,
    ),
    denied.length > 0 &&
      table(
        'Denied',
        [
          { heading: 'Denied', cell: ({ namespace = '' }) => h('code', null, namespace) },
          { heading: 'Reason', cell: ({ action }) => DENIED[action] },
          {
            heading: 'Attempts',
            cell: ({ action, namespace, count: times }) =>
              h(
                'a',
                { class: 'over', href: `#/audit${query({ actor: id, action, namespace })}` },
                `${times.toLocaleString('en')}×`,
              ),
          },
          { heading: 'Last', cell: ({ last }) => time(last) },
        ],
        denied,
        '',
      ),
    h('p', null, h('a', { href: `#/audit${query({ actor: id })}` }, 'All entries of the audit log')),
  ];
}

customElements.define('ov-integration', IntegrationPage);
