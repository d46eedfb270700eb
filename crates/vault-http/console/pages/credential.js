// One credential: its facts, usage, versions and activity.

import { Problem, call, query } from '../parts/api.js';
import { announce, go, h } from '../parts/dom.js';
import { count, field, form, readTime, writeTime } from '../parts/forms.js';
import { Page, badge, confirm, exactTime, flash, live, menu, openDialog, time } from '../parts/parts.js';
import { facts, strip, table } from '../parts/blocks.js';
import { copyButton } from '../parts/copy.js';
import { check } from '../parts/checking.js';
import { connectJob } from '../parts/connect.js';
import { TYPE_NAMES, isKeyless, labels, load, place } from './credentials.js';
import { readLabels } from './credential-form.js';
import { DENIED, DENIED_DAYS, deniedSince, denials, matches } from '../rules/denied.js';
import { healthBadge, healthText } from '../parts/health.js';
import { loadAll } from '../parts/list.js';
import { providerTrust } from './provider-trust.js';
import * as session from '../parts/session.js';
import { tabs } from '../parts/tabs.js';
import { holders } from '../rules/usage.js';
import { Names, sentence, who } from '../parts/words.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Version} Version
 * @typedef {import('../parts/api.js').Use} Use
 */

/** Entries of the audit log that the activity is made of. */
const STORY = '200';
/** How often and how many times a page is loaded again for what the server has not recorded yet, in milliseconds. */
const AGAIN = 1000;
const TIMES_AGAIN = 20;
/** Namespaces that are searched. */
const NAMESPACES = 5000;
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
  /** @type {Use[]} */
  #uses = [];
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
        writes ? call('GET', `${this.#path}/activations?limit=1000`) : { body: [], next: null },
      ]);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      return [
        h('p', { class: 'empty' }, 'This credential does not exist. It may have been deleted.'),
        h(
          'p',
          { class: 'buttons' },
          h('a', { class: 'button primary', href: '#/credentials' }, 'All credentials'),
          session.isAdmin() &&
            h('a', { class: 'button', href: `#/audit${query({ subject: this.params[0] })}` }, 'Search the audit'),
        ),
      ];
    }
    const [{ credential, etag }, { body: versions }, { body: uses, next }] = found;
    this.#etag = etag;
    this.#uses = uses;
    const { id, namespace } = credential;
    this.heading(namespace);
    const parts = namespace.split('/').slice(0, -1);
    this.crumbs(
      h('a', { href: '#/credentials' }, 'Credentials'),
      ' /',
      ...parts.flatMap((part, index) => [
        ' ',
        h(
          'a',
          { href: `#/credentials${query({ namespace: `${parts.slice(0, index + 1).join('/')}/` })}`, translate: 'no' },
          part,
        ),
        ' /',
      ]),
    );
    const names = session.isAdmin() ? Names.load({ credentials: false }) : null;
    const [frozen, freezes, others, denied, integrations] = await Promise.all([
      this.#frozen(credential),
      this.#freezes(credential),
      call('GET', `/organization-vault${query({ namespace, limit: '2' })}`),
      this.#denied(credential, names),
      this.#permitted(credential),
    ]);
    const freeze = freezes.find(({ action }) => action === 'namespace.frozen');
    const staged = credential.staged_version;
    if (this.once('connect') && writes) queueMicrotask(() => connectJob(credential, integrations));
    const connect = h(
      'button',
      { type: 'button', onclick: () => connectJob(credential, integrations) },
      'Connect a job',
    );
    this.actions(
      writes &&
        h(
          'a',
          { class: 'button primary', href: `#/credentials/${id}/${staged ? 'rotate' : 'replace'}` },
          staged ? 'Continue rotation' : isKeyless(credential.type) ? 'Change data' : 'Rotate the key',
        ),
      writes && connect,
      writes &&
        menu(namespace, [
          h('button', { type: 'button', onclick: () => void this.#check() }, 'Check now'),
          !isKeyless(credential.type) &&
            h('button', { type: 'button', onclick: () => go(`#/credentials/${id}/match`) }, 'Compare'),
          h('button', { type: 'button', onclick: () => this.#edit(credential) }, 'Edit'),
          h('button', { type: 'button', class: 'danger', onclick: () => this.#delete(credential) }, 'Delete'),
        ]),
    );
    /** @type {[string, string, import('../parts/dom.js').Child[]][]} */
    const panels = [
      ['versions', 'Versions', [this.#versions(versions)]],
      ['activity', 'Activity', [await this.#story(credential, versions, freezes, names)]],
      ['details', 'Details', [this.#details(credential)]],
    ];
    if (isKeyless(credential.type)) panels.unshift(['trust', 'Provider trust', await providerTrust(id)]);
    if (writes) panels.unshift(['usage', 'Usage', this.#usage(next !== null, integrations)]);
    return [
      h(
        'p',
        { class: 'lead' },
        [TYPE_NAMES[credential.type], place(credential), credential.description].filter(Boolean).join(' · '),
        ' ',
        labels(credential),
      ),
      this.#unfinished(credential, versions),
      credential.damaged &&
        h(
          'p',
          { class: 'note bad' },
          'The information of this credential cannot be decrypted. Ask the operator to restore it from a backup, or replace its data.',
        ),
      frozen &&
        h(
          'p',
          { class: 'note warn' },
          `The namespace ${namespace} was frozen `,
          live('relative', frozen),
          freeze ? [' by ', who(freeze, (await names) ?? new Names())] : [],
          ...(session.isAdmin()
            ? [
                '. Its jobs are denied until it is thawed. ',
                h('a', { href: `#/namespaces${query({ namespace })}` }, 'Namespaces'),
              ]
            : ['. Its jobs are denied until an admin thaws it.']),
        ),
      denied,
      others.body.length > 1 &&
        h(
          'p',
          { class: 'note' },
          `${namespace} has several credentials. Its jobs must select one: `,
          h('code', null, `--id ${id}`),
        ),
      this.#strip(credential, versions, next !== null),
      tabs(this, namespace, panels),
    ];
  }

  /**
   * Whether it works, who uses it, when it expires, and how old its key is.
   * @param {Credential} credential
   * @param {Version[]} versions
   * @param {boolean} partial
   */
  #strip(credential, versions, partial) {
    const { id, health, expires_at: expires, last_activated_at: last } = credential;
    const writes = session.mayWrite();
    const jobs = new Set(this.#uses.map(({ integration }) => integration)).size;
    const saved = versions.find(({ state }) => state === 'current')?.created_at;
    const checked = health.reason ? [healthText(health), ' '] : [];
    return strip([
      [
        'Health',
        healthBadge(health),
        [
          ...checked,
          health.checked_at
            ? ['Checked ', live('relative', health.checked_at)]
            : writes
              ? h('button', { type: 'button', class: 'quiet', onclick: () => void this.#check() }, 'Check')
              : 'never checked',
        ].flat(),
      ],
      [
        'Usage',
        jobs
          ? `${count(jobs, 'job')}, ${count(this.#uses.length, 'run')}${partial ? ' or more' : ''}`
          : last
            ? live('relative', last)
            : 'Not used yet',
        last ? (jobs ? ['in 30 days, last ', live('relative', last)] : ['last use']) : [],
      ],
      [
        'Expires',
        expires ? live('deadline', expires, Date.parse(expires) < Date.now() ? 'over' : '') : 'Not set',
        [
          writes &&
            h(
              'button',
              {
                type: 'button',
                class: 'quiet',
                'aria-label': expires ? 'Change the expiry' : 'Set the expiry',
                onclick: () => this.#edit(credential, 'expires'),
              },
              expires ? 'Change' : 'Set',
            ),
        ],
      ],
      [
        isKeyless(credential.type) ? 'Data' : 'Key',
        saved ? [live('relative', saved)].map((text) => h('span', null, 'Saved ', text))[0] : '',
        [
          writes &&
            !credential.staged_version &&
            h(
              'a',
              { class: 'button quiet', href: `#/credentials/${id}/replace` },
              isKeyless(credential.type) ? 'Change' : 'Rotate',
            ),
        ],
      ],
    ]);
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
   * A rotation whose old version is still kept, with the way back to it.
   * @param {Credential} credential
   * @param {Version[]} versions
   */
  #unfinished({ id, type, staged_version: staged, version }, versions) {
    const previous = versions.find(({ state }) => state === 'previous');
    if (!previous || staged || isKeyless(type) || !session.mayWrite()) return null;
    const waiting = holders(this.#uses, version);
    const last = waiting
      .map(({ until }) => until)
      .sort()
      .at(-1);
    return h(
      'p',
      { class: 'note warn' },
      h('strong', null, 'Rotation not finished.'),
      last
        ? [
            ` ${waiting.map(({ integration }) => integration).join(', ')} may use version ${previous.version} until `,
            live('until', last),
            '.',
          ]
        : ` No job can use version ${previous.version} any more.`,
      ' ',
      h('a', { href: `#/credentials/${id}/rotate` }, 'Continue'),
    );
  }

  /**
   * The integrations whose patterns match the namespace, for admins.
   * @param {Credential} credential
   */
  async #permitted({ namespace }) {
    if (!session.isAdmin()) return [];
    const { body } = await call('GET', '/integrations?limit=1000');
    return /** @type {import('../parts/api.js').Integration[]} */ (body).filter(({ namespaces }) =>
      matches(namespaces, namespace),
    );
  }

  /**
   * Jobs that were denied this namespace lately, for admins.
   * @param {Credential} credential
   * @param {Promise<Names> | null} loading
   */
  async #denied({ namespace }, loading) {
    if (!loading) return null;
    const [{ body }, names] = await Promise.all([
      call('GET', `/audit${query({ namespace, actor: 'integration', since: deniedSince(), limit: '1000' })}`),
      loading,
    ]);
    const found = denials(body);
    if (!found.length) return null;
    return h(
      'div',
      { class: 'note warn' },
      h(
        'p',
        null,
        h('strong', null, `Denied in the last ${DENIED_DAYS} days: `),
        found.flatMap(({ integration, action, count: times, last }, index) => [
          index ? ', ' : '',
          names.shown('integration', integration),
          ` (${DENIED[action]}) ${times}×, last `,
          live('relative', last),
        ]),
        '. ',
        h('a', { href: `#/audit${query({ namespace, actor: 'integration' })}` }, 'See attempts'),
      ),
    );
  }

  /**
   * Since when the namespace has been frozen.
   * @param {Credential} credential
   */
  async #frozen({ namespace }) {
    const { rows } = /** @type {{rows: import('../parts/api.js').Namespace[]}} */ (
      await loadAll('/namespaces', NAMESPACES)
    );
    return rows.find((one) => one.namespace === namespace)?.frozen_at;
  }

  /**
   * When the namespace was frozen and thawed, newest first, for admins.
   * @param {Credential} credential
   * @returns {Promise<import('../parts/api.js').AuditEntry[]>}
   */
  async #freezes({ namespace }) {
    if (!session.isAdmin()) return [];
    return (
      await call('GET', `/audit${query({ namespace, action: ['namespace.frozen', 'namespace.thawed'], limit: '50' })}`)
    ).body;
  }

  /**
   * The activity of the credential, newest first: for admins from the audit log, for others from its versions and uses.
   * @param {Credential} credential
   * @param {Version[]} versions
   * @param {import('../parts/api.js').AuditEntry[]} freezes of its namespace
   * @param {Promise<Names> | null} loading
   */
  async #story(credential, versions, freezes, loading) {
    /** @type {[string, import('../parts/dom.js').Child | import('../parts/dom.js').Child[]][]} */
    let events = [];
    if (loading) {
      const [{ body, next }, names] = await Promise.all([
        call('GET', `/audit${query({ subject: credential.id, limit: STORY })}`),
        loading,
      ]);
      const since = next ? body.at(-1).at : credential.created_at;
      const entries = [...body, ...freezes.filter(({ at }) => at >= since)].sort((one, other) =>
        `${other.at} ${other.id}`.localeCompare(`${one.at} ${one.id}`),
      );
      const listed = merged(
        entries.filter(
          (/** @type {import('../parts/api.js').AuditEntry} */ { action }) =>
            !['credential.shown', 'activation.started', 'activation.renewal-started'].includes(action),
        ),
      );
      events = listed.map((entry) => [entry.at, sentence(entry, names, { without: credential.id })]);
      if (next) events.push(['', h('a', { href: `#/audit${query({ subject: credential.id })}` }, 'Earlier entries')]);
    }
    // The audit log contains an entry about a second after its cause.
    const early = session.isAdmin() && !events.length;
    if (early) this.#loadAgain();
    if (early || !session.isAdmin()) {
      /** @type {import('../parts/api.js').Use[]} */
      const uses = this.#uses.slice(0, Number(STORY));
      events = [
        ...mergedUses(uses).map(
          ({ integration, at, purpose, count: times }) =>
            /** @type {[string, string]} */ ([
              at,
              `${integration} used it${times > 1 ? `, ${times}×` : ''}${purpose ? `, for “${purpose}”` : ''}.`,
            ]),
        ),
        ...versions.map(
          ({ version, created_at: at }) =>
            /** @type {[string, string]} */ ([at, version === 1 ? 'It was saved.' : `Version ${version} was saved.`]),
        ),
        ...versions.flatMap(({ version, health }) =>
          health?.checked_at
            ? [
                /** @type {[string, string]} */ ([
                  health.checked_at,
                  `Version ${version} was checked: ${health.state === 'healthy' ? 'passed' : 'failed'}.`,
                ]),
              ]
            : [],
        ),
        ...(credential.last_activated_at && !uses.length
          ? [/** @type {[string, string]} */ ([credential.last_activated_at, 'A job used it last.'])]
          : []),
        ...(versions.some(({ version }) => version === 1)
          ? []
          : [/** @type {[string, string]} */ ([credential.created_at, 'It was saved.'])]),
      ];
      events.sort(([one], [other]) => other.localeCompare(one));
    }
    return h(
      'ol',
      { class: 'story' },
      events.map(([at, text]) => h('li', null, at && exactTime(at), h('p', null, text))),
    );
  }

  /** @param {Credential} credential */
  #details(credential) {
    const { information = {} } = credential;
    const known = Object.entries(information).filter(([name]) => !['secrets', 'fingerprint'].includes(name));
    return facts([
      ...known.map(
        ([name, value]) =>
          /** @type {[string, any]} */ ([
            NAMES[name] ?? name,
            name === 'expires_at' ? time(value) : h('code', null, plain(value)),
          ]),
      ),
      [
        'Secrets',
        (information.secrets ?? []).map((/** @type {string} */ name) => NAMES[name] ?? name).join(', ') || 'none',
      ],
      ['Fingerprint', h('code', null, information.fingerprint ?? '')],
      ['Expires', time(credential.expires_at, 'not set')],
      [
        'Jobs receive',
        credential.vend === 'short' ? 'temporary credentials only' : 'saved key or temporary credentials',
      ],
      ['Last used', time(credential.last_activated_at)],
      ['Created', time(credential.created_at)],
      ['Changed', time(credential.updated_at)],
      ['ID', [h('code', null, credential.id), ' ', copyButton(credential.id, 'the ID')]],
    ]);
  }

  /** @param {Version[]} versions */
  #versions(versions) {
    const writes = session.mayWrite();
    /** @type {[string, (version: Version) => any][]} */
    const columns = [
      ['Version', ({ version }) => `Version ${version}`],
      ['State', ({ state }) => badge(state, { current: 'good', staged: 'warn', previous: 'plain' }[state])],
      ['Health', ({ health }) => (health ? healthBadge(health) : h('span', { class: 'muted' }, 'unchecked'))],
      ['Fingerprint', ({ information }) => h('code', null, information?.fingerprint ?? '')],
      ['Saved', ({ created_at: at }) => time(at)],
    ];
    if (writes) columns.push(['(Actions)', (version) => this.#versionButtons(version)]);
    return table('Versions', columns, versions, 'No versions.');
  }

  /** @param {Version} version */
  #versionButtons({ version, state }) {
    const check = h(
      'button',
      {
        type: 'button',
        class: 'quiet',
        'aria-label': `Check version ${version}`,
        onclick: () => void this.#check(version),
      },
      'Check',
    );
    if (state === 'current') return h('div', { class: 'buttons' }, check);
    const [verb, what] = state === 'previous' ? ['Roll back', 'Roll back to'] : ['Promote', 'Promote'];
    return h(
      'div',
      { class: 'buttons' },
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-label': `${what} version ${version}`,
          onclick: () =>
            confirm({
              heading: `${what} version ${version}?`,
              danger: false,
              submit: verb,
              busy: 'One moment…',
              text: ['Jobs use this version from their next run. The current version is kept, so you can roll back.'],
              act: () =>
                this.#change('POST', '/promote', `Version ${version} is current. Jobs use it from their next run.`, {
                  version,
                }),
            }),
        },
        verb,
      ),
      check,
      h(
        'button',
        {
          type: 'button',
          class: 'quiet danger',
          'aria-label': `Delete version ${version}`,
          onclick: () =>
            confirm({
              heading: `Delete version ${version}?`,
              submit: 'Delete',
              busy: 'Deleting…',
              text: ['Its data key is destroyed: no one can restore this version.'],
              act: () => this.#change('DELETE', `/versions/${version}`, `Version ${version} is deleted.`),
            }),
        },
        'Delete',
      ),
    );
  }

  /**
   * The jobs that used the credential, one row for each, and the log of all uses.
   * @param {boolean} partial
   * @param {import('../parts/api.js').Integration[]} permitted those whose patterns match the namespace
   * @returns {import('../parts/dom.js').Child[]}
   */
  #usage(partial, permitted) {
    const shown = (/** @type {string} */ name) => {
      const id = permitted.find((one) => one.name === name)?.id;
      return id ? h('a', { href: `#/integrations/${id}` }, name) : name;
    };
    const access =
      session.isAdmin() &&
      h(
        'p',
        null,
        permitted.length
          ? [
              'Can use it: ',
              ...permitted.flatMap(({ name, state }, index) => [
                index ? ', ' : '',
                shown(name),
                state === 'active' ? '' : ` (${state})`,
              ]),
              '.',
            ]
          : 'No integration can use it.',
      );
    /** @type {Map<string, Use[]>} */
    const byJob = new Map();
    for (const use of this.#uses) byJob.set(use.integration, [...(byJob.get(use.integration) ?? []), use]);
    const times = (/** @type {Map<string, number>} */ found) =>
      [...found].map(([name, number]) => (found.size > 1 ? `${name} (${number})` : name)).join(', ');
    const counted = (/** @type {Use[]} */ uses, /** @type {(use: Use) => string | undefined} */ of) => {
      /** @type {Map<string, number>} */
      const found = new Map();
      for (const name of uses.map(of)) if (name) found.set(name, (found.get(name) ?? 0) + 1);
      return times(found);
    };
    return [
      table(
        'Usage in the last 30 days',
        [
          ['Integration', ([name]) => shown(name)],
          ['Uses in 30 days', ([, uses]) => `${uses.length.toLocaleString('en')}${partial ? ' or more' : ''}`],
          ['Last', ([, [last]]) => time(last?.at)],
          [
            'Received',
            ([, uses]) => counted(uses, ({ form }) => (form === 'raw' ? 'saved key' : 'temporary credentials')),
          ],
          ['Purpose', ([, uses]) => counted(uses, ({ purpose }) => purpose)],
          ['Workload', ([, uses]) => counted(uses, ({ workload }) => workload) || null],
        ],
        [...byJob],
        'No job has used it in the last 30 days.',
      ),
      access,
      this.#uses.length > 0 &&
        h(
          'details',
          null,
          h('summary', null, 'Log'),
          table(
            'All uses',
            [
              ['When', ({ at }) => time(at)],
              ['Integration', ({ integration }) => integration],
              ['Version', ({ version }) => version],
              ['Received', ({ form }) => (form === 'raw' ? 'saved key' : 'temporary credentials')],
              ['Purpose', ({ purpose }) => purpose ?? ''],
              ['Workload', ({ workload }) => h('span', { class: 'long' }, workload ?? '')],
            ],
            this.#uses.slice(0, 200),
            '',
          ),
          this.#uses.length > 200 && h('p', { class: 'hint' }, 'The newest 200 are listed.'),
        ),
    ];
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
   * @param {'description' | 'expires'} [first] the field that gets the focus
   */
  #edit(credential, first = 'description') {
    const before = credential.labels ?? {};
    const text = Object.entries(before)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n');
    const keyless = isKeyless(credential.type);
    const fields = {
      description: field({
        label: 'Description',
        pointer: '/description',
        maxlength: 500,
        value: credential.description ?? '',
      }),
      labels: field({
        label: 'Labels',
        pointer: '/labels',
        rows: 3,
        mono: true,
        value: text,
        hint: 'One in each line: name: value.',
        parse: readLabels,
      }),
      expires: field({
        label: 'Expires',
        pointer: '/expires_at',
        type: 'datetime-local',
        value: writeTime(credential.expires_at),
        hint: 'When the current data expires at its issuer.',
        parse: readTime,
      }),
      vend: field({
        label: 'Jobs receive',
        pointer: '/vend',
        value: credential.vend,
        options: [
          ['any', 'Saved key or temporary credentials'],
          ['short', 'Temporary credentials only'],
        ],
      }),
    };
    const expiresBefore = fields.expires.text();
    openDialog('Edit', (close) => [
      form({
        fields: () => Object.values(fields),
        content: Object.values(fields)
          .filter((one) => one !== fields.vend || !keyless)
          .map(({ row }) => row),
        submit: 'Save',
        busy: 'Saving…',
        send: async () => {
          const labels = fields.labels.read();
          const removed = Object.fromEntries(
            Object.keys(before)
              .filter((name) => !(name in labels))
              .map((name) => [name, null]),
          );
          const body = {
            labels: { ...labels, ...removed },
            description: fields.description.read() ?? (credential.description === undefined ? undefined : null),
            expires_at: fields.expires.text() === expiresBefore ? undefined : (fields.expires.read() ?? null),
            vend: fields.vend.read() === credential.vend ? undefined : fields.vend.read(),
          };
          await this.#change('PATCH', '', 'Saved.', body);
          close();
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
        explain: ({ code }) => (code === 'precondition-failed' ? this.#conflict(credential, close) : null),
      }),
    ]);
    fields[first].control.focus();
  }

  /**
   * What another user changed after an edit was opened, and the ways to continue.
   * @param {Credential} before
   * @param {() => void} close
   */
  #conflict(before, close) {
    const box = h('span', null, 'Loading the other change…');
    void load(before.id).then(
      ({ credential: now, etag }) => {
        const labelsOf = (/** @type {Credential} */ { labels: all = {} }) =>
          Object.entries(all)
            .sort()
            .map(([name, value]) => `${name}: ${value}`)
            .join(', ');
        /** @type {[string, string, string][]} */
        const compared = [
          ['description', before.description ?? '', now.description ?? ''],
          ['labels', labelsOf(before), labelsOf(now)],
          ['expiry', before.expires_at ?? '', now.expires_at ?? ''],
          ['“Jobs receive”', before.vend, now.vend],
          ['the current version', String(before.version), String(now.version)],
        ];
        const changed = compared.filter(([, old, other]) => old !== other);
        box.replaceChildren(
          'Another user changed ',
          changed.map(([name, , other]) => (other ? `${name} to “${other}”` : `${name} (now empty)`)).join(', ') ||
            'a version of it',
          ' ',
          live('relative', now.updated_at),
          '. ',
          h(
            'button',
            {
              type: 'button',
              class: 'quiet',
              onclick: () => {
                close();
                void this.refresh().then(() => this.#edit(now));
              },
            },
            'Show theirs',
          ),
          ' ',
          h(
            'button',
            {
              type: 'button',
              class: 'quiet',
              onclick: (/** @type {Event} */ event) => {
                this.#etag = etag;
                /** @type {HTMLElement} */ (event.target).closest('form')?.requestSubmit();
              },
            },
            'Save mine',
          ),
        );
      },
      () => {
        box.textContent = 'Close this, reload the page and edit again.';
      },
    );
    return box;
  }

  /** @param {Credential} credential */
  #delete(credential) {
    const { namespace, last_activated_at: last } = credential;
    const jobs = [...new Set(this.#uses.map(({ integration }) => integration))];
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
 * Merges consecutive uses by the same job for the same purpose.
 * @param {import('../parts/api.js').AuditEntry[]} entries newest first
 */
function merged(entries) {
  /** @type {import('../parts/api.js').AuditEntry[]} */
  const result = [];
  for (const entry of entries) {
    const last = result.at(-1);
    const same =
      last &&
      entry.action === 'namespace.activated' &&
      last.action === entry.action &&
      last.integration === entry.integration &&
      last.purpose === entry.purpose &&
      JSON.stringify(last.credentials) === JSON.stringify(entry.credentials);
    if (same) last.count = (last.count ?? 1) + (entry.count ?? 1);
    else result.push({ ...entry });
  }
  return result;
}

/**
 * Merges consecutive uses by the same job for the same purpose.
 * @param {Use[]} uses newest first
 */
function mergedUses(uses) {
  /** @type {(Use & {count: number})[]} */
  const result = [];
  for (const use of uses) {
    const last = result.at(-1);
    if (last && last.integration === use.integration && last.purpose === use.purpose) last.count += 1;
    else result.push({ ...use, count: 1 });
  }
  return result;
}

customElements.define('ov-credential', CredentialPage);
