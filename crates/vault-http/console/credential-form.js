// The data of a credential: saved, replaced, or compared with what is saved.

import { Idempotency, Problem, call } from './api.js';
import { announce, go, h } from './dom.js';
import { checkbox, field, form, readTime } from './forms.js';
import { Page, flash } from './parts.js';
import { recognise } from './paste.js';
import { TYPE_NAMES, load } from './credentials.js';

/**
 * @typedef {import('./api.js').CredentialType} CredentialType
 * @typedef {import('./forms.js').Field} Field
 * @typedef {import('./forms.js').FieldOptions & {name: string}} Shape
 */

/** @param {string} text */
const flag = (text) => text === '' ? undefined : text === 'true';
/** @type {[string, string][]} */
const YES_NO = [['', 'As the provider needs it'], ['true', 'Yes'], ['false', 'No']];

/**
 * The key file's object, or the text as it is where it is no JSON: the server says what is wrong with it.
 * @param {string} text
 */
const keyFile = (text) => {
  if (!text.trim()) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** @param {string} text */
const headers = (text) => {
  const lines = text.split('\n').filter((line) => line.trim());
  if (!lines.length) return undefined;
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf(':');
    if (at < 1) throw 'Write one header in each line: Name: value.';
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
};

/**
 * Labels, one in each line.
 * @param {string} text
 */
export function readLabels(text) {
  const lines = text.split(/[\n,]/).map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const [name = '', ...value] = line.split(/[:=]/);
    return [name.trim(), value.join(':').trim()];
  }));
}

/** @type {Record<CredentialType, Shape[]>} */
const SHAPES = {
  s3: [
    { name: 'access_key_id', label: 'Access key ID', required: true, mono: true },
    { name: 'secret_access_key', label: 'Secret access key', required: true, secret: true },
    { name: 'bucket', label: 'Bucket', required: true },
    { name: 'region', label: 'Region', placeholder: 'eu-central-1' },
    { name: 'endpoint', label: 'Endpoint', placeholder: 'https://s3.example.com', hint: 'For storage other than AWS.' },
    { name: 'key_prefix', label: 'Key prefix' },
    { name: 'path_style_access', label: 'Path-style access', options: YES_NO, parse: flag },
    { name: 'role_arn', label: 'Role ARN', mono: true, hint: 'The role whose short-lived credentials jobs can get.' },
    { name: 'sts_endpoint', label: 'STS endpoint', placeholder: 'https://sts.example.com', hint: 'Where sessions are requested, if not at AWS or the endpoint.' },
    { name: 'sse_kms_key_id', label: 'KMS key', mono: true, hint: 'The AWS KMS key that new objects are encrypted under.' },
    { name: 'session_token', label: 'Session token', secret: true },
    { name: 'external_id', label: 'External ID', secret: true },
  ],
  azure_identity: [
    { name: 'tenant_id', label: 'Tenant ID', required: true, mono: true },
    { name: 'client_id', label: 'Client ID', required: true, mono: true },
    { name: 'client_secret', label: 'Client secret', required: true, secret: true },
    { name: 'connection_string', label: 'Connection string', required: true, secret: true },
    { name: 'container', label: 'Container' },
    { name: 'key_prefix', label: 'Key prefix' },
  ],
  gcs: [
    { name: 'service_account_key', label: 'Service account key', required: true, rows: 5, mono: true, parse: keyFile, hint: 'The content of the JSON key file.' },
    { name: 'bucket', label: 'Bucket', required: true },
    { name: 'key_prefix', label: 'Key prefix' },
  ],
  'direct-link': [
    { name: 'url', label: 'URL', required: true, secret: true, hint: 'An https address. Its query may hold a signature.' },
    { name: 'headers', label: 'Headers', rows: 2, mono: true, parse: headers, hint: 'One in each line: Name: value.' },
  ],
};

class CredentialForm extends Page {
  /** @type {Map<string, Field>} */
  #data = new Map();
  /** @type {Field[]} */
  #more = [];
  #shown = h('div', { class: 'page-body' });
  /** @type {CredentialType} */
  #type = 's3';
  #etag = '';

  get #mode() {
    return this.params[1] ?? 'save';
  }

  label() {
    return { save: 'Add a credential', replace: 'Replace the data', match: 'Compare with the saved data' }[this.#mode] ?? '';
  }

  async content() {
    this.classList.add('narrow', 'wide');
    if (this.#mode === 'save') return [this.#save()];
    const { credential, etag } = await load(this.params[0] ?? '');
    this.#etag = etag;
    this.heading(`${this.label()}: ${credential.namespace}`);
    this.#choose(credential.type);
    if (this.#mode === 'match') return [this.#match()];
    for (const [name, field] of this.#data) {
      const known = credential.information?.[name];
      // Where it leads is known; what it is opened with has to be given again.
      if (typeof known === 'boolean' || (typeof known === 'string' && !known.startsWith('…'))) field.write(String(known));
    }
    return [this.#replace()];
  }

  /**
   * Shows the fields of `type`.
   * @param {CredentialType} type
   */
  #choose(type) {
    this.#type = type;
    this.#data = new Map(SHAPES[type].map((shape) => [shape.name, field({ ...shape, pointer: `/data/${shape.name}` })]));
    const [required, optional] = [true, false].map((wanted) => [...this.#data.values()].filter((field) => field.required === wanted).map(({ row }) => row));
    this.#shown.replaceChildren(...required ?? [],
      h('details', null, h('summary', null, 'Optional fields'), h('div', { class: 'pair' }, optional ?? [])));
  }

  #values() {
    return Object.fromEntries([...this.#data].map(([name, { read }]) => [name, read()]));
  }

  #fields() {
    return [...this.#data.values(), ...this.#more];
  }

  /**
   * Where something can be pasted or dropped that fills the fields.
   * @param {((type: CredentialType) => void) | null} choose what to do with another type; `null`: the type is given
   */
  #paste(choose) {
    const status = h('p', { class: 'hint', role: 'status' });
    const text = field({
      label: 'Paste what you have', rows: 2, mono: true,
      hint: 'An AWS profile or variables, an rclone section, the JSON of az ad sp create-for-rbac, an Azure connection string, a Google Cloud key file, a link. The text is parsed in your browser.',
    });
    text.row.querySelector('.optional')?.remove();
    const file = h('input', { type: 'file', class: 'hidden', 'aria-label': 'Choose a file to fill the form', accept: '.json,.ini,.conf,.env,.txt,application/json,text/plain' });
    const fill = (/** @type {string} */ pasted) => {
      const found = recognise(pasted);
      if (!found) {
        status.textContent = 'Not recognised: fill in the fields below.';
        return false;
      }
      if (found.type !== this.#type) {
        if (!choose) {
          status.textContent = `That is ${found.source}, but this credential is of type ${TYPE_NAMES[this.#type]}.`;
          return false;
        }
        choose(found.type);
      }
      let filled = 0;
      for (const [name, value] of Object.entries(found.values)) {
        const target = this.#data.get(name);
        if (!target) continue;
        target.write(value);
        target.refuse('');
        target.row.closest('details')?.setAttribute('open', '');
        filled += 1;
      }
      const missing = [...this.#data.values()].filter(({ required, control }) => required && !control.value).map(({ label }) => label);
      status.textContent = `Filled ${filled} field${filled === 1 ? '' : 's'} from ${found.source}.${missing.length ? ` Still missing: ${missing.join(', ')}.` : ''}`;
      return true;
    };
    const read = async (/** @type {File | undefined} */ chosen) => {
      if (!chosen) return;
      if (chosen.size > 65_536) status.textContent = 'The file is too large: at most 64 KiB.';
      else fill(await chosen.text());
    };
    text.control.addEventListener('input', () => {
      // What was taken over must not stay in sight.
      if (fill(text.control.value)) text.write('');
    });
    file.addEventListener('change', () => void read(file.files?.[0]).then(() => { file.value = ''; }));
    const box = h('div', {
      class: 'paste',
      ondragover: (/** @type {DragEvent} */ event) => { event.preventDefault(); box.classList.add('over'); },
      ondragleave: () => box.classList.remove('over'),
      ondrop: (/** @type {DragEvent} */ event) => {
        event.preventDefault();
        box.classList.remove('over');
        const dropped = event.dataTransfer?.files[0];
        if (dropped) void read(dropped);
        else if (fill(event.dataTransfer?.getData('text') ?? '')) text.write('');
      },
    }, text.row, h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'quiet', onclick: () => file.click() }, 'Choose a file'), h('span', { class: 'hint' }, 'or drop one here')), file, status);
    file.tabIndex = -1;
    return box;
  }

  #save() {
    const namespace = field({ label: 'Namespace', pointer: '/namespace', required: true, placeholder: 'imports/nightly', mono: true, value: this.query.get('namespace') ?? '',
      hint: 'Jobs ask for it by this name, which is fixed.' });
    const type = field({ label: 'Type', pointer: '/type', options: Object.entries(TYPE_NAMES), value: 's3', hint: 'Recognised from what you paste.' });
    type.control.addEventListener('input', () => this.#choose(/** @type {CredentialType} */ (type.control.value)));
    const labels = field({ label: 'Labels', pointer: '/labels', rows: 2, mono: true, placeholder: 'team: data', hint: 'One in each line: name: value.', parse: (text) => text.trim() ? readLabels(text) : undefined });
    const description = field({ label: 'Description', pointer: '/description', maxlength: 500 });
    const expires = field({ label: 'Expires', pointer: '/expires_at', type: 'datetime-local', hint: 'When it expires at its issuer.', parse: readTime });
    const vend = field({ label: 'Handed out', pointer: '/vend', value: 'any', options: [['any', 'As jobs ask for it'], ['short', 'Only as short-lived credentials']] });
    const verify = verifyBox();
    this.#more = [namespace, type, labels, description, expires, vend];
    this.#choose('s3');
    const idempotency = new Idempotency();
    const paste = this.#paste((chosen) => {
      type.control.value = chosen;
      this.#choose(chosen);
    });
    return form({
      fields: () => [namespace, type, ...this.#data.values(), labels, description, expires, vend],
      content: [paste, h('div', { class: 'pair' }, namespace.row, type.row), this.#shown,
        h('details', null, h('summary', null, 'Labels, description, expiry'), h('div', { class: 'pair' }, labels.row, description.row, expires.row, vend.row)), verify.row],
      submit: 'Save', busy: 'Saving…',
      send: async () => {
        const body = { type: this.#type, namespace: namespace.read(), data: this.#values(), labels: labels.read(), description: description.read(), expires_at: expires.read(), vend: vend.read() };
        const { body: saved } = await call('PATCH', `/organization-vault${verify.control.checked ? '?verify=true' : ''}`, { body, headers: idempotency.header(body) });
        flash('Saved. Its secrets are encrypted and are never shown again.');
        go(`#/credentials/${saved.id}`);
      },
      buttons: [h('a', { class: 'button', href: '#/credentials' }, 'Cancel')],
      explain: explainVerify,
    });
  }

  #replace() {
    const expires = field({ label: 'Expires', pointer: '/expires_at', type: 'datetime-local', hint: 'When this data expires at its issuer.', parse: readTime });
    const stage = checkbox('Stage it: jobs get the current data until this version is promoted', { checked: this.query.get('stage') === 'true' });
    const verify = verifyBox();
    this.#more = [expires];
    const idempotency = new Idempotency();
    const id = this.params[0] ?? '';
    return form({
      fields: () => this.#fields(),
      content: [h('p', { class: 'hint' }, 'Data is replaced as a whole: secrets have to be entered again. The credential keeps its id, so jobs need no change.'),
        this.#paste(null), this.#shown, expires.row, stage.row, verify.row],
      submit: 'Save as a new version', busy: 'Saving…',
      send: async () => {
        const body = { data: this.#values(), expires_at: expires.read(), stage: stage.control.checked };
        const headers = { ...idempotency.header(body), 'If-Match': this.#etag };
        const { body: made } = await call('POST', `/organization-vault/${id}/versions${verify.control.checked ? '?verify=true' : ''}`, { body, headers });
        flash(stage.control.checked ? `Version ${made.version} is staged. Check it, then promote it.` : `Version ${made.version} is current: jobs get it from now on.`);
        go(`#/credentials/${id}`);
      },
      buttons: [h('a', { class: 'button', href: `#/credentials/${id}` }, 'Cancel')],
      explain: (problem) => problem.code === 'precondition-failed' ? this.#changed() : explainVerify(problem),
    });
  }

  /** Somebody else has changed the credential in between. */
  #changed() {
    return h('span', null, 'Somebody else changed this credential after you opened this page. ',
      h('a', { href: `#/credentials/${this.params[0]}`, target: '_self' }, 'Look at its versions'), ', or ',
      h('button', { type: 'button', class: 'quiet', onclick: async (/** @type {Event} */ event) => {
        this.#etag = (await load(this.params[0] ?? '')).etag;
        /** @type {HTMLElement} */ (event.target).closest('.note')?.remove();
        announce('Save again to replace the data all the same.');
      } }, 'replace it all the same'), '.');
  }

  #match() {
    this.#more = [];
    const result = h('div', { role: 'status' });
    const id = this.params[0] ?? '';
    return form({
      fields: () => this.#fields(),
      content: [h('p', { class: 'hint' }, 'Fingerprints are compared; nothing is decrypted. At most 10 comparisons an hour. Each is audited.'), this.#paste(null), this.#shown, result],
      submit: 'Compare', busy: 'Comparing…',
      send: async () => {
        result.replaceChildren();
        const { body } = await call('POST', `/organization-vault/${id}/match`, { body: { data: this.#values() } });
        result.replaceChildren(body.same
          ? h('p', { class: 'note good' }, 'The same: this is the current data.')
          : h('p', { class: 'note warn' }, 'Different: at least one field is not as saved.'));
      },
      buttons: [h('a', { class: 'button', href: `#/credentials/${id}` }, 'Back')],
    });
  }
}

function verifyBox() {
  return checkbox('Check it with the storage provider first', { hint: 'Nothing is saved if the provider does not accept it.' });
}

/** @param {Problem} problem */
function explainVerify(problem) {
  if (problem.code === 'not-usable') return 'Nothing was saved. Correct the data, or save it without the check.';
  if (problem.errors.some(({ pointer }) => pointer === '/verify') || (problem.status === 400 && problem.detail.includes('verify'))) return 'This server does not check credentials when they are saved. Untick the box.';
  return null;
}

customElements.define('ov-credential-form', CredentialForm);
