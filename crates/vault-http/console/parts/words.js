// The audit log in words: the actions, and entries as sentences.

import { call } from './api.js';
import { h, parted } from './dom.js';
import * as session from './session.js';

/** @typedef {import('./api.js').AuditEntry} AuditEntry */

/**
 * Each action in words: who did it comes before, what it is about stands for `%`.
 * @type {Record<string, string>}
 */
export const ACTIONS = {
  'credential.saved': 'saved %',
  'credential.staged': 'staged a new version of %',
  'credential.promoted': 'promoted a version of %',
  'credential.replaced': 'replaced the key of %',
  'credential.version-destroyed': 'destroyed a version of %',
  'credential.described': 'changed labels, description, expiry or rule of %',
  'credential.vend-relaxed': 'let jobs receive the saved key of %',
  'credential.vend-restricted': 'restricted % to temporary credentials',
  'credential.matched': 'compared data with %',
  'credential.check-requested': 'requested a check of %',
  'credential.failing': 'checked %: the check failed',
  'credential.healthy': 'checked %: the check passed',
  'credential.deleted': 'deleted %',
  'credentials.listed': 'listed the credentials',
  'credential.shown': 'looked at %',
  'namespace.activated': 'used %',
  'activation.started': 'started to use %',
  'activation.renewal-started': 'started to renew its use of %',
  'activation.renewed': 'renewed its use of %',
  'activation.renewal-failed': 'could not renew its use of %',
  'activation.ended': 'stopped using %',
  'activation.refused': 'was denied %: it has no credentials or too many, or the integration has too many active runs',
  'activation.refused-outside': 'was denied %: the integration has no access to it',
  'activation.refused-token': 'was denied %: the token was replaced, has expired or is disabled',
  'activation.refused-workload': 'was denied %: no trust matches the workload',
  'activation.refused-frozen': 'was denied %: it is frozen',
  'activation.failed': 'was denied %: its credentials could not be issued',
  'namespace.checked': 'checked %',
  'namespace.frozen': 'froze %',
  'namespace.thawed': 'thawed %',
  'integration.created': 'created %',
  'integration.rotated': 'issued a new token for %',
  'integration.disabled': 'disabled %',
  'integration.enabled': 'enabled %',
  'integration.changed': 'changed %',
  'integration.deleted': 'deleted %',
  'integration.trusted': 'let workloads act for %',
  'integration.distrusted': 'ended a trust of %',
  'receiver.added': 'added %',
  'receiver.changed': 'changed events or state of %',
  'receiver.secret-replaced': 'issued a new signing secret for %',
  'receiver.removed': 'removed %',
  'receiver.disabled': 'turned off %: the receiver is gone, or its address has no active user',
  'receiver.tested': 'sent a test to %',
  'receiver.resent': 'resent an event to %',
  'account.created': 'created %',
  'account.invited': 'invited %',
  'invitation.address-in-use': 'could not invite a user: the address is in use',
  'account.enrolment-refused': 'tried a wrong code to enrol as %',
  'account.enrolment-drafted': 'started to enrol as %',
  'account.enrolled': 'enrolled as %',
  'invitation.role-changed': 'changed the role in the invitation of %',
  'invitation.deleted': 'withdrew the invitation of %',
  'account.disabled': 'disabled %',
  'account.enabled': 'enabled %',
  'account.deleted': 'deleted %',
  'account.role-changed': 'changed the role of %',
  'account.password-changed': 'changed the password of %',
  'account.re-enrolled': 'reset the sign-in of %',
  'account.passcode-drafted': 'requested a new authenticator for %',
  'account.passcode-changed': 'changed the authenticator of %',
  'account.passcode-change-refused': 'entered a wrong code for the new authenticator of %',
  'account.recovery-codes-replaced': 'replaced the recovery codes of %',
  'account.unlocked': 'unlocked %',
  'login.succeeded': 'signed in',
  'login.refused': 'failed to sign in as %: wrong password, or the account is disabled',
  'login.passcode-refused': 'failed to sign in as %: wrong passcode',
  'login.throttled': 'failed to sign in as %: unknown address, lockout or disabled passcodes',
  'login.locked': 'locked % after too many failed sign-ins',
  'login.passcode-disabled': 'disabled passcodes of % after too many wrong ones',
  'session.logged-out': 'signed out',
  'session.ended': 'ended a session of %',
  'audit.listed': 'read the audit log',
  'audit.delivery-reset': 'restarted audit log delivery',
  'audit.truncated': 'removed audit entries past their retention',
  'row.state-recorded': 'recorded the state of %',
  'organization.created': 'created the organization',
  'organization.disabled': 'disabled the organization',
  'organization.enabled': 'enabled the organization',
  'organization.deleted': 'deleted the organization',
  'organization.key-replaced': 'replaced the key of the organization',
  'organization.key-destroyed': 'destroyed an old key of the organization',
  'instance.created': 'created the instance',
  'issuer.added': 'added an issuer of identity tokens',
  'issuer.removed': 'removed an issuer of identity tokens',
  'instance.root-key-replaced': 'replaced the root key',
  'federation.key-added': 'added a signing key of keyless storage access',
  'federation.key-promoted': 'made a signing key the current one',
  'federation.key-retired': 'retired a signing key',
  'federation.key-removed': 'removed a signing key',
  'instance.key-replaced': 'replaced the instance key',
  'instance.key-destroyed': 'destroyed an old instance key',
  'database.copied': 'copied the database',
  'database.backed-up': 'backed up the database',
  'database.restored': 'restored the database',
};

/** Groups of actions, by the start of their names, with the objects that they are about. @type {[RegExp, string, string][]} */
export const GROUPS = [
  [/^credential/, 'Credentials', 'a credential'],
  [/^(namespace|activation)/, 'Jobs and namespaces', 'a namespace'],
  [/^integration/, 'Integrations', 'an integration'],
  [/^(account|invitation)/, 'Users', 'a user'],
  [/^(login|session)/, 'Sign-in', 'a user'],
  [/^receiver/, 'Notifications', 'a receiver'],
  [/./, 'Organization and audit log', 'the organization'],
];

/**
 * An action with the kind of its object: "added a receiver".
 * @param {string} action
 */
export function actionText(action) {
  const object = GROUPS.find(([start]) => start.test(action))?.[2] ?? 'an object';
  return (ACTIONS[action] ?? action).replace('%', object);
}

/** The names of actors without an id. @type {Record<string, string>} */
const ACTORS = {
  operator: 'An operator',
  system: 'The system',
  unknown: 'An unknown client',
  embedder: 'The program around the vault',
  account: 'An account',
  integration: 'An integration',
};

/** What the organization's accounts, integrations and credentials are called, by their ids. */
export class Names {
  /** @type {Map<string, string>} */
  #names = new Map();
  /** Loaded lists, by path. @type {Map<string, any[]>} */
  #lists = new Map();
  /** The paths of which all objects are loaded. @type {Set<string>} */
  #whole = new Set();

  /**
   * Loads the names that an admin can see.
   * @param {{credentials?: boolean}} [options] `credentials`: whether credentials other than that of the page are named
   */
  static async load({ credentials = true } = {}) {
    const names = new Names();
    const paths = [
      ...(session.isAdmin() ? ['/accounts', '/integrations', '/receivers'] : []),
      ...(credentials ? ['/organization-vault'] : []),
    ];
    await Promise.all(
      paths.map(async (path) => {
        try {
          const { body, next } = await call('GET', path === '/receivers' ? path : `${path}?limit=1000`);
          names.#lists.set(path, body);
          if (!next) names.#whole.add(path);
          for (const item of body)
            names.#names.set(item.id, item.email ?? item.name ?? item.url ?? item.to ?? item.namespace);
        } catch {
          // Without its name, an object is shown with its ID.
        }
      }),
    );
    return names;
  }

  /**
   * The objects behind a path.
   * @param {string} path
   */
  list(path) {
    return this.#lists.get(path) ?? [];
  }

  /** @param {string | undefined} id */
  of(id) {
    return id === undefined ? undefined : this.#names.get(id);
  }

  /** All of a kind are found by a part of their names. */
  entries() {
    return [...this.#names];
  }

  /**
   * A name in the page: a link where there is a page of it.
   * @param {string} kind
   * @param {string} id
   */
  shown(kind, id) {
    const name = this.of(id);
    if (kind === 'credential')
      return name
        ? h('a', { href: `#/credentials/${id}` }, parted(name))
        : this.#whole.has('/organization-vault')
          ? h('span', null, 'a deleted credential ', h('code', null, id))
          : h('span', null, 'credential ', h('a', { href: `#/credentials/${id}` }, h('code', null, id)));
    if (kind === 'integration' && name) return h('a', { href: `#/integrations/${id}` }, parted(name));
    return name ? parted(name) : h('code', null, id);
  }
}

/**
 * A sentence for an entry: actor and action.
 * @param {AuditEntry} entry
 * @param {Names} names
 */
export function who({ actor, account, integration }, names) {
  const id = account ?? integration;
  if (id) return h('strong', null, names.shown(account ? 'account' : 'integration', id));
  return h('strong', null, ACTORS[actor] ?? actor);
}

/** Why sign-ins failed. @type {Record<string, string>} */
const SIGN_INS = {
  'login.refused': 'wrong password, or the account is disabled',
  'login.passcode-refused': 'wrong passcode',
  'login.throttled': 'unknown address, lockout or disabled passcodes',
};

/** Refusals that programs repeat. */
const REPEATED = /^(login\.(refused|passcode-refused|throttled)|activation\.(refused|failed))/;

/**
 * Entries of which consecutive repetitions of the same refusal are one, with the sum of their counts.
 * @param {AuditEntry[]} entries
 * @returns {{entry: AuditEntry, all: AuditEntry[]}[]}
 */
export function withoutRepetitions(entries) {
  /** @type {{entry: AuditEntry, all: AuditEntry[]}[]} */
  const found = [];
  const same = (/** @type {AuditEntry} */ one) =>
    JSON.stringify([one.action, one.subject, one.integration, one.account, one.namespace, one.purpose, one.network]);
  for (const entry of entries) {
    const last = found.at(-1);
    if (last && REPEATED.test(entry.action) && same(last.entry) === same(entry)) {
      last.entry.count = (last.entry.count ?? 1) + (entry.count ?? 1);
      last.all.push(entry);
    } else found.push({ entry: { ...entry }, all: [entry] });
  }
  return found;
}

/**
 * An entry as a sentence.
 * @param {AuditEntry} entry
 * @param {Names} names
 * @param {{without?: string}} [options] `without`: the id that everything is about, and goes without saying
 * @returns {(Node | string)[]}
 */
export function sentence(entry, names, { without } = {}) {
  const { action, subject, namespace, count: times = 1, purpose, credentials = [], changes = [] } = entry;
  const [kind = '', id] = subject.split(':');
  const often = times > 1 ? `, ${times.toLocaleString('en')}×` : '';
  const failed = SIGN_INS[action];
  if (failed && !entry.account)
    return [
      'Failed sign-in',
      id ? [' for ', h('strong', null, names.shown(kind, id))] : [],
      entry.network ? ` from ${entry.network}` : '',
      `: ${failed}${often}.`,
    ].flat();
  const version = changes.find(({ field }) => field === 'version');
  const number = version?.to ?? version?.from;
  const text = (ACTIONS[action] ?? `${action} %`).replace(/\ba (new )?version\b/, number ? `version ${number}` : '$&');
  const own = id === entry.account && id !== undefined;
  const [before = '', after] = text.split('%');
  /** @type {(Node | string)[]} */
  let about = [];
  if (after !== undefined) {
    if (kind === 'activation' || kind === 'namespace' || action.startsWith('activation.') || (namespace && !id))
      about = [namespace ? h('code', null, namespace) : 'a namespace'];
    else if (id && id === without) about = ['it'];
    else if (own) about = ['their own account'];
    else if (id) about = [kind === 'credential' ? '' : `${kind} `, names.shown(kind, id)];
    else about = [kind === 'vault' ? 'credentials' : kind];
  }
  const forms = credentials
    .filter((one) => !without || one.id === without)
    .map(({ id: one, version: issued, form }) =>
      [
        without ? '' : credentials.length > 1 ? [names.of(one) ?? one, ' '].join('') : '',
        `version ${issued}`,
        form === 'raw' ? '' : ' (temporary)',
      ].join(''),
    );
  return [
    who(entry, names),
    ' ',
    before,
    ...about,
    after ?? '',
    action === 'credential.replaced' && number ? ` (version ${number})` : '',
    forms.length ? `, ${forms.join(', ')}` : '',
    often,
    purpose ? [', for “', purpose, '”'].join('') : '',
    '.',
  ];
}
