// One credential: its facts, usage, versions and activity.

import { Problem, call, query } from '../parts/api.js';
import { announce, button, go, h } from '../parts/dom.js';
import { count } from '../parts/forms.js';
import { Page, badge, confirm, flash, later, live, menu, time } from '../parts/parts.js';
import { facts, strip, table } from '../parts/blocks.js';
import { copyButton } from '../parts/copy.js';
import { check } from '../parts/checking.js';
import { connectJob } from '../parts/connect.js';
import { labels, load } from '../parts/credential.js';
import { editCredential } from '../parts/credential-edit.js';
import { storyPanel } from '../parts/credential-story.js';
import { deniedNote, permitted, usagePanel } from '../parts/credential-usage.js';
import { healthBadge } from '../parts/health.js';
import { providerTrust } from './provider-trust.js';
import * as session from '../parts/session.js';
import { tabs } from '../parts/tabs.js';
import { Names, who } from '../parts/words.js';
import { TYPE_NAMES, isKeyless, place } from '../rules/credentials.js';
import { healthText } from '../rules/health.js';
import { users, waiting } from '../rules/holders.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Version} Version
 * @typedef {import('../parts/api.js').Holder} Holder
 * @typedef {import('../parts/api.js').Namespace} Namespace
 */

/** How often and how many times a page is loaded again for what the server has not recorded yet, in milliseconds. */
const AGAIN = 1000;
const TIMES_AGAIN = 20;
/** A credential that was used within this number of days is deleted only after its namespace is typed. */
const IN_USE = 30;

/** @type {Record<string, string>} */
const NAMES = {
  access_key_id: 'Access key ID',
  bucket: 'Bucket',
  region: 'Region',
  endpoint: 'Endpoint',
  key_prefix: 'Key prefix',
  path_style_access: 'Path-style access',
  role_arn: 'Role ARN',
  sts_endpoint: 'STS endpoint',
  sse_kms_key_id: 'KMS key',
  tenant_id: 'Tenant ID',
  client_id: 'Client ID',
  container: 'Container',
  account_name: 'Account',
  has_account_key: 'Has an account key',
  secret_access_key: 'Secret access key',
  client_secret: 'Client secret',
  connection_string: 'Connection string',
  session_token: 'Session token',
  external_id: 'External ID',
  service_account_key: 'Service account key',
  url: 'URL',
  headers: 'Headers',
  client_email: 'Service account',
  project_id: 'Project',
  provider: 'Workload identity provider',
  service_account: 'Service account',
  cloud: 'Cloud',
  private_key_id: 'Private key ID',
  scheme: 'Scheme',
  host: 'Host',
  expires_at: 'Signature expires',
};

/** @param {unknown} value */
function plain(value) {
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

class CredentialPage extends Page {
  #etag = '';
  /** @type {Holder[]} */
  #holders = [];
  #again = 0;

  label() {
    return 'Credential';
  }

  get #path() {
    return `/organization-vault/${this.params[0]}`;
  }

  async content() {
    const writes = session.mayWrite();
    let found;
    try {
      found = await Promise.all([
        load(this.params[0] ?? ''),
        call('GET', `${this.#path}/versions`),
        writes ? call('GET', `${this.#path}/holders`) : { body: [] },
      ]);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      return this.#missing();
    }
    const [{ credential, etag }, { body: versions }, { body: holders }] = found;
    this.#etag = etag;
    this.#holders = holders;
    const { namespace } = credential;
    this.heading(namespace);
    this.#way(namespace);
    /** @type {{body: Namespace[]}} */
    const { body } = await call('GET', `/namespaces${query({ namespace })}`);
    this.#offer(credential);
    return [
      h(
        'p',
        { class: 'lead' },
        [TYPE_NAMES[credential.type], place(credential), credential.description].filter(Boolean).join(' · '),
        ' ',
        labels(credential),
      ),
      ...this.#notes(credential, body[0]),
      this.#strip(credential, versions),
      tabs(this, namespace, this.#panels(credential, versions)),
    ];
  }

  #missing() {
    const search = `#/audit${query({ subject: this.params[0] })}`;
    return [
      h('p', { class: 'empty' }, 'This credential does not exist. It may have been deleted.'),
      h(
        'p',
        { class: 'buttons' },
        h('a', { class: 'button primary', href: '#/credentials' }, 'All credentials'),
        session.isAdmin() && h('a', { class: 'button', href: search }, 'Search the audit'),
      ),
    ];
  }

  /** @param {string} namespace */
  #way(namespace) {
    const parts = namespace.split('/').slice(0, -1);
    const href = (/** @type {number} */ length) =>
      `#/credentials${query({ namespace: `${parts.slice(0, length).join('/')}/` })}`;
    this.crumbs(
      h('a', { href: '#/credentials' }, 'Credentials'),
      ' /',
      ...parts.flatMap((part, index) => [' ', h('a', { href: href(index + 1), translate: 'no' }, part), ' /']),
    );
  }

  /**
   * What can be done with the credential.
   * @param {Credential} credential
   */
  #offer(credential) {
    if (!session.mayWrite()) return;
    const { id, namespace, type } = credential;
    const connect = async () => connectJob(credential, await permitted(namespace));
    if (this.once('connect')) void connect();
    const open = this.#isOpen(credential);
    this.actions(
      h(
        'a',
        { class: 'button primary', href: `#/credentials/${id}/${open ? 'rotate' : 'replace'}` },
        open ? 'Continue rotation' : isKeyless(type) ? 'Change data' : 'Rotate the key',
      ),
      button('Connect a job', connect),
      menu(namespace, [
        button('Check now', () => this.#check()),
        !isKeyless(type) && button('Compare', () => go(`#/credentials/${id}/match`)),
        button('Edit', () => this.#edit(credential)),
        button('Delete', () => this.#delete(credential), { class: 'danger' }),
      ]),
    );
  }

  /**
   * Whether a rotation is not finished: a version is staged, or the old key is kept.
   * @param {Credential} credential
   */
  #isOpen({ type, version, staged_version: staged, previous_version: previous }) {
    return staged !== undefined || (previous !== undefined && previous < version && !isKeyless(type));
  }

  /**
   * @param {Credential} credential
   * @param {Version[]} versions
   */
  #panels(credential, versions) {
    const { id, type } = credential;
    const story = () => storyPanel(credential, versions, () => this.#loadAgain());
    return [
      ...(session.mayWrite()
        ? [{ name: 'usage', heading: 'Usage', content: () => later(() => usagePanel(credential, this.#holders)) }]
        : []),
      ...(isKeyless(type)
        ? [{ name: 'trust', heading: 'Provider trust', content: () => later(() => providerTrust(id)) }]
        : []),
      { name: 'versions', heading: 'Versions', content: () => this.#versions(versions) },
      { name: 'activity', heading: 'Activity', content: () => later(story) },
      { name: 'details', heading: 'Details', content: () => this.#details(credential) },
    ];
  }

  /**
   * @param {Credential} credential
   * @param {Namespace | undefined} space
   */
  #notes(credential, space) {
    const { id, namespace, damaged } = credential;
    return [
      this.#unfinished(credential),
      damaged &&
        h(
          'p',
          { class: 'note bad' },
          'The information of this credential cannot be decrypted. Ask the operator to restore it from a backup, or replace its data.',
        ),
      space?.frozen_at && frozenNote(namespace, space.frozen_at),
      session.isAdmin() && later(() => deniedNote(namespace), ''),
      space &&
        space.credentials > 1 &&
        h(
          'p',
          { class: 'note' },
          `${namespace} has several credentials. Its jobs must select one: `,
          h('code', null, `--id ${id}`),
        ),
    ];
  }

  /**
   * Whether it works, who uses it, when it expires, and how old its key is.
   * @param {Credential} credential
   * @param {Version[]} versions
   */
  #strip(credential, versions) {
    const { health, type } = credential;
    const saved = versions.find(({ state }) => state === 'current')?.created_at;
    const checked = health.checked_at
      ? ['Checked ', live('relative', health.checked_at)]
      : [session.mayWrite() ? button('Check', () => this.#check(), { class: 'quiet' }) : 'never checked'];
    return strip([
      { name: 'Health', value: healthBadge(health), more: [health.reason && `${healthText(health)} `, ...checked] },
      this.#usageFact(credential),
      this.#expiryFact(credential),
      {
        name: isKeyless(type) ? 'Data' : 'Key',
        value: saved ? h('span', null, 'Saved ', live('relative', saved)) : '',
        more: [],
      },
    ]);
  }

  /** @param {Credential} credential */
  #usageFact({ last_activated_at: last }) {
    const jobs = users(this.#holders);
    const runs = jobs.reduce((sum, { runs }) => sum + runs, 0);
    if (!last) return { name: 'Usage', value: 'Not used yet', more: [] };
    if (!jobs.length) return { name: 'Usage', value: live('relative', last), more: ['last use'] };
    const value = `${count(jobs.length, 'job')}, ${count(runs, 'run')}`;
    return { name: 'Usage', value, more: ['in 30 days, last ', live('relative', last)] };
  }

  /** @param {Credential} credential */
  #expiryFact(credential) {
    const { expires_at: at } = credential;
    const [verb, name] = at ? ['Change', 'Change the expiry'] : ['Set', 'Set the expiry'];
    return {
      name: 'Expires',
      value: at ? live('deadline', at, Date.parse(at) < Date.now() ? 'over' : '') : 'Not set',
      more: [
        session.mayWrite() &&
          button(verb, () => this.#edit(credential, 'expires'), { class: 'quiet', 'aria-label': name }),
      ],
    };
  }

  /** Loads the page again soon, for what the server has not recorded yet. */
  #loadAgain() {
    if (this.#again >= TIMES_AGAIN) return;
    this.#again += 1;
    setTimeout(() => {
      if (this.isConnected) void this.refresh();
    }, AGAIN);
  }

  /**
   * A rotation whose other version is still kept, with the way to it.
   * @param {Credential} credential
   */
  #unfinished({ id, type, staged_version: staged, previous_version: previous, version }) {
    if (!previous || staged || isKeyless(type) || !session.mayWrite()) return null;
    const open = waiting(this.#holders);
    const back = previous > version;
    return h(
      'p',
      { class: 'note warn' },
      h('strong', null, back ? `Rolled back to version ${version}.` : 'Rotation not finished.'),
      open.flatMap(({ job, version: held, until }) => [
        ` ${job} may use version ${held} until `,
        live('until', until),
        '.',
      ]),
      !open.length && ` No job can use version ${previous} any more.`,
      ' ',
      h('a', { href: `#/credentials/${id}/rotate` }, back ? 'Open' : 'Continue'),
    );
  }

  /** @param {Credential} credential */
  #details(credential) {
    const { information = {} } = credential;
    const known = Object.entries(information).filter(([name]) => !['secrets', 'fingerprint'].includes(name));
    return facts([
      ...known.map(([name, value]) => ({
        name: NAMES[name] ?? name,
        value: name === 'expires_at' ? time(value) : h('code', null, plain(value)),
      })),
      {
        name: 'Secrets',
        value:
          (information.secrets ?? []).map((/** @type {string} */ name) => NAMES[name] ?? name).join(', ') || 'none',
      },
      { name: 'Fingerprint', value: h('code', null, information.fingerprint ?? '') },
      { name: 'Expires', value: time(credential.expires_at, 'not set') },
      {
        name: 'Jobs receive',
        value: credential.vend === 'short' ? 'temporary credentials only' : 'saved key or temporary credentials',
      },
      { name: 'Last used', value: time(credential.last_activated_at) },
      { name: 'Created', value: time(credential.created_at) },
      { name: 'Changed', value: time(credential.updated_at) },
      { name: 'ID', value: [h('code', null, credential.id), ' ', copyButton(credential.id, 'the ID')] },
    ]);
  }

  /** @param {Version[]} versions */
  #versions(versions) {
    const writes = session.mayWrite();
    /** @type {import('../parts/blocks.js').TableColumn<Version>[]} */
    const columns = [
      { heading: 'Version', cell: ({ version }) => `Version ${version}` },
      {
        heading: 'State',
        cell: ({ state }) => badge(state, { current: 'good', staged: 'warn', previous: 'plain' }[state]),
      },
      {
        heading: 'Health',
        cell: ({ health }) => (health ? healthBadge(health) : h('span', { class: 'muted' }, 'unchecked')),
      },
      { heading: 'Fingerprint', cell: ({ information }) => h('code', null, information?.fingerprint ?? '') },
      { heading: 'Saved', cell: ({ created_at: at }) => time(at) },
      ...(writes
        ? [{ heading: '(Actions)', cell: (/** @type {Version} */ version) => this.#versionButtons(version) }]
        : []),
    ];
    return table('Versions', columns, versions, 'No versions.');
  }

  /** @param {Version} version */
  #versionButtons({ version, state }) {
    const quiet = (/** @type {string} */ name, /** @type {string} */ what, /** @type {() => unknown} */ act) =>
      button(name, act, {
        class: name === 'Delete' ? 'quiet danger' : 'quiet',
        'aria-label': `${what} version ${version}`,
      });
    const check = quiet('Check', 'Check', () => this.#check(version));
    if (state === 'current') return h('div', { class: 'buttons' }, check);
    const [verb, what] = state === 'previous' ? ['Roll back', 'Roll back to'] : ['Promote', 'Promote'];
    const done = `Version ${version} is current. Jobs use it from their next run.`;
    const promote = () =>
      confirm({
        heading: `${what} version ${version}?`,
        danger: false,
        submit: verb,
        busy: 'One moment…',
        text: ['Jobs use this version from their next run. The current version is kept, so you can roll back.'],
        act: () => this.#change('POST', '/promote', done, { version }),
      });
    const destroy = () =>
      confirm({
        heading: `Delete version ${version}?`,
        submit: 'Delete',
        busy: 'Deleting…',
        text: [this.#heldNote(version), 'Its data key is destroyed: no one can restore this version.'],
        act: () => this.#change('DELETE', `/versions/${version}`, `Version ${version} is deleted.`),
      });
    return h('div', { class: 'buttons' }, quiet(verb, what, promote), check, quiet('Delete', 'Delete', destroy));
  }

  /**
   * Who may still use a version.
   * @param {number} version
   */
  #heldNote(version) {
    const held = waiting(this.#holders).filter((one) => one.version === version);
    if (!held.length) return null;
    return h(
      'p',
      { class: 'note warn' },
      held.flatMap(({ job, until }) => [`${job} may use it until `, live('until', until), '. ']),
    );
  }

  /**
   * Sends a change of the shown state, refused if another user changed it in the meantime.
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

  /**
   * @param {Credential} credential
   * @param {import('../parts/credential-edit.js').First} [first] the field that gets the focus
   */
  #edit(credential, first) {
    editCredential({ credential, etag: this.#etag, page: this, first });
  }

  /** @param {Credential} credential */
  #delete(credential) {
    const { namespace, last_activated_at: last } = credential;
    const jobs = users(this.#holders).map(({ job }) => job);
    const inUse = last && Date.now() - Date.parse(last) < IN_USE * 86_400_000;
    confirm({
      heading: `Delete this credential of ${namespace}?`,
      submit: 'Delete',
      busy: 'Deleting…',
      typed: inUse ? namespace : '',
      text: [
        inUse
          ? h(
              'p',
              { class: 'note bad' },
              h('strong', null, 'In use. '),
              jobs.length ? `${jobs.join(', ')} used it in the last ${IN_USE} days, ` : '',
              'last ',
              time(last),
              '.',
            )
          : last
            ? h('p', null, 'Last used ', time(last), '.')
            : 'No job has used it yet.',
        `All its versions are deleted, and no one can restore them. Jobs that use ${namespace} fail unless it contains another credential.`,
      ],
      act: async () => {
        await call('DELETE', this.#path, { headers: { 'If-Match': this.#etag } });
        flash(`Deleted the credential of ${namespace}.`);
        announce('Deleted.');
        go('#/credentials');
      },
    });
  }
}

/**
 * @param {string} namespace
 * @param {string} at
 */
function frozenNote(namespace, at) {
  const by = async () => {
    const filter = { namespace, action: 'namespace.frozen', limit: '1' };
    const [{ body }, names] = await Promise.all([
      call('GET', `/audit${query(filter)}`),
      Names.load({ credentials: false }),
    ]);
    return body[0] ? [' by ', who(body[0], names)] : [];
  };
  return h(
    'p',
    { class: 'note warn' },
    `The namespace ${namespace} was frozen `,
    live('relative', at),
    session.isAdmin() && later(by, '', 'span'),
    session.isAdmin()
      ? [
          '. Its jobs are denied until it is thawed. ',
          h('a', { href: `#/namespaces${query({ namespace })}` }, 'Namespaces'),
        ]
      : '. Its jobs are denied until an admin thaws it.',
  );
}

customElements.define('ov-credential', CredentialPage);
