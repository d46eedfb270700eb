// The rotation of a key after the new one is saved: check it, promote it, wait for the jobs, disable the old one.

import { call, query } from '../parts/api.js';
import { button, h } from '../parts/dom.js';
import { count } from '../parts/forms.js';
import { Page, clock, confirm, live, time } from '../parts/parts.js';
import { facts, section, table } from '../parts/blocks.js';
import { check } from '../parts/checking.js';
import { disabling } from '../parts/disabling.js';
import { isKeyless } from '../rules/credentials.js';
import { load } from '../parts/credential.js';
import { denials } from '../rules/denied.js';
import { healthBadge } from '../parts/health.js';
import * as session from '../parts/session.js';
import { Names } from '../parts/words.js';
import { length } from '../rules/times.js';
import { changes } from '../rules/changes.js';
import { jobs, moved, users, waiting } from '../rules/holders.js';
import { canRequest, mayNotify, unwatch, watch } from '../parts/watch.js';
import { rotationSteps } from '../parts/rotation-steps.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Version} Version
 * @typedef {import('../parts/api.js').Holder} Holder
 * @typedef {import('../parts/rotation-steps.js').Done} Done
 * @typedef {object} Rotated
 * @property {Credential} credential
 * @property {Version} current
 * @property {Version} previous
 * @property {Holder[]} holders
 * @property {Done[]} done
 */

/** How often the page is loaded again while jobs may use the old key, in milliseconds. */
const AGAIN = 15_000;

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

  get #keyless() {
    return this.#noun === 'data';
  }

  async content() {
    const [{ credential, etag }, { body }] = await Promise.all([load(this.#id), call('GET', `${this.#path}/versions`)]);
    /** @type {Version[]} */
    const versions = body;
    this.#etag = etag;
    this.#noun = isKeyless(credential.type) ? 'data' : 'key';
    clearTimeout(this.#again);
    this.heading(`Rotation: ${credential.namespace}`);
    this.actions(h('a', { class: 'button', href: `#/credentials/${this.#id}` }, 'Back to credential'));
    if (this.#finished) return this.#finished;
    const staged = versions.find(({ state }) => state === 'staged');
    const current = versions.find(({ state }) => state === 'current');
    const previous = versions.find(({ state }) => state === 'previous');
    if (staged && current) return this.#staged(staged, current, (await stepsDone(credential, staged)).slice(0, 2));
    if (current && previous) {
      const [{ body: holders }, done] = await Promise.all([
        call('GET', `${this.#path}/holders`),
        stepsDone(credential, current),
      ]);
      const rotated = { credential, current, previous, holders, done };
      this.#wait(rotated);
      return previous.version > current.version ? this.#rolledBack(rotated) : this.#promoted(rotated);
    }
    return this.#notBegun(credential.version);
  }

  /** @param {number} version */
  #notBegun(version) {
    return [
      rotationSteps(0, [], false, this.#keyless),
      section(
        `New ${this.#noun}`,
        h(
          'p',
          null,
          `No rotation is in progress: version ${version} is the only one.${this.#keyless ? '' : ' Create a new key at the storage provider and save it here.'}`,
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
   * @param {Done[]} done
   */
  #staged(staged, current, done) {
    const noun = this.#noun;
    const accepted = staged.health?.state === 'healthy';
    return [
      rotationSteps(accepted ? 2 : 1, done, false, this.#keyless),
      section('What changes', changed(current, staged)),
      section(
        accepted ? 'Promote' : 'Check',
        h(
          'p',
          null,
          staged.health ? [healthBadge(staged.health), ' '] : [],
          accepted
            ? `The new ${noun} works. Promote it: jobs use it from their next run.`
            : `Check the new ${noun} with the storage provider. Running jobs are not affected.`,
        ),
        h(
          'div',
          { class: 'buttons' },
          button(accepted ? 'Check again' : `Check the new ${noun}`, () => check(this, this.#id, staged.version), {
            class: accepted ? '' : 'primary',
          }),
          button('Promote', () => this.#confirmPromotion(staged), { class: accepted ? 'primary' : '' }),
          button('Discard version', () => this.#confirmDiscard(staged.version), { class: 'quiet danger' }),
        ),
      ),
    ];
  }

  /** @param {Version} staged */
  #confirmPromotion({ version, health }) {
    const act = () => this.#promote(version, `Version ${version} is current. Jobs use it from their next run.`);
    if (health?.state === 'healthy') {
      void act();
      return;
    }
    const refused = health?.state === 'failing';
    confirm({
      heading: `Promote version ${version} unchecked?`,
      danger: refused,
      submit: 'Promote',
      busy: 'Promoting…',
      text: [
        refused ? 'Its check failed: jobs may fail.' : 'It was not checked yet.',
        'You can roll back at any time: the current version is kept.',
      ],
      act,
    });
  }

  /** @param {number} version */
  #confirmDiscard(version) {
    confirm({
      heading: `Discard version ${version}?`,
      text: [`The staged ${this.#noun} is deleted. Jobs keep the current ${this.#noun}.`],
      submit: 'Discard',
      busy: 'Discarding…',
      act: async () => {
        await this.#destroy(version);
        await this.done(`Version ${version} is discarded.`);
      },
    });
  }

  /**
   * Loads the page again while jobs may use another version, and reports when the last one has ended.
   * @param {Rotated} rotated
   */
  #wait({ credential, current, previous, holders }) {
    const waits = waiting(holders).length > 0;
    const rolledBack = previous.version > current.version;
    if (waits) {
      this.#again = setTimeout(() => {
        if (this.isConnected) void this.refresh();
      }, AGAIN);
    }
    if (waits && !this.#keyless && !rolledBack) watch(credential);
    else unwatch(this.#id);
    if (!waits && this.#waited)
      this.say(
        rolledBack
          ? `No job can use version ${previous.version} any more.`
          : `No job can use the old ${this.#noun} any more. You can ${this.#keyless ? 'delete' : 'disable'} it.`,
      );
    this.#waited = waits;
  }

  /** @param {Rotated} rotated */
  #promoted({ credential, current, previous, holders, done }) {
    const [noun, keyless] = [this.#noun, this.#keyless];
    const last = waiting(holders)[0]?.until;
    const deletes = keyless
      ? `Delete version ${previous.version}`
      : `I’ve disabled the old key — delete version ${previous.version}`;
    return [
      rotationSteps(
        last ? 3 : 4,
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
        jobList(holders, `the new ${noun}`, previous.version, `the old ${noun}`),
        h(
          'div',
          { class: 'buttons' },
          button('Refresh', () => this.refresh(), { class: 'quiet' }),
          last && !keyless && notifying(),
          this.#promoteButton(previous.version, current.version, 'Roll back to'),
          this.#another(),
        ),
      ),
      section(
        keyless ? 'Delete the old version' : 'Disable the old key',
        last && h('p', { class: 'note warn' }, 'Not yet: wait for the jobs above.'),
        ...disabling(credential, previous.information ?? {}),
        facts([{ name: `Old ${noun} saved`, value: time(previous.created_at) }]),
        !last &&
          this.#deleteButton(previous.version, deletes, () =>
            finished({ credential, current, previous, holders, done }),
          ),
      ),
      section('What changed', changed(previous, current)),
    ];
  }

  /**
   * After a roll back neither version is the old one: the current one is older, and the other may come back.
   * @param {Rotated} rotated
   */
  #rolledBack({ credential, current, previous, holders }) {
    const open = waiting(holders);
    const other = `version ${previous.version}`;
    return [
      section(
        `Rolled back to version ${current.version}`,
        h(
          'p',
          { class: open.length ? 'note warn' : 'note' },
          open.length
            ? `Jobs use version ${current.version} from their next run. Until the runs below end, they need the ${this.#noun} of ${other} too.`
            : `All jobs use version ${current.version}. No job can use ${other} any more.`,
        ),
        jobList(holders, `version ${current.version}`, previous.version),
        h(
          'div',
          { class: 'buttons' },
          button('Refresh', () => this.refresh(), { class: 'quiet' }),
          this.#promoteButton(previous.version, current.version, 'Promote', ' again'),
          this.#another(),
        ),
      ),
      section(
        `Version ${previous.version}`,
        h(
          'p',
          null,
          `It is kept, and can be promoted again. If you do not need it, ${this.#keyless ? 'delete it' : 'disable its key and delete it'}.`,
        ),
        !open.length && [
          ...(this.#keyless ? [] : disabling(credential, previous.information ?? {})),
          this.#deleteButton(previous.version, `Delete ${other}`),
        ],
      ),
      section('What differs', changed(previous, current)),
    ];
  }

  /**
   * @param {number} version
   * @param {number} current
   * @param {string} verb
   * @param {string} [rest]
   */
  #promoteButton(version, current, verb, rest = '') {
    const name = `${verb} version ${version}${rest}`;
    const act = () => this.#promote(version, `Version ${version} is current again.`);
    return button(
      name,
      () =>
        confirm({
          heading: `${name}?`,
          danger: false,
          submit: verb.replace(' to', ''),
          busy: 'One moment…',
          text: [`Jobs use version ${version} again from their next run. Version ${current} is kept.`],
          act,
        }),
      { class: 'quiet' },
    );
  }

  /** The way to one more rotation while the versions of this one are kept. */
  #another() {
    return h(
      'a',
      { class: 'button quiet', href: `#/credentials/${this.#id}/replace` },
      this.#keyless ? 'Enter other data' : 'Enter another new key',
    );
  }

  /**
   * @param {number} version
   * @param {string} name
   * @param {() => Promise<Node[]>} [end] shown afterwards
   */
  #deleteButton(version, name, end) {
    const only = this.#keyless ? '' : ' Delete it once its key is disabled.';
    return h(
      'div',
      { class: 'buttons' },
      button(
        name,
        () =>
          confirm({
            heading: `Delete version ${version}?`,
            submit: 'Delete',
            busy: 'Deleting…',
            text: [`Its data key is destroyed: no one can restore this version.${only}`],
            act: async () => {
              await this.#destroy(version);
              if (end) this.#finished = await end();
              await this.done(`Version ${version} is deleted.`);
            },
          }),
        { class: 'danger' },
      ),
    );
  }

  /** @param {number} version */
  async #destroy(version) {
    await call('DELETE', `${this.#path}/versions/${version}`, { headers: { 'If-Match': this.#etag } });
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
 * The jobs of a credential: which have the current version, and which may use another one until when.
 * @param {Holder[]} holders
 * @param {string} current the name of the current version
 * @param {number} previous
 * @param {string} [old] the name of the previous version
 */
function jobList(holders, current, previous, old = `version ${previous}`) {
  return h(
    'ul',
    { class: 'ticks' },
    jobs(holders).map(({ job, moved, waits }) =>
      h(
        'li',
        { class: waits ? null : 'done' },
        h('strong', null, job),
        waits
          ? [
              ` may use ${waits.version === previous ? old : `version ${waits.version}`} until `,
              live('until', waits.until),
            ]
          : moved
            ? ` has ${current}`
            : ` has no active run with ${old}`,
      ),
    ),
  );
}

/**
 * The end of a rotation: how long it took, and how the jobs did that used the credential.
 * @param {Rotated} rotated
 */
async function finished({ credential: { id, namespace, type, updated_at: since }, current, previous, holders, done }) {
  const used = moved(holders).length;
  const refused = session.isAdmin() ? await refusedUsers(namespace, since, holders) : [];
  const jobs = [
    `${count(used, 'job')} ${used === 1 ? 'has' : 'have'} used the new ${isKeyless(type) ? 'data' : 'key'}`,
    refused.length ? `, ${refused.join(', ')} ${refused.length === 1 ? 'was' : 'were'} denied` : '',
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
 * The jobs that used a credential and were denied its namespace since then.
 * @param {string} namespace
 * @param {string} since
 * @param {Holder[]} holders
 */
async function refusedUsers(namespace, since, holders) {
  const [{ body }, names] = await Promise.all([
    call('GET', `/audit${query({ namespace, actor: 'integration', since, limit: '1000' })}`),
    Names.load({ credentials: false }),
  ]);
  const known = users(holders).map(({ job }) => job);
  const denied = denials(body).map(({ integration }) => names.of(integration) ?? integration);
  return known.filter((job) => denied.includes(job));
}

/**
 * @param {Version} before
 * @param {Version} after
 */
function changed(before, after) {
  const { same, prints, changed, possible, unchanged, differences } = changes(before, after);
  return h(
    'div',
    { class: 'page-body' },
    same
      ? h('p', { class: 'note warn' }, 'Nothing: both versions contain the same data. Did you enter the old key again?')
      : h(
          'p',
          null,
          h('strong', null, 'Changed: '),
          `${changed.join(', ') || 'a field that is not shown'} (${prints}).`,
          possible.length ? ` Possibly also ${possible.join(', ')}, not shown in full.` : '',
        ),
    h('p', null, h('strong', null, 'Unchanged: '), `${unchanged.join(', ') || 'nothing'}.`),
    differences.length > 0 &&
      table(
        'Differences',
        [
          { heading: 'Field', cell: ({ field }) => field },
          { heading: `Version ${before.version}`, cell: ({ before: text }) => h('span', { class: 'long' }, text) },
          { heading: `Version ${after.version}`, cell: ({ after: text }) => h('span', { class: 'long' }, text) },
        ],
        differences,
        '',
      ),
  );
}

customElements.define('ov-rotation', Rotation);
