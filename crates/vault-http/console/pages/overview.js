// What needs attention, and the latest activations; for a new organization, the steps to its first job.

import { call, query } from '../parts/api.js';
import { section } from '../parts/blocks.js';
import { CHART_DAYS, loadUsage, usageChart } from '../parts/chart.js';
import { attention } from '../parts/concerns.js';
import { h } from '../parts/dom.js';
import { count } from '../parts/forms.js';
import { loadAll } from '../parts/list.js';
import { Page, live } from '../parts/parts.js';
import * as session from '../parts/session.js';
import { AHEAD, concernsOf, grouped, listedRotations } from '../rules/concerns.js';
import { isKeyless } from '../rules/credentials.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Integration} Integration
 * @typedef {import('../parts/api.js').Account} Account
 * @typedef {import('../parts/api.js').NamespaceUsage} NamespaceUsage
 */

const DAY = 86_400_000;
/** Credentials that are searched, and namespaces. */
const SEARCHED = 5000;

class Overview extends Page {
  label() {
    return 'Overview';
  }

  async content() {
    const admin = session.isAdmin();
    const writes = session.mayWrite();
    const loaded = await loadKnown();
    const { credentials, integrations, usage } = loaded;
    session.update(loaded.own);
    if (writes) this.actions(h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'));
    const used = credentials.rows.some(({ last_activated_at: at }) => at);
    const isNew =
      writes &&
      !used &&
      (!credentials.rows.length || (admin && !integrations?.rows.length) || (usage !== null && !usage.uses.length));
    const urgent = credentials.partial ? await withUrgent(credentials.rows) : credentials.rows;
    const now = Date.now();
    const concerns = concernsOf({
      credentials: urgent,
      integrations: integrations?.rows ?? [],
      accounts: loaded.accounts?.rows ?? [],
      receivers: loaded.receivers,
      namespaces: loaded.namespaces.rows,
      usage,
      notices: loaded.own.notices,
      holders: writes ? await holdersOf(listedRotations(urgent)) : new Map(),
      writes,
      admin,
      days: CHART_DAYS,
      aside: new Map(loaded.aside.map(({ concern, until }) => [concern, until])),
      now,
    });
    const unknown = unknownOf(credentials.rows);
    return [
      isNew && this.#steps(credentials.rows, integrations?.rows ?? []),
      attention(grouped(concerns, now), {
        certain: !unknown.length,
        limits: limitsOf(unknown, credentials.partial),
        done: (text, undo) => (text ? this.done(text, undo) : this.refresh()),
      }),
      this.#numbers(credentials, integrations, loaded.accounts),
      usage && usage.uses.length + usage.denials.length > 0 && picture(usage),
    ];
  }

  /**
   * The way to the first job.
   * @param {Credential[]} credentials
   * @param {Integration[]} integrations
   */
  #steps(credentials, integrations) {
    const first = credentials[0];
    const token = integrations[0];
    /** @type {[boolean, string, import('../parts/dom.js').Child[]][]} */
    const steps = [
      [
        Boolean(first),
        'Save a credential',
        [
          first ? `${first.namespace} is saved.` : 'Paste the key that a job has now.',
          ' ',
          !first && h('a', { href: '#/credentials/new' }, 'Add a credential'),
        ],
      ],
      [
        Boolean(token),
        'Create an integration for the job',
        session.isAdmin()
          ? [
              token
                ? `${token.name} is created.`
                : 'It gets a token that lets it use the credentials of its namespaces.',
              ' ',
              !token &&
                h(
                  'a',
                  { href: `#/integrations${query({ create: first?.namespace ?? 'yes' })}` },
                  'Create an integration',
                ),
            ]
          : ['An admin of your organization does this.'],
      ],
      [
        false,
        'Run the job',
        [
          'The commands to paste are shown with the token',
          token && session.isAdmin()
            ? [', and under ', h('a', { href: `#/integrations/${token.id}?tab=connect` }, token.name)]
            : [],
          '. Its first use appears here.',
        ].flat(),
      ],
    ];
    const now = steps.findIndex(([done]) => !done);
    return section(
      'Three steps to the first job',
      h(
        'ol',
        { class: 'first-steps' },
        steps.map(([done, name, text], index) =>
          h(
            'li',
            { 'aria-current': index === now ? 'step' : null, class: done ? 'done' : null },
            h('strong', null, name, done && h('span', { class: 'hidden' }, ' (done)')),
            h('p', { class: 'hint' }, text),
          ),
        ),
      ),
    );
  }

  /**
   * @param {{rows: Credential[], partial: boolean}} credentials
   * @param {{rows: Integration[], partial: boolean} | null} integrations
   * @param {{rows: Account[], partial: boolean} | null} accounts
   */
  #numbers(credentials, integrations, accounts) {
    const number = (
      /** @type {{rows: unknown[], partial: boolean}} */ { rows, partial },
      /** @type {string} */ noun,
      /** @type {string} */ href,
    ) =>
      h(
        'a',
        { class: 'number', href },
        h('strong', null, rows.length.toLocaleString('en') + (partial ? '+' : '')),
        ` ${noun}${rows.length === 1 ? '' : 's'}`,
      );
    return h(
      'div',
      { class: 'numbers' },
      number(credentials, 'credential', '#/credentials'),
      integrations && number(integrations, 'integration', '#/integrations'),
      accounts && number(accounts, 'account', '#/accounts'),
    );
  }
}

/** All that the page knows. */
async function loadKnown() {
  const admin = session.isAdmin();
  const [credentials, integrations, accounts, namespaces, receivers, usage, { body: own }, { body: aside }] =
    await Promise.all([
      /** @type {Promise<{rows: Credential[], partial: boolean}>} */ (loadAll('/organization-vault', SEARCHED)),
      admin ? /** @type {Promise<{rows: Integration[], partial: boolean}>} */ (loadAll('/integrations')) : null,
      admin ? /** @type {Promise<{rows: Account[], partial: boolean}>} */ (loadAll('/accounts')) : null,
      /** @type {Promise<{rows: import('../parts/api.js').Namespace[], partial: boolean}>} */ (
        loadAll('/namespaces', SEARCHED)
      ),
      admin
        ? call('GET', '/receivers').then(({ body }) => /** @type {import('../parts/api.js').Receiver[]} */ (body))
        : [],
      admin ? loadUsage() : null,
      call('GET', '/account'),
      call('GET', '/account/set-aside'),
    ]);
  return {
    credentials,
    integrations,
    accounts,
    namespaces,
    receivers,
    usage,
    own,
    aside: /** @type {{concern: string, until: string}[]} */ (aside),
  };
}

/**
 * Who may still use other versions of credentials.
 * @param {Credential[]} rows
 */
async function holdersOf(rows) {
  return new Map(
    await Promise.all(
      rows.map(async ({ id }) => {
        const { body } = await call('GET', `/organization-vault/${id}/holders`);
        return /** @type {[string, import('../parts/api.js').Holder[]]} */ ([id, body]);
      }),
    ),
  );
}

/**
 * `rows`, and all others that fail or end soon, which the server looks for.
 * @param {Credential[]} rows
 */
async function withUrgent(rows) {
  const soon = new Date(Date.now() + AHEAD * DAY).toISOString().replace(/\.\d+Z$/, 'Z');
  const found = await Promise.all([
    loadAll(`/organization-vault${query({ health: 'failing' })}`),
    loadAll(`/organization-vault${query({ expires_before: soon })}`),
  ]);
  /** @type {Map<string, Credential>} */
  const all = new Map(
    [...rows, .../** @type {Credential[]} */ (found.flatMap(({ rows: more }) => more))].map((row) => [row.id, row]),
  );
  return [...all.values()];
}

/**
 * What the credentials do not say: "health of 3 credentials".
 * @param {Credential[]} rows
 */
function unknownOf(rows) {
  const unchecked = rows.filter(({ health }) => health.state !== 'expired' && !health.checked_at).length;
  const endless = rows.filter(({ type, expires_at: at }) => !at && !isKeyless(type)).length;
  return [
    unchecked && `health of ${count(unchecked, 'credential')}`,
    endless && `expiry of ${count(endless, 'credential')}`,
  ].filter(Boolean);
}

/**
 * @param {(string | number)[]} unknown
 * @param {boolean} partial
 */
function limitsOf(unknown, partial) {
  const most = SEARCHED.toLocaleString('en');
  return [
    unknown.length > 0 && `Not known: ${unknown.join(', ')}${partial ? `, among the newest ${most}` : ''}.`,
    partial && `Forgotten and unused credentials are searched among the newest ${most}.`,
  ]
    .filter(Boolean)
    .join(' ');
}

/**
 * Activations and denied attempts by day.
 * @param {NamespaceUsage} usage
 */
function picture(usage) {
  const sum = (/** @type {number[]} */ hours) => hours.reduce((total, number) => total + number, 0);
  const latest = usage.uses
    .toSorted((one, other) => one.last_activated_at.localeCompare(other.last_activated_at))
    .at(-1);
  return section(
    `Activations of the last ${CHART_DAYS} days`,
    usageChart(usage, { action: 'namespace.activated' }),
    h(
      'p',
      { class: 'hint' },
      `${count(sum(usage.activations), 'activation')}, ${sum(usage.denied).toLocaleString('en')} denied.`,
      latest ? [' The last one was ', live('relative', latest.last_activated_at), `, of ${latest.namespace}.`] : [],
      ' ',
      h('a', { href: `#/audit${query({ action: 'namespace.activated' })}` }, 'All activations'),
    ),
  );
}

customElements.define('ov-overview', Overview);
