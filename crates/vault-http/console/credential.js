// One credential: what it is, its versions, where it is used.

import { call, query } from './api.js';
import { announce, go, h } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { Page, badge, confirm, copyButton, exactTime, facts, flash, healthBadge, openDialog, paged, section, table, time } from './parts.js';
import { check } from './checking.js';
import { TYPE_NAMES, labels, load } from './credentials.js';
import { readLabels } from './credential-form.js';
import { REMEDIES } from './remedies.js';
import * as session from './session.js';
import { Names, sentence } from './words.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Version} Version
 */

/** Entries of the audit that a story is told from. */
const STORY = '200';

/** @type {Record<string, string>} */
const NAMES = {
  access_key_id: 'Access key ID', bucket: 'Bucket', region: 'Region', endpoint: 'Endpoint', key_prefix: 'Key prefix',
  path_style_access: 'Path-style access', role_arn: 'Role ARN', sts_endpoint: 'STS endpoint', sse_kms_key_id: 'KMS key', tenant_id: 'Tenant ID', client_id: 'Client ID', container: 'Container',
  account_name: 'Account', has_account_key: 'Holds an account key', client_email: 'Service account', project_id: 'Project',
  private_key_id: 'Private key ID', scheme: 'Scheme', host: 'Host', expires_at: 'Signature expires',
};

/** @param {unknown} value */
function plain(value) {
  return typeof value === 'boolean' ? value ? 'yes' : 'no' : String(value);
}

class CredentialPage extends Page {
  #etag = '';

  label() {
    return 'Credential';
  }

  get #path() {
    return `/organization-vault/${this.params[0]}`;
  }

  async content() {
    const [{ credential, etag }, { body: versions }] = await Promise.all([load(this.params[0] ?? ''), call('GET', `${this.#path}/versions`)]);
    this.#etag = etag;
    this.heading(credential.namespace);
    const writes = session.mayWrite();
    if (writes) {
      this.actions(
        credential.staged_version
          ? h('a', { class: 'button primary', href: `#/credentials/${credential.id}/rotate` }, 'Go on with the rotation')
          : h('a', { class: 'button primary', href: `#/credentials/${credential.id}/replace` }, 'Rotate the key'),
        session.server().checks && h('button', { type: 'button', onclick: () => void this.#check() }, 'Check now'),
        h('a', { class: 'button', href: `#/credentials/${credential.id}/match` }, 'Compare'),
        h('button', { type: 'button', onclick: () => this.#edit(credential) }, 'Edit'),
        h('button', { type: 'button', class: 'danger', onclick: () => this.#delete(credential) }, 'Delete'));
    }
    const [frozen, others] = await Promise.all([this.#frozen(credential), call('GET', `/organization-vault${query({ namespace: credential.namespace, limit: '2' })}`)]);
    return [
      frozen && h('p', { class: 'note warn' }, `The namespace ${credential.namespace} is frozen: all activations of it are refused until it is thawed. `, h('a', { href: '#/namespaces' }, 'Namespaces')),
      others.body.length > 1 && h('p', { class: 'note' }, `${credential.namespace} has several credentials. Its jobs have to say which one: `, h('code', null, `--id ${credential.id}`)),
      writes && !session.server().checks && h('p', { class: 'hint' }, 'This server does not check saved credentials. An operator turns that on with --recheck-every or --verify-on-save.'),
      this.#overview(credential), this.#versions(versions), await this.#story(credential, versions), writes && await this.#uses(),
    ];
  }

  /** @param {Credential} credential */
  async #frozen({ namespace }) {
    if (!session.isAdmin()) return false;
    const { body } = await call('GET', '/namespaces?limit=1000');
    return body.some((/** @type {import('./api.js').Namespace} */ one) => one.namespace === namespace && one.frozen);
  }

  /**
   * What has happened to the credential, newest first: to admins as the audit has it, to others as far as it shows.
   * @param {Credential} credential
   * @param {Version[]} versions
   */
  async #story(credential, versions) {
    /** @type {[string, import('./dom.js').Child | import('./dom.js').Child[]][]} */
    let events = [];
    if (session.isAdmin()) {
      const [{ body, next }, names] = await Promise.all([call('GET', `/audit${query({ subject: credential.id, limit: STORY })}`), Names.load()]);
      const told = merged(body.filter((/** @type {import('./api.js').AuditEntry} */ { action }) => !['credential.shown', 'activation.begun', 'activation.renewal-begun'].includes(action)));
      events = told.map((entry) => [entry.at, sentence(entry, names, { without: credential.id })]);
      if (next) events.push(['', h('a', { href: `#/audit${query({ subject: credential.id })}` }, 'Earlier entries')]);
    } else {
      /** @type {import('./api.js').Use[]} */
      const uses = session.mayWrite() ? (await call('GET', `${this.#path}/activations?limit=${STORY}`)).body : [];
      events = [
        ...uses.map(({ integration, at, purpose }) => /** @type {[string, string]} */ ([at, `${integration} used it${purpose ? `, for “${purpose}”` : ''}.`])),
        ...versions.map(({ version, created_at: at }) => /** @type {[string, string]} */ ([at, version === 1 ? 'It was saved.' : `Version ${version} was saved.`])),
        ...versions.flatMap(({ version, health }) => health?.checked_at ? [/** @type {[string, string]} */ ([health.checked_at, `Version ${version} was checked: ${health.state}.`])] : []),
        ...(credential.last_activated_at && !uses.length ? [/** @type {[string, string]} */ ([credential.last_activated_at, 'A job used it last.'])] : []),
        ...(versions.some(({ version }) => version === 1) ? [] : [/** @type {[string, string]} */ ([credential.created_at, 'It was saved.'])]),
      ];
      events.sort(([one], [other]) => other.localeCompare(one));
    }
    return section('What happened', h('ol', { class: 'story' }, events.map(([at, text]) => h('li', null, at && exactTime(at), h('p', null, text)))));
  }

  /** @param {Credential} credential */
  #overview(credential) {
    const { information = {}, health } = credential;
    const known = Object.entries(information).filter(([name]) => !['secrets', 'fingerprint'].includes(name));
    const checked = health.checked_at ? h('span', { class: 'hint block' }, 'checked ', time(health.checked_at)) : null;
    return section('Overview',
      credential.damaged && h('p', { class: 'note bad' }, 'The information of this credential does not decrypt. Ask the operator to restore it from a backup, or replace its data.'),
      credential.description && h('p', null, credential.description),
      facts([
        ['Type', TYPE_NAMES[credential.type]],
        ['Health', [healthBadge(health), checked, health.reason && REMEDIES[health.reason] ? h('span', { class: 'hint block' }, REMEDIES[health.reason]) : null]],
        ...known.map(([name, value]) => /** @type {[string, any]} */ ([NAMES[name] ?? name, name === 'expires_at' ? time(value) : h('code', null, plain(value))])),
        ['Secrets that are set', (information.secrets ?? []).map((/** @type {string} */ name) => h('span', { class: 'label' }, name))],
        ['Fingerprint', h('code', null, information.fingerprint ?? '')],
        ['Expires', time(credential.expires_at, 'not known')],
        ['Handed out', credential.vend === 'short' ? 'only as short-lived credentials' : 'as jobs ask for it'],
        ['Labels', Object.keys(credential.labels ?? {}).length ? labels(credential) : h('span', { class: 'muted' }, 'none')],
        ['Last used', time(credential.last_activated_at)],
        ['Created', time(credential.created_at)],
        ['Changed', time(credential.updated_at)],
        ['Id', [h('code', null, credential.id), ' ', copyButton(credential.id, 'the id')]],
      ]));
  }

  /** @param {Version[]} versions */
  #versions(versions) {
    const writes = session.mayWrite();
    /** @type {[string, (version: Version) => any][]} */
    const columns = [
      ['Version', ({ version }) => `Version ${version}`],
      ['State', ({ state }) => badge(state, { current: 'good', staged: 'warn', previous: 'plain' }[state])],
      ['Health', ({ health }) => health ? healthBadge(health) : h('span', { class: 'muted' }, 'unchecked')],
      ['Fingerprint', ({ information }) => h('code', null, information?.fingerprint ?? '')],
      ['Saved', ({ created_at: at }) => time(at)],
    ];
    if (writes) columns.push(['(Actions)', (version) => this.#versionButtons(version)]);
    return section('Versions', table('Versions', columns, versions, 'No versions.'));
  }

  /** @param {Version} version */
  #versionButtons({ version, state }) {
    const check = session.server().checks && h('button', { type: 'button', class: 'quiet', 'aria-label': `Check version ${version}`, onclick: () => void this.#check(version) }, 'Check');
    if (state === 'current') return h('div', { class: 'buttons' }, check);
    return h('div', { class: 'buttons' },
      h('button', { type: 'button', class: 'quiet', 'aria-label': `Promote version ${version}`, onclick: () => confirm({
        heading: `Promote version ${version}?`, danger: false, submit: 'Promote', busy: 'Promoting…',
        text: ['Jobs get this version from now on. The version that is current now is kept, so you can go back.'],
        act: () => this.#change('POST', '/promote', `Version ${version} is current: jobs get it from now on.`, { version }),
      }) }, 'Promote'),
      check,
      h('button', { type: 'button', class: 'quiet danger', 'aria-label': `Destroy version ${version}`, onclick: () => confirm({
        heading: `Destroy version ${version}?`, submit: 'Destroy', busy: 'Destroying…',
        text: ['Its data key is destroyed: nobody can bring this version back.'],
        act: () => this.#change('DELETE', `/versions/${version}`, `Version ${version} is destroyed.`),
      }) }, 'Destroy'));
  }

  async #uses() {
    /** @param {import('./api.js').Use[]} uses */
    const view = (uses) => table('Where it is used', [
      ['When', ({ at }) => time(at)],
      ['Integration', ({ integration }) => integration],
      ['Form', ({ form }) => form === 'raw' ? 'the key itself' : 'short-lived'],
      ['Purpose', ({ purpose }) => purpose ?? ''],
      ['Workload', ({ workload }) => h('span', { class: 'long' }, workload ?? '')],
    ], uses, 'No job has used it in the last 30 days.');
    return section('Where it is used', await paged(`${this.#path}/activations?limit=20`, view, 'use'));
  }

  /**
   * Sends a change of what was shown, refused if somebody else has changed it since.
   * @param {string} method
   * @param {string} path
   * @param {string} done
   * @param {unknown} [body]
   */
  async #change(method, path, done, body) {
    await call(method, this.#path + path, { body, headers: { 'If-Match': this.#etag } });
    await this.done(done);
  }

  /** @param {number} [version] */
  async #check(version) {
    await check(this, this.params[0] ?? '', version);
  }

  /** @param {Credential} credential */
  #edit(credential) {
    const before = credential.labels ?? {};
    const text = Object.entries(before).map(([name, value]) => `${name}: ${value}`).join('\n');
    const fields = {
      description: field({ label: 'Description', pointer: '/description', maxlength: 500, value: credential.description ?? '' }),
      labels: field({ label: 'Labels', pointer: '/labels', rows: 3, mono: true, value: text, hint: 'One in each line: name: value.', parse: readLabels }),
      expires: field({ label: 'Expires', pointer: '/expires_at', type: 'datetime-local', value: writeTime(credential.expires_at), hint: 'When the current data expires at its issuer.', parse: readTime }),
      vend: field({ label: 'Handed out', pointer: '/vend', value: credential.vend, options: [['any', 'As jobs ask for it'], ['short', 'Only as short-lived credentials']] }),
    };
    const expiresBefore = fields.expires.control.value;
    openDialog('Edit', (close) => [form({
      fields: () => Object.values(fields), content: Object.values(fields).map(({ row }) => row), submit: 'Save', busy: 'Saving…',
      send: async () => {
        const labels = fields.labels.read();
        const removed = Object.fromEntries(Object.keys(before).filter((name) => !(name in labels)).map((name) => [name, null]));
        const body = {
          labels: { ...labels, ...removed },
          description: fields.description.read() ?? (credential.description === undefined ? undefined : null),
          expires_at: fields.expires.control.value === expiresBefore ? undefined : fields.expires.read() ?? null,
          vend: fields.vend.read() === credential.vend ? undefined : fields.vend.read(),
        };
        await this.#change('PATCH', '', 'Saved.', body);
        close();
      },
      buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      explain: ({ code }) => code === 'precondition-failed' ? 'Somebody else changed it after you opened this page. Close this, reload the page and edit again.' : null,
    })]);
  }

  /** @param {Credential} credential */
  #delete(credential) {
    confirm({
      heading: `Delete this credential of ${credential.namespace}?`, submit: 'Delete', busy: 'Deleting…',
      text: [`All its versions are destroyed, and nobody can bring them back. Jobs that use ${credential.namespace} fail unless it holds another credential.`,
        credential.last_activated_at ? h('p', null, 'Last used ', time(credential.last_activated_at), '.') : 'No job has used it yet.'],
      act: async () => {
        await call('DELETE', this.#path, { headers: { 'If-Match': this.#etag } });
        flash(`Deleted the credential of ${credential.namespace}.`);
        announce('Deleted.');
        go('#/credentials');
      },
    });
  }
}

/**
 * Entries of which those of the same job, one after the other, are one.
 * @param {import('./api.js').AuditEntry[]} entries newest first
 */
function merged(entries) {
  /** @type {import('./api.js').AuditEntry[]} */
  const told = [];
  for (const entry of entries) {
    const last = told.at(-1);
    const same = last && entry.action === 'namespace.activated' && last.action === entry.action && last.integration === entry.integration && JSON.stringify(last.credentials) === JSON.stringify(entry.credentials);
    if (same) last.count = (last.count ?? 1) + (entry.count ?? 1);
    else told.push({ ...entry });
  }
  return told;
}

customElements.define('ov-credential', CredentialPage);
