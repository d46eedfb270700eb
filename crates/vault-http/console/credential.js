// One credential: what it is, its versions, where it is used.

import { call } from './api.js';
import { announce, go, h } from './dom.js';
import { field, form, readTime, writeTime } from './forms.js';
import { Page, badge, confirm, copyButton, facts, flash, healthBadge, openDialog, paged, section, table, time } from './parts.js';
import { TYPE_NAMES, labels, load } from './credentials.js';
import { readLabels } from './credential-form.js';
import { REMEDIES } from './remedies.js';
import * as session from './session.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Version} Version
 */

/** How often and how many times a requested check is looked for, in milliseconds. */
const POLL = 1000;
const POLLS = 30;

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
  #status = h('div');

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
        h('a', { class: 'button primary', href: `#/credentials/${credential.id}/replace` }, 'Replace data'),
        h('button', { type: 'button', onclick: () => void this.#check() }, 'Check now'),
        h('a', { class: 'button', href: `#/credentials/${credential.id}/match` }, 'Compare'),
        h('button', { type: 'button', onclick: () => this.#edit(credential) }, 'Edit'),
        h('button', { type: 'button', class: 'danger', onclick: () => this.#delete(credential) }, 'Delete'));
    }
    return [this.#status, this.#overview(credential), this.#versions(versions), writes && await this.#uses()];
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
        ['Health', [healthBadge(health), health.reason ? ` ${health.reason}` : null, checked, health.reason && REMEDIES[health.reason] ? h('span', { class: 'hint block' }, REMEDIES[health.reason]) : null]],
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
      ['Health', ({ health }) => health ? [healthBadge(health), health.reason ? ` ${health.reason}` : ''] : h('span', { class: 'muted' }, 'unchecked')],
      ['Fingerprint', ({ information }) => h('code', null, information?.fingerprint ?? '')],
      ['Saved', ({ created_at: at }) => time(at)],
    ];
    if (writes) columns.push(['(Actions)', (version) => this.#versionButtons(version)]);
    return section('Versions', table('Versions', columns, versions, 'No versions.'));
  }

  /** @param {Version} version */
  #versionButtons({ version, state }) {
    const check = h('button', { type: 'button', class: 'quiet', 'aria-label': `Check version ${version}`, onclick: () => void this.#check(version) }, 'Check');
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
      ['Form', ({ form }) => form],
      ['Purpose', ({ purpose }) => purpose ?? ''],
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
    await this.#say(done);
  }

  /**
   * Shows the page anew, and what was done.
   * @param {string} done
   */
  async #say(done) {
    this.#status.replaceChildren(h('p', { class: 'note good' }, done));
    announce(done);
    await this.refresh();
  }

  /** @param {number} [version] */
  async #check(version) {
    const note = (/** @type {string} */ kind, /** @type {string} */ text) => {
      this.#status.replaceChildren(h('p', { class: `note ${kind}` }, text));
      announce(text);
    };
    try {
      const { body: before } = await call('GET', `${this.#path}/versions`);
      const number = version ?? before.find((/** @type {Version} */ { state }) => state === 'staged')?.version ?? before[0].version;
      const checkedAt = (/** @type {Version[]} */ versions) => versions.find((one) => one.version === number)?.health?.checked_at;
      await call('POST', `${this.#path}/check`, { body: { version: number } });
      note('', `Checking version ${number} with its storage provider…`);
      for (let poll = 0; poll < POLLS && this.isConnected; poll += 1) {
        await new Promise((resolve) => { setTimeout(resolve, POLL); });
        const { body: versions } = await call('GET', `${this.#path}/versions`);
        if (checkedAt(versions) !== checkedAt(before)) {
          const health = versions.find((/** @type {Version} */ one) => one.version === number).health;
          const good = health.state === 'healthy';
          note(good ? 'good' : 'bad', good ? `Version ${number}: the storage provider accepts it.` : `Version ${number} fails (${health.reason ?? 'no reason given'}). ${REMEDIES[health.reason] ?? 'The storage provider does not accept it.'}`);
          await this.refresh();
          return;
        }
      }
      note('warn', 'No result yet. Reload this page later: the result appears beside the version.');
    } catch (error) {
      const { code, status, detail } = /** @type {import('./api.js').Problem} */ (error);
      note('bad', status === 400 ? 'This server does not check credentials on request. Ask the operator to start it with --recheck-every or --verify-on-save.'
        : code === 'no-checker' ? 'Checks need an activation listener, and none is running. Ask the operator.' : detail);
    }
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

customElements.define('ov-credential', CredentialPage);
