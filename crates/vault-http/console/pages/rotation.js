// The rotation of a key after the new one is saved: check it, promote it, wait for the jobs, disable the old one.

import { call, query } from '../parts/api.js';
import { h } from '../parts/dom.js';
import { count } from '../parts/forms.js';
import { Page, clock, confirm, live, time } from '../parts/parts.js';
import { facts, section, table } from '../parts/blocks.js';
import { copyButton } from '../parts/copy.js';
import { check } from '../parts/checking.js';
import { isKeyless, load } from './credentials.js';
import { denials } from '../rules/denied.js';
import { healthBadge } from '../parts/health.js';
import * as session from '../parts/session.js';
import { Names } from '../parts/words.js';
import { length } from '../rules/times.js';
import { holders } from '../rules/usage.js';
import { canRequest, mayNotify, unwatch, watch } from '../parts/watch.js';
import { rotationSteps } from '../parts/rotation-steps.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Version} Version
 * @typedef {import('../parts/api.js').Use} Use
 */

/** How often the page is loaded again while jobs may use the old key, in milliseconds. */
const AGAIN = 15_000;

/** The names of fields in sentences. @type {Record<string, string>} */
const FIELDS = {
  access_key_id: 'access key ID',
  secret_access_key: 'secret access key',
  private_key_id: 'private key ID',
  client_id: 'client ID',
  tenant_id: 'tenant ID',
  client_email: 'service account',
  account_name: 'account',
  project_id: 'project',
  external_id: 'external ID',
  role_arn: 'role ARN',
  sts_endpoint: 'STS endpoint',
  sse_kms_key_id: 'KMS key',
  provider: 'workload identity provider',
};
/** Fields that identify a key: if one differs, the secret that belongs to it differs too. */
const KEY_IDS = ['access_key_id', 'private_key_id'];
/** The secrets that belong to such an ID. */
const KEYS = ['secret_access_key', 'service_account_key'];

/** @param {string} name */
const fieldName = (name) => FIELDS[name] ?? name.replaceAll('_', ' ');

/**
 * How the old key is disabled at its provider.
 * @param {Credential} credential
 * @param {Record<string, any>} old
 */
function disabling({ type, information = {} }, old) {
  const key = String(old.access_key_id ?? old.private_key_id ?? old.client_id ?? '').replace('…', '');
  const account = String(old.client_email ?? 'SERVICE_ACCOUNT');
  // The server returns only the end of a key ID, so the command finds the rest.
  const [command, undo] = {
    s3:
      !information.endpoint || /amazonaws\.com/.test(information.endpoint)
        ? [
            `aws iam update-access-key --status Inactive --access-key-id "$(aws iam list-access-keys --output text --query "AccessKeyMetadata[?ends_with(AccessKeyId, '${key}')].AccessKeyId")"`,
            'Run it as the user of the key, or add --user-name USER to both parts. An inactive key can be activated again. Delete it later.',
          ]
        : ['', ''],
    azure_identity: [
      `az ad app credential delete --id ${old.client_id ?? 'CLIENT_ID'} --key-id OLD_SECRET_ID`,
      'az ad app credential list shows the ID of each secret with its end date. Renew the account key of the connection string separately.',
    ],
    gcs: [
      `gcloud iam service-accounts keys disable --iam-account ${account} "$(gcloud iam service-accounts keys list --iam-account ${account} --filter 'name ~ ${key}$' --format 'value(name.basename())')"`,
      'A disabled key can be enabled again.',
    ],
    'direct-link': ['', ''],
    's3-federated': ['', ''],
    'azure-federated': ['', ''],
    'gcs-federated': ['', ''],
  }[type];
  const named = key
    ? ['the key that ends in ', h('code', null, key)]
    : ['the key with the fingerprint ', h('code', null, old.fingerprint ?? '')];
  if (isKeyless(type))
    return [h('p', null, 'It contains no key. Remove trust at the provider that the new data does not need.')];
  if (type === 'direct-link')
    return [h('p', null, 'Ask the issuer of the link to revoke the old one. A signed link expires by itself.')];
  if (!command) return [h('p', null, 'Disable ', ...named, ' at ', h('code', null, information.endpoint), '.')];
  return [
    h('p', null, 'Disable ', ...named, ':'),
    h('div', { class: 'secret' }, h('code', null, command), copyButton(command, 'the command')),
    h('p', { class: 'hint' }, undo),
  ];
}

class Rotation extends Page {
  #etag = '';
  /** When the page is loaded again while jobs may use the old key. */
  #again = 0;
  /** Whether jobs may have used the old key when the page was loaded last. */
  #waited = false;
  /** The content of the versions, in texts. @type {'key' | 'data'} */
  #noun = 'key';
  /** Shown after the old version is deleted. @type {Node[] | null} */
  #finished = null;

  label() {
    return 'Rotation';
  }

  get #id() {
    return this.params[0] ?? '';
  }

  get #path() {
    return `/organization-vault/${this.#id}`;
  }

  async content() {
    const [{ credential, etag }, { body }] = await Promise.all([load(this.#id), call('GET', `${this.#path}/versions`)]);
    /** @type {Version[]} */
    const versions = body;
    this.#etag = etag;
    this.#noun = isKeyless(credential.type) ? 'data' : 'key';
    const keyless = this.#noun === 'data';
    clearTimeout(this.#again);
    this.heading(`Rotation: ${credential.namespace}`);
    this.actions(h('a', { class: 'button', href: `#/credentials/${this.#id}` }, 'Back to credential'));
    const staged = versions.find(({ state }) => state === 'staged');
    const current = versions.find(({ state }) => state === 'current');
    const previous = versions.find(({ state }) => state === 'previous');
    if (this.#finished) return this.#finished;
    const done = await stepsDone(credential, staged ?? current);
    if (staged && current) return this.#staged(staged, current, done);
    if (current && previous) return this.#promoted(credential, current, previous, done);
    return [
      rotationSteps(0, [], false, keyless),
      section(
        `New ${this.#noun}`,
        h(
          'p',
          null,
          `No rotation is in progress: version ${credential.version} is the only one.${keyless ? '' : ' Create a new key at the storage provider and save it here.'}`,
        ),
        h(
          'div',
          { class: 'buttons' },
          h('a', { class: 'button primary', href: `#/credentials/${this.#id}/replace` }, `Enter the new ${this.#noun}`),
        ),
      ),
    ];
  }

  /**
   * @param {Version} staged
   * @param {Version} current
   * @param {import('../parts/rotation-steps.js').Done[]} done
   */
  #staged(staged, current, done) {
    const accepted = staged.health?.state === 'healthy';
    const refused = staged.health?.state === 'failing';
    const promote = h(
      'button',
      {
        type: 'button',
        class: accepted ? 'primary' : '',
        onclick: () => {
          const act = () =>
            this.#promote(staged.version, `Version ${staged.version} is current. Jobs use it from their next run.`);
          if (accepted) void act();
          else
            confirm({
              heading: `Promote version ${staged.version} unchecked?`,
              danger: refused,
              submit: 'Promote',
              busy: 'Promoting…',
              text: [
                refused ? 'Its check failed: jobs may fail.' : 'It was not checked yet.',
                'You can roll back at any time: the current version is kept.',
              ],
              act,
            });
        },
      },
      'Promote',
    );
    return [
      rotationSteps(accepted ? 2 : 1, done.slice(0, 2), false, this.#noun === 'data'),
      section('What changes', changes(current, staged)),
      section(
        accepted ? 'Promote' : 'Check',
        h(
          'p',
          null,
          staged.health ? [healthBadge(staged.health), ' '] : [],
          accepted
            ? `The new ${this.#noun} works. Promote it: jobs use it from their next run.`
            : `Check the new ${this.#noun} with the storage provider. Running jobs are not affected.`,
        ),
        h(
          'div',
          { class: 'buttons' },
          h(
            'button',
            {
              type: 'button',
              class: accepted ? '' : 'primary',
              onclick: () => void check(this, this.#id, staged.version),
            },
            accepted ? 'Check again' : `Check the new ${this.#noun}`,
          ),
          promote,
          h(
            'button',
            {
              type: 'button',
              class: 'quiet danger',
              onclick: () =>
                confirm({
                  heading: `Discard version ${staged.version}?`,
                  text: [`The staged ${this.#noun} is deleted. Jobs keep the current ${this.#noun}.`],
                  submit: 'Discard',
                  busy: 'Discarding…',
                  act: async () => {
                    await call('DELETE', `${this.#path}/versions/${staged.version}`, {
                      headers: { 'If-Match': this.#etag },
                    });
                    await this.done(`Version ${staged.version} is discarded.`);
                  },
                }),
            },
            'Discard version',
          ),
        ),
      ),
    ];
  }

  /**
   * @param {Credential} credential
   * @param {Version} current
   * @param {Version} previous
   * @param {import('../parts/rotation-steps.js').Done[]} done
   */
  async #promoted(credential, current, previous, done) {
    const noun = this.#noun;
    const keyless = noun === 'data';
    const { body } = await call('GET', `${this.#path}/activations?limit=1000`);
    /** @type {Use[]} */
    const uses = body;
    const waiting = holders(uses, credential.version);
    const last = waiting
      .map(({ until }) => until)
      .sort()
      .at(-1);
    if (waiting.length) {
      this.#again = setTimeout(() => {
        if (this.isConnected) void this.refresh();
      }, AGAIN);
      if (!keyless) watch(credential);
    } else {
      unwatch(this.#id);
      if (this.#waited)
        this.say(`No job can use the old ${noun} any more. You can ${keyless ? 'delete' : 'disable'} it.`);
    }
    this.#waited = waiting.length > 0;
    const back = h(
      'button',
      {
        type: 'button',
        class: 'quiet',
        onclick: () =>
          confirm({
            heading: `Roll back to version ${previous.version}?`,
            danger: false,
            submit: 'Roll back',
            busy: 'Rolling back…',
            text: [
              `Jobs use version ${previous.version} again from their next run. Version ${current.version} is kept.`,
            ],
            act: () => this.#promote(previous.version, `Version ${previous.version} is current again.`),
          }),
      },
      `Roll back to version ${previous.version}`,
    );
    const again = h('button', { type: 'button', class: 'quiet', onclick: () => void this.refresh() }, 'Refresh');
    return [
      rotationSteps(
        waiting.length ? 3 : 4,
        [...done, last ? { text: `until ${clock(new Date(last))}` } : { text: `no job has the old ${noun}` }],
        !current.health,
        keyless,
      ),
      section(
        'Wait for jobs',
        last
          ? h(
              'p',
              null,
              `Jobs get the new ${noun} at their next run. The last run with the old ${noun} ends `,
              live('deadline', last),
              `. This page is refreshed automatically.${keyless ? '' : ' You can leave it: the console shows a message when the old key can be disabled.'}`,
            )
          : h('p', { class: 'note good' }, `No job can use the old ${noun} any more.`),
        jobs(uses, waiting, credential.version, noun),
        h('div', { class: 'buttons' }, again, last && !keyless && notifying(), back),
      ),
      section(
        keyless ? 'Delete the old version' : 'Disable the old key',
        waiting.length > 0 && h('p', { class: 'note warn' }, 'Not yet: wait for the jobs above.'),
        ...disabling(credential, previous.information ?? {}),
        facts([[`Old ${noun} saved`, time(previous.created_at)]]),
        !waiting.length &&
          h(
            'div',
            { class: 'buttons' },
            h(
              'button',
              {
                type: 'button',
                class: 'danger',
                onclick: () =>
                  confirm({
                    heading: `Delete version ${previous.version}?`,
                    submit: 'Delete',
                    busy: 'Deleting…',
                    text: [
                      `Its data key is destroyed: no one can restore this version.${keyless ? '' : ' Delete it once the old key is disabled.'}`,
                    ],
                    act: async () => {
                      await call('DELETE', `${this.#path}/versions/${previous.version}`, {
                        headers: { 'If-Match': this.#etag },
                      });
                      this.#finished = await finished(credential, current, previous, uses, done);
                      await this.done(`Version ${previous.version} is deleted.`);
                    },
                  }),
              },
              keyless
                ? `Delete version ${previous.version}`
                : `I’ve disabled the old key — delete version ${previous.version}`,
            ),
          ),
      ),
      section('What changed', changes(previous, current)),
    ];
  }

  /**
   * @param {number} version
   * @param {string} done
   */
  async #promote(version, done) {
    await call('POST', `${this.#path}/promote`, { body: { version }, headers: { 'If-Match': this.#etag } });
    await this.done(done);
  }
}

/** The button that permits notifications of the desktop, unless the user has decided about them. */
function notifying() {
  if (mayNotify()) return h('span', { class: 'hint' }, 'This browser notifies you while the console is open.');
  const button = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: async () => {
        if ((await Notification.requestPermission()) === 'granted')
          button.replaceWith(
            h('span', { class: 'hint', role: 'status' }, 'This browser notifies you while the console is open.'),
          );
        else button.remove();
      },
    },
    'Notify me',
  );
  return canRequest() && button;
}

/**
 * When the first steps of a rotation were done, and by whom. The audit log, which only admins can read, names the users.
 * @param {Credential} credential
 * @param {Version | undefined} version the new one
 * @returns {Promise<import('../parts/rotation-steps.js').Done[]>}
 */
async function stepsDone({ id }, version) {
  if (!version) return [];
  /** @type {import('../parts/rotation-steps.js').Done[]} */
  const found = [{ at: version.created_at }, { at: version.health?.checked_at }, {}];
  if (!session.isAdmin()) return found;
  const names = await Names.load({ credentials: false });
  const actions = [['credential.staged', 'credential.replaced'], [], ['credential.promoted']];
  const { body } = await call('GET', `/audit${query({ subject: id, action: actions.flat(), limit: '50' })}`);
  for (const entry of /** @type {import('../parts/api.js').AuditEntry[]} */ (body)) {
    const step = actions.findIndex((some) => some.includes(entry.action));
    if (
      entry.changes?.some(({ field, to }) => field === 'version' && to === String(version.version)) &&
      !('by' in (found[step] ?? {}))
    )
      found[step] = { at: entry.at, by: names.of(entry.account) };
  }
  return found;
}

/**
 * The jobs of a credential: which have the new key, and which may use the old one until when.
 * @param {Use[]} uses newest first
 * @param {{integration: string, until: string}[]} waiting
 * @param {number} current
 * @param {string} noun
 */
function jobs(uses, waiting, current, noun) {
  const all = [...new Set(uses.map(({ integration }) => integration))];
  return h(
    'ul',
    { class: 'ticks' },
    all.map((job) => {
      const until = waiting.find(({ integration }) => integration === job)?.until;
      const moved = uses.some(({ integration, version }) => integration === job && version >= current);
      return h(
        'li',
        { class: until ? null : 'done' },
        h('strong', null, job),
        until
          ? [` may use the old ${noun} until `, live('until', until)]
          : moved
            ? ` has the new ${noun}`
            : ` has no active run with the old ${noun}`,
      );
    }),
  );
}

/**
 * The end of a rotation: how long it took, and how the jobs did.
 * @param {Credential} credential
 * @param {Version} current
 * @param {Version} previous
 * @param {Use[]} uses
 * @param {import('../parts/rotation-steps.js').Done[]} done
 */
async function finished({ id, namespace, type, updated_at: promoted }, current, previous, uses, done) {
  const moved = new Set(uses.filter(({ version }) => version >= current.version).map(({ integration }) => integration))
    .size;
  const denied = session.isAdmin()
    ? denials(
        (await call('GET', `/audit${query({ namespace, actor: 'integration', since: promoted, limit: '1000' })}`)).body,
      ).reduce((sum, one) => sum + one.count, 0)
    : null;
  const jobs = [
    `${count(moved, 'job')} ${moved === 1 ? 'has' : 'have'} used the new ${isKeyless(type) ? 'data' : 'key'}`,
    denied === null ? '' : `, ${denied} denied`,
  ].join('');
  return [
    rotationSteps(5, done, !current.health, isKeyless(type)),
    section(
      'Rotation complete',
      h(
        'p',
        { class: 'note good' },
        `Version ${current.version} replaced version ${previous.version}. Took ${length(Date.now() - Date.parse(current.created_at))}. ${jobs}.`,
      ),
      h(
        'div',
        { class: 'buttons' },
        h('a', { class: 'button primary', href: `#/credentials/${id}` }, 'Back to credential'),
      ),
    ),
  ];
}

/**
 * What differs between two versions. Secrets are not compared one by one: only the fingerprint of all fields shows them.
 * @param {Version} before
 * @param {Version} after
 */
function changes(before, after) {
  const [one = {}, other = {}] = [before.information, after.information];
  const text = (/** @type {unknown} */ value) =>
    value === undefined ? 'not set' : Array.isArray(value) ? value.map(fieldName).join(', ') : String(value);
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => name !== 'fingerprint');
  const differing = names.filter((name) => text(one[name]) !== text(other[name]));
  const same = one.fingerprint === other.fingerprint;
  /** @type {[string[], string[]]} */
  const [old, now] = [one.secrets ?? [], other.secrets ?? []];
  const both = now.filter((name) => old.includes(name));
  // Of a masked value, only the end is known.
  const masked = same ? [] : names.filter((name) => !differing.includes(name) && text(one[name]).startsWith('…'));
  // A secret differs for certain if the ID of its key does, or if it is the only field that can differ.
  const keyed = KEY_IDS.some((name) => differing.includes(name)) ? both.filter((name) => KEYS.includes(name)) : [];
  const hidden = [...both, ...masked];
  const certain =
    !same && !differing.length
      ? [hidden.length > 1 ? `at least one of ${hidden.map(fieldName).join(', ')}` : hidden.map(fieldName).join('')]
      : keyed.map(fieldName);
  const possible = differing.length ? hidden.filter((name) => !keyed.includes(name)).map(fieldName) : [];
  const prints = ` (fingerprint ${one.fingerprint} → ${other.fingerprint})`;
  const changed = [
    ...differing.filter((name) => name !== 'secrets').map(fieldName),
    ...certain.filter(Boolean),
    ...old.filter((name) => !now.includes(name)).map((name) => `${fieldName(name)} (removed)`),
    ...now.filter((name) => !old.includes(name)).map((name) => `${fieldName(name)} (added)`),
  ];
  const unchanged = names
    .filter((name) => name !== 'secrets' && !differing.includes(name) && !masked.includes(name))
    .map(fieldName);
  return h(
    'div',
    { class: 'page-body' },
    same
      ? h('p', { class: 'note warn' }, 'Nothing: both versions contain the same data. Did you enter the old key again?')
      : h(
          'p',
          null,
          h('strong', null, 'Changed: '),
          `${changed.join(', ') || 'a field that is not shown'}${prints}.`,
          possible.length ? ` Possibly also ${possible.join(', ')}, not shown in full.` : '',
        ),
    h('p', null, h('strong', null, 'Unchanged: '), `${unchanged.join(', ') || 'nothing'}.`),
    differing.some((name) => name !== 'secrets') &&
      table(
        'Differences',
        [
          ['Field', (name) => fieldName(name)],
          [`Version ${before.version}`, (name) => h('span', { class: 'long' }, text(one[name]))],
          [`Version ${after.version}`, (name) => h('span', { class: 'long' }, text(other[name]))],
        ],
        differing.filter((name) => name !== 'secrets'),
        '',
      ),
  );
}

customElements.define('ov-rotation', Rotation);
