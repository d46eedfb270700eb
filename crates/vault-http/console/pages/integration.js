// One integration: what it may use, what it used, which workloads it trusts, and how a job is connected.

import { query } from '../parts/api.js';
import { CHART_DAYS, loadUsage, usageChart } from '../parts/chart.js';
import { place } from './credentials.js';
import { DENIED, deniedIn, matches } from '../rules/denied.js';
import { h, parted } from '../parts/dom.js';
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
    if (!integration) {
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
    const {
      name,
      state,
      last_used_at: used,
      previous_token_until: until,
      expires_at: expires,
      managed_by: set,
      namespaces,
    } = integration;
    this.heading(name);
    this.actions(
      h('a', { class: 'button primary', href: `#/integrations/${id}?tab=connect` }, 'Connect a job'),
      menu(name, actionsOf(integration, this)),
    );
    const [add = '', wanted] = ['add', 'edit'].map((one) => this.once(one));
    if (add || wanted) queueMicrotask(() => edit(integration, this, add));
    const { uses } = usage;
    const denied = deniedIn(usage);
    const times = denied.reduce((sum, one) => sum + one.count, 0);
    const runs = uses.reduce((sum, { activations }) => sum + activations, 0);
    const last = uses
      .map(({ last_activated_at: at }) => at)
      .sort()
      .at(-1);
    return [
      set &&
        h(
          'p',
          { class: 'note' },
          'This integration is managed by the documents ',
          h('code', null, set),
          '. Applying them overwrites changes that are made here.',
        ),
      strip([
        [
          'State',
          badge(state, state === 'active' ? 'good' : 'bad'),
          [
            'Token last used ',
            used ? live('relative', used) : 'never',
            until ? [', previous token until ', time(until)] : [],
          ].flat(),
        ],
        [
          'Runs',
          uses.length ? `${runs.toLocaleString('en')} in ${CHART_DAYS} days` : 'None',
          last ? ['Last ', live('relative', last)] : [`in ${CHART_DAYS} days`],
        ],
        [
          'Denied',
          times ? h('span', { class: 'over' }, `${times.toLocaleString('en')}×`) : 'None',
          denied[0]
            ? [`${DENIED[denied[0].action]}, last `, live('relative', denied[0].last)]
            : [`in ${CHART_DAYS} days`],
        ],
        [
          'Expires',
          expires ? live('deadline', expires) : 'Never',
          [h('button', { type: 'button', class: 'quiet', onclick: () => edit(integration, this) }, 'Change')],
        ],
      ]),
      tabs(this, name, [
        [
          'access',
          'Access',
          [
            access(namespaces, credentials),
            partial && h('p', { class: 'hint' }, `Among the newest ${SEARCHED.toLocaleString('en')} credentials.`),
          ],
        ],
        ['runs', 'Runs', runsOf(id, usage, denied)],
        ['workloads', 'Trusted workloads', [trusts(integration)]],
        ['connect', 'Connect', [jobLines(integration)]],
      ]),
    ];
  }
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
      ['Pattern', (pattern) => h('code', null, parted(pattern))],
      [
        'Credentials',
        (pattern) => {
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
      ],
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
        ['Namespace', ({ namespace }) => h('a', { href: `#/credentials${query({ namespace })}` }, parted(namespace))],
        ['Runs', ({ activations }) => activations.toLocaleString('en')],
        ['How often', (use) => rhythm(use, CHART_DAYS)],
        ['Last', ({ last_activated_at: at }) => time(at)],
      ],
      usage.uses.toSorted((one, other) => other.last_activated_at.localeCompare(one.last_activated_at)),
      `No runs in the last ${CHART_DAYS} days.`,
    ),
    denied.length > 0 &&
      table(
        'Denied',
        [
          ['Denied', ({ namespace = '' }) => h('code', null, namespace)],
          ['Reason', ({ action }) => DENIED[action]],
          [
            'Attempts',
            ({ action, namespace, count: times }) =>
              h(
                'a',
                { class: 'over', href: `#/audit${query({ actor: id, action, namespace })}` },
                `${times.toLocaleString('en')}×`,
              ),
          ],
          ['Last', ({ last }) => time(last)],
        ],
        denied,
        '',
      ),
    h('p', null, h('a', { href: `#/audit${query({ actor: id })}` }, 'All entries of the audit log')),
  ];
}

customElements.define('ov-integration', IntegrationPage);
