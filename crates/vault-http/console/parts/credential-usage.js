// Who used a credential, who can, and who was denied.

import { call, query } from './api.js';
import { table } from './blocks.js';
import { h } from './dom.js';
import { live, time } from './parts.js';
import * as session from './session.js';
import { Names } from './words.js';
import { DENIED, DENIED_DAYS, deniedSince, denials, matches } from '../rules/denied.js';
import { users } from '../rules/holders.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Use} Use
 * @typedef {import('./api.js').Holder} Holder
 * @typedef {import('./api.js').Integration} Integration
 */

/** Uses of the log, of which the newest are shown. */
const LOG = 200;

/**
 * The integrations whose patterns match a namespace, for admins.
 * @param {string} namespace
 * @returns {Promise<Integration[]>}
 */
export async function permitted(namespace) {
  if (!session.isAdmin()) return [];
  const { body } = await call('GET', '/integrations?limit=1000');
  return body.filter((/** @type {Integration} */ { namespaces }) => matches(namespaces, namespace));
}

/**
 * How often each value occurs: "saved key (3), temporary credentials (1)".
 * @param {Use[]} uses
 * @param {(use: Use) => string | undefined} of
 */
function counted(uses, of) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const name of uses.map(of)) if (name) found.set(name, (found.get(name) ?? 0) + 1);
  return [...found].map(([name, number]) => (found.size > 1 ? `${name} (${number})` : name)).join(', ');
}

/** @param {Use} use */
const received = ({ form }) => (form === 'raw' ? 'saved key' : 'temporary credentials');

/**
 * The jobs that used the credential, one row for each, and the log of the newest uses.
 * @param {Credential} credential
 * @param {Holder[]} holders
 */
export async function usagePanel({ id, namespace }, holders) {
  const [{ body, next }, integrations] = await Promise.all([
    call('GET', `/organization-vault/${id}/activations?limit=${LOG}`),
    permitted(namespace),
  ]);
  /** @type {Use[]} */
  const uses = body;
  const of = (/** @type {string} */ job) => uses.filter(({ integration }) => integration === job);
  const shown = (/** @type {string} */ name) => {
    const found = integrations.find((one) => one.name === name)?.id;
    return found ? h('a', { href: `#/integrations/${found}` }, name) : name;
  };
  return [
    table(
      'Usage in the last 30 days',
      [
        { heading: 'Integration', cell: ({ job }) => shown(job) },
        { heading: 'Uses in 30 days', cell: ({ runs }) => runs.toLocaleString('en') },
        { heading: 'Last', cell: ({ last }) => time(last) },
        { heading: 'Received', cell: ({ job }) => counted(of(job), received) },
        { heading: 'Purpose', cell: ({ job }) => counted(of(job), ({ purpose }) => purpose) },
        { heading: 'Workload', cell: ({ job }) => counted(of(job), ({ workload }) => workload) || null },
      ],
      users(holders),
      'No job has used it in the last 30 days.',
    ),
    session.isAdmin() && access(integrations, shown),
    uses.length > 0 && log(uses, next !== null),
  ];
}

/**
 * @param {Integration[]} integrations
 * @param {(name: string) => import('./dom.js').Child} shown
 */
function access(integrations, shown) {
  if (!integrations.length) return h('p', null, 'No integration can use it.');
  const names = integrations.flatMap(({ name, state }, index) => [
    index ? ', ' : '',
    shown(name),
    state === 'active' ? '' : ` (${state})`,
  ]);
  return h('p', null, 'Can use it: ', ...names, '.');
}

/**
 * @param {Use[]} uses
 * @param {boolean} partial
 */
function log(uses, partial) {
  return h(
    'details',
    null,
    h('summary', null, 'Log'),
    table(
      'All uses',
      [
        { heading: 'When', cell: ({ at }) => time(at) },
        { heading: 'Integration', cell: ({ integration }) => integration },
        { heading: 'Version', cell: ({ version }) => version },
        { heading: 'Received', cell: received },
        { heading: 'Purpose', cell: ({ purpose }) => purpose ?? '' },
        { heading: 'Workload', cell: ({ workload }) => h('span', { class: 'long' }, workload ?? '') },
      ],
      uses,
      '',
    ),
    partial && h('p', { class: 'hint' }, `The newest ${LOG} are listed.`),
  );
}

/**
 * Jobs that were denied a namespace lately, for admins.
 * @param {string} namespace
 */
export async function deniedNote(namespace) {
  const filter = { namespace, actor: 'integration' };
  const { body } = await call('GET', `/audit${query({ ...filter, since: deniedSince(), limit: '1000' })}`);
  const found = denials(body);
  if (!found.length) return [];
  const names = await Names.load({ credentials: false });
  return [
    h(
      'p',
      { class: 'note warn' },
      h('strong', null, `Denied in the last ${DENIED_DAYS} days: `),
      found.flatMap(({ integration, action, count: times, last }, index) => [
        index ? ', ' : '',
        names.shown('integration', integration),
        ` (${DENIED[action]}) ${times}×, last `,
        live('relative', last),
      ]),
      '. ',
      h('a', { href: `#/audit${query(filter)}` }, 'See attempts'),
    ),
  ];
}
