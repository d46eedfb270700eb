// The rotation of a key after the new one is saved: check it, promote it, wait for the jobs, disable the old one.

import { call } from './api.js';
import { h } from './dom.js';
import { Page, confirm, facts, healthBadge, section, table, time } from './parts.js';
import { check } from './checking.js';
import { rotationSteps } from './credential-form.js';
import { load } from './credentials.js';
import * as session from './session.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Version} Version
 * @typedef {import('./api.js').Use} Use
 */

/** How long an activation lasts at most, in milliseconds: so long a job may hold the key that it was given. */
const LONGEST = 12 * 3_600_000;

/** Where an old key is disabled, by type. @type {Record<string, string>} */
const DISABLE = {
  s3: 'In AWS: aws iam update-access-key --access-key-id OLD_KEY_ID --status Inactive. Disable the key before you delete it: a disabled key can be enabled again.',
  azure_identity: 'In Azure: az ad app credential delete --id CLIENT_ID --key-id OLD_SECRET_ID. Renew the account key of the connection string separately.',
  gcs: 'In Google Cloud: gcloud iam service-accounts keys disable OLD_KEY_ID --iam-account SERVICE_ACCOUNT. A disabled key can be enabled again.',
  'direct-link': 'Ask the issuer of the link to revoke the old one; a signed link ends at its own expiry.',
};

class Rotation extends Page {
  #etag = '';

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
    this.heading(`Rotation: ${credential.namespace}`);
    this.actions(h('a', { class: 'button', href: `#/credentials/${this.#id}` }, 'The credential'));
    const staged = versions.find(({ state }) => state === 'staged');
    const current = versions.find(({ state }) => state === 'current');
    const previous = versions.find(({ state }) => state === 'previous');
    if (staged && current) return this.#staged(staged, current);
    if (current && previous) return this.#promoted(credential, current, previous);
    return [rotationSteps(0), section('New key', h('p', null, 'No other version is kept. Make a new key at the storage provider and save it here.'),
      h('div', { class: 'buttons' }, h('a', { class: 'button primary', href: `#/credentials/${this.#id}/replace` }, 'Enter the new key')))];
  }

  /**
   * @param {Version} staged
   * @param {Version} current
   */
  #staged(staged, current) {
    const checks = session.server().checks;
    const accepted = staged.health?.state === 'healthy';
    const refused = staged.health?.state === 'failing';
    const promote = h('button', { type: 'button', class: accepted || !checks ? 'primary' : '', onclick: () => {
      const act = () => this.#promote(staged.version, `Version ${staged.version} is current: jobs get it from now on.`);
      if (accepted) void act();
      else confirm({ heading: `Promote version ${staged.version} unchecked?`, danger: refused, submit: 'Promote', busy: 'Promoting…',
        text: [refused ? 'The storage provider does not accept it: jobs will fail.' : 'Nothing shows yet that the storage provider accepts it.', 'You can go back at any time: the version that is current now is kept.'], act });
    } }, 'Promote');
    return [rotationSteps(accepted ? 2 : 1),
      section('What changes', changes(current, staged)),
      section(accepted ? 'Promote' : 'Check', h('p', null, staged.health ? [healthBadge(staged.health), ' '] : [],
        accepted ? 'The storage provider accepts the new key. Promote it: jobs get it from their next activation on.'
          : checks ? 'See whether the storage provider accepts the new key. Jobs notice nothing of it.' : 'This server does not check saved credentials: try the new key at the storage provider, then promote it.'),
      h('div', { class: 'buttons' },
        checks && h('button', { type: 'button', class: accepted ? '' : 'primary', onclick: () => void check(this, this.#id, staged.version) }, accepted ? 'Check again' : 'Check the new key'), promote,
        h('button', { type: 'button', class: 'danger', onclick: () => confirm({
          heading: `Discard version ${staged.version}?`, text: ['The staged key is destroyed. Jobs keep the key that they have.'], submit: 'Discard', busy: 'Discarding…',
          act: async () => {
            await call('DELETE', `${this.#path}/versions/${staged.version}`, { headers: { 'If-Match': this.#etag } });
            await this.done(`Version ${staged.version} is discarded.`);
          } }) }, 'Discard it')))];
  }

  /**
   * @param {Credential} credential
   * @param {Version} current
   * @param {Version} previous
   */
  async #promoted(credential, current, previous) {
    const { body } = await call('GET', `${this.#path}/activations?limit=1000`);
    /** @type {Use[]} */
    const uses = body;
    // Uses do not say their version: what was handed out before the last change may be the old key.
    const changed = Date.parse(credential.updated_at);
    /** @type {Map<string, Use>} */
    const holders = new Map();
    for (const use of uses) {
      const at = Date.parse(use.at);
      if (at <= changed && at > Date.now() - LONGEST && !holders.has(use.integration)) holders.set(use.integration, use);
    }
    const waiting = holders.size > 0;
    const latest = Math.max(...[...holders.values()].map(({ at }) => Date.parse(at)));
    const back = h('button', { type: 'button', onclick: () => confirm({ heading: `Go back to version ${previous.version}?`, danger: false, submit: 'Go back', busy: 'Going back…',
      text: [`Jobs get version ${previous.version} again from their next activation on. Version ${current.version} is kept.`], act: () => this.#promote(previous.version, `Version ${previous.version} is current again.`) }) }, `Go back to version ${previous.version}`);
    const again = h('button', { type: 'button', class: 'quiet', onclick: () => void this.refresh() }, 'Look again');
    return [rotationSteps(waiting ? 3 : 4),
      section('Wait for jobs', waiting
        ? h('div', { class: 'page-body' }, h('p', null, 'These jobs may still hold the old key. An activation lasts at most 12 hours, so none does after ', time(new Date(latest + LONGEST).toISOString()), '.'),
          table('Jobs that may hold the old key', [['Job', ({ integration }) => integration], ['Was given it', ({ at }) => time(at)], ['May hold it until', ({ at }) => time(new Date(Date.parse(at) + LONGEST).toISOString())]], [...holders.values()], ''))
        : h('p', { class: 'note good' }, 'No job can hold the old key any more: none was given it in the last 12 hours.'),
      h('div', { class: 'buttons' }, again, back)),
      section('Disable the old key', h('p', null, waiting ? 'Not yet: wait for the jobs above. Then disable the old key where it was issued.' : 'Now disable the old key where it was issued.'),
        facts([['Old key', previous.information?.access_key_id ?? previous.information?.client_id ?? previous.information?.private_key_id ?? h('code', null, previous.information?.fingerprint ?? '')], ['Saved', time(previous.created_at)]]),
        h('p', { class: 'hint' }, DISABLE[credential.type] ?? ''),
        !waiting && h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'danger', onclick: () => confirm({ heading: `Destroy version ${previous.version}?`, submit: 'Destroy', busy: 'Destroying…',
          text: ['Its data key is destroyed: nobody can bring this version back. Do this once the old key is disabled.'], act: async () => {
            await call('DELETE', `${this.#path}/versions/${previous.version}`, { headers: { 'If-Match': this.#etag } });
            await this.done(`Version ${previous.version} is destroyed. The rotation is done.`);
          } }) }, `The old key is disabled: destroy version ${previous.version}`))),
      section('What changed', changes(previous, current))];
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

/**
 * In what two versions differ, as far as it shows.
 * @param {Version} before
 * @param {Version} after
 */
function changes(before, after) {
  const text = (/** @type {unknown} */ value) => value === undefined ? 'not set' : Array.isArray(value) ? value.join(', ') : String(value);
  const names = [...new Set([...Object.keys(before.information ?? {}), ...Object.keys(after.information ?? {})])];
  const rows = names.map((name) => ({ name, one: text(before.information?.[name]), other: text(after.information?.[name]) }));
  const same = before.information?.fingerprint === after.information?.fingerprint;
  const differing = rows.filter(({ one, other }) => one !== other);
  return h('div', { class: 'page-body' },
    same && h('p', { class: 'note warn' }, 'Nothing: both versions hold the same data. Did you enter the old key again?'),
    differing.length > 0 && table('Differences', [['Field', ({ name }) => h('code', null, name)], [`Version ${before.version}`, ({ one }) => one], [`Version ${after.version}`, ({ other }) => other]], differing, ''),
    h('p', { class: 'hint' }, `Unchanged: ${rows.filter(({ one, other }) => one === other).map(({ name }) => name).join(', ') || 'nothing'}. Secrets are compared by the fingerprint alone.`));
}

customElements.define('ov-rotation', Rotation);
