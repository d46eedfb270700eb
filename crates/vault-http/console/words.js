// The audit in words: what each action is called, and what an entry says.

import { call } from './api.js';
import { h, parted } from './dom.js';
import * as session from './session.js';

/** @typedef {import('./api.js').AuditEntry} AuditEntry */

/**
 * Each action in words: who did it comes before, what it is about stands for `%`.
 * @type {Record<string, string>}
 */
export const ACTIONS = {
  'credential.saved': 'saved %', 'credential.staged': 'staged a new version of %', 'credential.promoted': 'promoted a version of %',
  'credential.replaced': 'replaced the key of %', 'credential.version-destroyed': 'destroyed a version of %', 'credential.described': 'changed labels, description, expiry or rule of %',
  'credential.vend-relaxed': 'let jobs get % as it is', 'credential.vend-restricted': 'let jobs get % only as short-lived credentials',
  'credential.matched': 'compared data with %', 'credential.check-requested': 'asked for a check of %', 'credential.failing': 'found that % is not accepted any more',
  'credential.healthy': 'found that % is accepted', 'credential.deleted': 'deleted %', 'credentials.listed': 'listed the credentials', 'credential.shown': 'looked at %',
  'namespace.activated': 'used %', 'activation.begun': 'began to use %', 'activation.renewal-begun': 'began to use % for longer', 'activation.renewed': 'used % for longer', 'activation.renewal-failed': 'could not use % for longer', 'activation.ended': 'ended %', 'activation.refused': 'was refused: the namespace is empty or too large, or too many activations live',
  'activation.refused-outside': 'was refused: the namespace is not one of its own', 'activation.refused-token': 'was refused: the token is replaced, expired or disabled', 'activation.refused-workload': 'was refused: no trust allows the workload',
  'activation.refused-frozen': 'was refused: the namespace is frozen', 'activation.failed': 'could not be given %', 'namespace.checked': 'checked %',
  'namespace.frozen': 'froze %', 'namespace.thawed': 'thawed %',
  'integration.created': 'created %', 'integration.rotated': 'issued a new token for %', 'integration.disabled': 'disabled %', 'integration.enabled': 'enabled %',
  'integration.changed': 'changed %', 'integration.deleted': 'deleted %', 'integration.trusted': 'let workloads act for %', 'integration.distrusted': 'ended a trust of %',
  'receiver.added': 'added %', 'receiver.changed': 'changed what % is told', 'receiver.secret-replaced': 'made a new signing secret of %', 'receiver.removed': 'removed %', 'receiver.disabled': 'disabled %: it wants no more, or belongs to nobody any more', 'receiver.tested': 'sent a test to %', 'receiver.resent': 'sent an event to % again',
  'account.created': 'created %', 'account.invited': 'invited %', 'invitation.address-in-use': 'could not invite somebody: the address is in use', 'account.enrolment-refused': 'tried a wrong code to enrol as %',
  'account.enrolment-drafted': 'began to enrol as %', 'account.enrolled': 'enrolled as %', 'invitation.role-changed': 'changed the role of %', 'invitation.deleted': 'withdrew the invitation of %',
  'account.disabled': 'disabled %', 'account.enabled': 'enabled %', 'account.deleted': 'deleted %', 'account.role-changed': 'changed the role of %', 'account.password-changed': 'changed the password of %',
  'account.passcode-reset': 'replaced passcode and recovery codes of %', 'account.re-enrolled': 'had % enrol again', 'account.passcode-drafted': 'asked for a new authenticator of %', 'account.passcode-changed': 'changed the authenticator of %',
  'account.passcode-unconfirmed': 'entered a wrong code for the new authenticator of %', 'account.recovery-codes-replaced': 'made new recovery codes of %', 'account.unlocked': 'unlocked %', 'account.passcode-read': 'printed the passcode of %',
  'login.succeeded': 'signed in', 'login.refused': 'was refused at login (password, or closed account)', 'login.passcode-refused': 'was refused at login (wrong passcode)', 'login.turned-away': 'was turned away at login',
  'login.class-closed': 'closed logins after too many failures of %', 'login.passcode-disabled': 'disabled passcodes after too many failures of %', 'session.logged-out': 'signed out', 'session.ended': 'ended a session of %',
  'audit.listed': 'read the audit', 'audit.delivery-reset': 'had the audit delivered anew', 'audit.cut': 'removed audit entries whose time was over', 'row.state-recorded': 'recorded the state of %',
  'organization.created': 'created the organization', 'organization.disabled': 'disabled the organization', 'organization.enabled': 'enabled the organization', 'organization.deleted': 'deleted the organization',
  'organization.key-replaced': 'replaced the key of the organization', 'organization.key-destroyed': 'destroyed an old key of the organization', 'instance.created': 'created the instance', 'issuer.added': 'added an issuer of identity tokens', 'issuer.removed': 'removed an issuer of identity tokens', 'instance.root-key-replaced': 'replaced the root key',
  'instance.key-replaced': 'replaced the instance key', 'instance.key-destroyed': 'destroyed an old instance key', 'database.key-read': "printed the database's key", 'database.copied': 'copied the database',
  'database.backed-up': 'backed up the database', 'database.restored': 'restored the database',
};

/** What kinds of actors are called where nothing else is known of them. @type {Record<string, string>} */
const ACTORS = { operator: 'An operator', system: 'The system', unknown: 'Somebody', embedder: 'The program around the vault', account: 'An account', integration: 'An integration' };

/** What the organization's accounts, integrations and credentials are called, by their ids. */
export class Names {
  /** @type {Map<string, string>} */
  #names = new Map();

  /** Loads what an admin can see. */
  static async load() {
    const names = new Names();
    const lists = [session.isAdmin() && '/accounts?limit=1000', session.isAdmin() && '/integrations?limit=1000', session.isAdmin() && '/receivers', '/organization-vault?limit=1000'].map(async (path) => {
      if (!path) return;
      try {
        for (const item of (await call('GET', path)).body) names.#names.set(item.id, item.email ?? item.name ?? item.url ?? item.to ?? item.namespace);
      } catch {
        // Ids say it too.
      }
    });
    await Promise.all(lists);
    return names;
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
    if (kind === 'credential') return name ? h('a', { href: `#/credentials/${id}` }, parted(name)) : h('span', null, 'a deleted credential ', h('code', null, id));
    return name ? parted(name) : h('code', null, id);
  }
}

/**
 * Who did what an entry says.
 * @param {AuditEntry} entry
 * @param {Names} names
 */
export function who({ actor, account, integration }, names) {
  const id = account ?? integration;
  if (id) return h('strong', null, names.shown('account', id));
  return h('strong', null, ACTORS[actor] ?? actor);
}

/**
 * An entry as a sentence.
 * @param {AuditEntry} entry
 * @param {Names} names
 * @param {{without?: string}} [options] `without`: the id that everything is about, and goes without saying
 * @returns {(Node | string)[]}
 */
export function sentence(entry, names, { without } = {}) {
  const { action, subject, namespace, count: times, purpose, credentials = [] } = entry;
  const [kind = '', id] = subject.split(':');
  const text = ACTIONS[action] ?? `${action} %`;
  const own = id === entry.account && id !== undefined;
  const [before = '', after] = text.split('%');
  /** @type {(Node | string)[]} */
  let about = [];
  if (after !== undefined) {
    if (kind === 'activation' || kind === 'namespace' || (namespace && !id)) about = [namespace ? h('code', null, namespace) : 'an activation'];
    else if (id && id === without) about = ['it'];
    else if (own) about = ['the own account'];
    else if (id) about = [kind === 'credential' ? '' : `${kind} `, names.shown(kind, id)];
    else about = [kind === 'vault' ? 'credentials' : kind];
  }
  const forms = credentials.filter((one) => !without || one.id === without).map(({ id: one, version, form }) => [without ? '' : credentials.length > 1 ? [names.of(one) ?? one, ' '].join('') : '', `version ${version}`, form === 'raw' ? '' : ` (${form})`].join(''));
  return [who(entry, names), ' ', before, ...about, after ?? '', forms.length ? `, ${forms.join(', ')}` : '', times && times > 1 ? `, ${times} times` : '', purpose ? [', for “', purpose, '”'].join('') : '', '.'];
}
