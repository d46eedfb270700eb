// The data of a credential: saved, replaced, or compared with the saved data.

import { readLabels } from '../rules/labels.js';
import { Idempotency, Problem, call, query } from '../parts/api.js';
import { announce, button, go, h } from '../parts/dom.js';
import { checkbox, count, field, form, readTime, writeTime } from '../parts/forms.js';
import { Page, day, flash } from '../parts/parts.js';
import { TYPE_NAMES, isKeyless, place } from '../rules/credentials.js';
import { load } from '../parts/credential.js';
import { linkExpiry } from '../rules/times.js';
import { rotationSteps } from '../parts/rotation-steps.js';
import { buckets, saveSeveral, titleOf } from '../parts/save-several.js';
import * as session from '../parts/session.js';

/**
 * @typedef {import('../parts/api.js').CredentialType} CredentialType
 * @typedef {import('../parts/api.js').ReadEntry} ReadEntry
 * @typedef {import('../parts/save-several.js').Key} Key
 * @typedef {import('../parts/forms.js').Field} Field
 * @typedef {import('../parts/forms.js').FieldOptions & {name: string, common?: boolean}} Shape
 */

/** @param {string} text */
const flag = (text) => (text === '' ? undefined : text === 'true');
/** @type {[string, string][]} */
const YES_NO = [
  ['', 'As the provider needs it'],
  ['true', 'Yes'],
  ['false', 'No'],
];

/**
 * The key file's object, or the text if it is no JSON: the server then reports the error.
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
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      if (at < 1) throw 'Write one header in each line: Name: value.';
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
};

const BUCKETS_HINT = 'Separate several buckets with commas.';
/** The object at the provider that must trust the subject of a keyless credential. @type {Partial<Record<CredentialType, string>>} */
const TRUSTING = {
  's3-federated': 'role',
  'azure-federated': 'application or managed identity',
  'gcs-federated': 'workload identity provider or service account',
};

/** @type {Shape[]} */
const S3_LOCATION = [
  { name: 'bucket', label: 'Bucket', required: true, parse: buckets, hint: BUCKETS_HINT },
  { name: 'region', label: 'Region', common: true, placeholder: 'eu-central-1' },
  {
    name: 'endpoint',
    label: 'Endpoint',
    common: true,
    placeholder: 'https://s3.example.com',
    hint: 'For storage other than AWS.',
  },
  { name: 'key_prefix', label: 'Key prefix' },
  { name: 'path_style_access', label: 'Path-style access', options: YES_NO, parse: flag },
];

/** @type {Record<CredentialType, Shape[]>} */
const SHAPES = {
  s3: [
    { name: 'access_key_id', label: 'Access key ID', required: true, mono: true },
    { name: 'secret_access_key', label: 'Secret access key', required: true, secret: true },
    ...S3_LOCATION,
    { name: 'role_arn', label: 'Role ARN', mono: true, hint: 'The role whose short-lived credentials jobs can get.' },
    {
      name: 'sts_endpoint',
      label: 'STS endpoint',
      placeholder: 'https://sts.example.com',
      hint: 'Where sessions are requested, if not at AWS or the endpoint.',
    },
    {
      name: 'sse_kms_key_id',
      label: 'KMS key',
      mono: true,
      hint: 'The AWS KMS key that new objects are encrypted under.',
    },
    { name: 'session_token', label: 'Session token', secret: true },
    { name: 'external_id', label: 'External ID', secret: true },
  ],
  azure_identity: [
    { name: 'connection_string', label: 'Connection string', required: true, secret: true },
    {
      name: 'tenant_id',
      label: 'Tenant ID',
      common: true,
      mono: true,
      hint: 'Of the application. Required unless the connection string contains AccountKey or SharedAccessSignature.',
    },
    { name: 'client_id', label: 'Client ID', common: true, mono: true },
    { name: 'client_secret', label: 'Client secret', common: true, secret: true },
    { name: 'container', label: 'Container' },
    { name: 'key_prefix', label: 'Key prefix' },
  ],
  gcs: [
    {
      name: 'service_account_key',
      label: 'Service account key',
      required: true,
      rows: 5,
      secret: true,
      parse: keyFile,
      hint: 'The content of the JSON key file.',
    },
    { name: 'bucket', label: 'Bucket', required: true, parse: buckets, hint: BUCKETS_HINT },
    { name: 'key_prefix', label: 'Key prefix' },
  ],
  'direct-link': [
    {
      name: 'url',
      label: 'URL',
      required: true,
      secret: true,
      hint: 'An https address. Its query may hold a signature.',
    },
    {
      name: 'headers',
      label: 'Headers',
      rows: 2,
      secret: true,
      parse: headers,
      hint: 'One in each line: Name: value.',
    },
  ],
  's3-federated': [
    { name: 'role_arn', label: 'Role ARN', required: true, mono: true, hint: 'The role that trusts this server.' },
    ...S3_LOCATION,
    {
      name: 'sts_endpoint',
      label: 'STS endpoint',
      placeholder: 'https://sts.example.com',
      hint: 'Where sessions are requested, if not at AWS or the endpoint.',
    },
    {
      name: 'sse_kms_key_id',
      label: 'KMS key',
      mono: true,
      hint: 'The AWS KMS key that new objects are encrypted under.',
    },
  ],
  'azure-federated': [
    { name: 'tenant_id', label: 'Tenant ID', required: true, mono: true },
    {
      name: 'client_id',
      label: 'Client ID',
      required: true,
      mono: true,
      hint: 'Of the application or the user-assigned managed identity.',
    },
    { name: 'account_name', label: 'Storage account', required: true },
    { name: 'container', label: 'Container', required: true },
    { name: 'key_prefix', label: 'Key prefix' },
    {
      name: 'cloud',
      label: 'Cloud',
      options: [
        ['', 'Public'],
        ['china', 'China'],
        ['us-government', 'US government'],
      ],
    },
  ],
  'gcs-federated': [
    {
      name: 'provider',
      label: 'Workload identity provider',
      required: true,
      mono: true,
      rows: 2,
      placeholder: '//iam.googleapis.com/projects/…/locations/global/workloadIdentityPools/…/providers/…',
      parse: (text) => text.replace(/\s/g, '') || undefined,
    },
    {
      name: 'service_account',
      label: 'Service account',
      required: true,
      mono: true,
      placeholder: 'name@project.iam.gserviceaccount.com',
    },
    { name: 'bucket', label: 'Bucket', required: true, parse: buckets, hint: BUCKETS_HINT },
    { name: 'key_prefix', label: 'Key prefix' },
  ],
};

/**
 * A value of a request as its field shows it.
 * @param {string} name
 * @param {any} value
 */
const shown = (name, value) =>
  typeof value !== 'object'
    ? String(value)
    : name === 'headers'
      ? Object.entries(value)
          .map((header) => header.join(': '))
          .join('\n')
      : JSON.stringify(value);

/**
 * The text of a file: UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it.
 * @param {File} file
 */
async function decoded(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding, { fatal: true }).decode(bytes);
}

/**
 * Shows a key file as its account and ID instead of its text, which is long and masked.
 * @param {Field} file
 */
function shownAsChip(file) {
  const chip = h('p', { class: 'chip', hidden: true });
  const box = file.control.closest('.with-button');
  const show = () => {
    const key = keyFile(file.control.value);
    const known = typeof key === 'object' && key?.client_email;
    chip.hidden = !known;
    box?.toggleAttribute('hidden', Boolean(known));
    if (!known) return;
    const id = String(key.private_key_id ?? '');
    chip.replaceChildren(
      h('span', { translate: 'no' }, `✓ Key of ${key.client_email}${id && ` (ID …${id.slice(-4)})`}`),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          onclick: () => {
            file.write('');
            file.control.focus();
          },
        },
        'Replace',
      ),
    );
  };
  box?.before(chip);
  file.control.addEventListener('input', show);
  const { write, refuse } = file;
  file.write = (value) => {
    write(value);
    show();
  };
  file.refuse = (message) => {
    refuse(message);
    // A refused key file can be corrected.
    if (!message) return;
    chip.hidden = true;
    box?.removeAttribute('hidden');
  };
}

/** @typedef {Record<'namespace' | 'type' | 'labels' | 'description' | 'expires' | 'vend', Field>} SaveFields */

/** @param {import('../parts/api.js').ReadViolation} violation */
const said = ({ field: name, reason }) => `${name ? `${name}: ` : ''}${reason}.`;

/** Where text and files are pasted or dropped, which the server reads. */
class PasteBox {
  #status = h('div', { class: 'hint', role: 'status' });
  // No list of endings: the file ~/.aws/credentials has none.
  #file = h('input', { type: 'file', class: 'hidden', 'aria-label': 'Choose a file to fill the form', tabindex: '-1' });
  /** @type {Field} */
  #text;
  #several;
  #take;
  #reveal;

  /**
   * @param {{rows: number, several: boolean, take: (one: Key) => void, reveal: () => void}} options
   *   `several`: whether several keys can be saved together
   */
  constructor({ rows, several, take, reveal }) {
    this.#several = several;
    this.#take = take;
    this.#reveal = reveal;
    this.#text = field({
      label: 'Paste a key, profile, connection string or link',
      rows,
      mono: true,
      hint: 'An AWS profile, variables, labels with values, a downloaded .csv or .json file, an rclone section, the JSON of az ad sp create-for-rbac, an Azure connection string, a Google Cloud key file, a link. The server reads the text and does not keep it.',
    });
    this.#text.row.querySelector('.optional')?.remove();
    const { control } = this.#text;
    // Typed text is complete when its author says so.
    control.addEventListener('input', (event) => {
      if (event instanceof InputEvent && event.inputType === 'insertFromPaste') void this.#read(control.value);
    });
    this.#file.addEventListener('change', async () => {
      await this.#readFile(this.#file.files?.[0]);
      this.#file.value = '';
    });
    this.box = this.#build();
  }

  #build() {
    const box = h(
      'div',
      {
        class: 'paste',
        ondragover: (/** @type {DragEvent} */ event) => {
          event.preventDefault();
          box.classList.add('over');
        },
        ondragleave: () => box.classList.remove('over'),
        ondrop: (/** @type {DragEvent} */ event) => {
          event.preventDefault();
          box.classList.remove('over');
          const dropped = event.dataTransfer?.files[0];
          void (dropped ? this.#readFile(dropped) : this.#read(event.dataTransfer?.getData('text') ?? ''));
        },
      },
      this.#text.row,
      h(
        'div',
        { class: 'buttons' },
        button('Fill in the fields', () => this.#read(this.#text.control.value), { class: 'quiet' }),
        button('Choose file', () => this.#file.click(), { class: 'quiet' }),
        h('span', { class: 'hint' }, 'or drop one here'),
      ),
      this.#file,
      this.#status,
    );
    return box;
  }

  focus() {
    this.#text.control.focus();
  }

  /** @param {import('../parts/dom.js').Child[]} children */
  say(...children) {
    this.#status.replaceChildren(...children.filter((child) => child instanceof Node || typeof child === 'string'));
  }

  /**
   * Offers several ways to continue.
   * @param {string} question
   * @param {{name: string, act: () => void}[]} ways
   */
  ask(question, ways) {
    const follow = (/** @type {() => void} */ act) => {
      act();
      if (document.activeElement === document.body) this.focus();
    };
    this.say(
      h('p', null, question),
      h(
        'div',
        { class: 'buttons' },
        ways.map(({ name, act }) => button(name, () => follow(act), { class: 'quiet' })),
      ),
    );
  }

  /** @param {ReadEntry} one */
  #accept(one) {
    if (one.refused) this.say(h('p', { class: 'note warn' }, `Nothing was filled in. ${said(one.refused)}`));
    else this.#take(/** @type {Key} */ (one));
  }

  /**
   * Reads `given` and removes it from the box, because recognized secrets must not stay visible.
   * @param {string} given
   */
  async #read(given) {
    if (!given.trim()) return;
    this.say('Reading…');
    /** @type {ReadEntry[]} */
    let all;
    try {
      all = (await call('POST', '/organization-vault/read', { body: { text: given } })).body;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const long = error.code === 'too-large';
      const why = long ? 'The text is too long: at most 64 KiB.' : `${error.title}. ${error.detail}`;
      this.say(h('p', { class: 'note warn' }, why));
      return;
    }
    const [first] = all;
    if (!first) {
      this.#reveal();
      this.say('Not recognized: fill in the fields below.');
      return;
    }
    if (this.#text.control.value === given) this.#text.write('');
    if (all.length === 1) this.#accept(first);
    else this.#choose(all);
  }

  /** @param {ReadEntry[]} all */
  #choose(all) {
    const usable = /** @type {Key[]} */ (all.filter(({ refused }) => !refused));
    const needsBucket = (/** @type {CredentialType} */ type) =>
      SHAPES[type].some(({ name, required }) => name === 'bucket' && required === true);
    const saveAll = () => {
      this.say();
      saveSeveral(usable, needsBucket);
    };
    this.ask(`The text contains ${all.length} keys. Which one?`, [
      ...all.map((one) => ({ name: titleOf(one), act: () => this.#accept(one) })),
      ...(this.#several && usable.length > 1 ? [{ name: `Save all ${usable.length}`, act: saveAll }] : []),
    ]);
  }

  /** @param {File | undefined} chosen */
  async #readFile(chosen) {
    if (!chosen) return;
    try {
      await this.#read(await decoded(chosen));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.say('The file is not text in UTF-8 or UTF-16.');
    }
  }
}

class CredentialForm extends Page {
  /** @type {Map<string, Field>} */
  #data = new Map();
  /** @type {Field[]} */
  #more = [];
  #shown = h('div', { class: 'page-body' });
  /** @type {CredentialType} */
  #type = 's3';
  /** Names of the fields that the last paste filled. @type {Set<string>} */
  #filled = new Set();
  /** The fields to fill in after a paste. */
  #next = h('p', { class: 'hint' });
  /** Shows the fields; they are hidden until something is pasted. @type {(name?: string) => void} */
  #reveal = () => {};
  /** The field for the expiry of pasted data. @type {Field | null} */
  #expires = null;
  #etag = '';

  get #mode() {
    return this.params[1] ?? 'save';
  }

  get #id() {
    return this.params[0] ?? '';
  }

  label() {
    return (
      {
        save: 'Add a credential',
        replace: isKeyless(this.#type) ? 'Change data' : 'New key',
        match: 'Is this the saved key?',
      }[this.#mode] ?? ''
    );
  }

  async content() {
    this.classList.add('narrow', 'wide');
    if (this.#mode === 'save') return [this.#save()];
    const { credential, etag } = await load(this.#id);
    this.#etag = etag;
    this.#choose(credential.type);
    this.heading(`${this.label()}: ${credential.namespace}`);
    for (const [name, field] of this.#data) {
      const known = credential.information?.[name];
      // Where it leads is known; what it is opened with has to be given again.
      if (Array.isArray(known)) field.write(known.join(', '));
      else if (typeof known === 'boolean' || (typeof known === 'string' && !known.startsWith('…')))
        field.write(String(known));
    }
    return [this.#mode === 'match' ? this.#match() : this.#replace(credential)];
  }

  /**
   * Shows the fields of `type`.
   * @param {CredentialType} type
   */
  #choose(type) {
    this.#type = type;
    this.#data = new Map(
      SHAPES[type].map((shape) => [shape.name, field({ ...shape, pointer: `/data/${shape.name}` })]),
    );
    const file = this.#data.get('service_account_key');
    if (file) shownAsChip(file);
    const [common, optional] = [true, false].map((wanted) =>
      SHAPES[type]
        .filter((shape) => Boolean(shape.required || shape.common) === wanted)
        .flatMap(({ name }) => this.#data.get(name)?.row ?? []),
    );
    // Region and endpoint stand side by side.
    const plain = (common ?? []).filter(
      (row) => ![this.#data.get('region')?.row, this.#data.get('endpoint')?.row].includes(row),
    );
    const located = (common ?? []).filter((row) => !plain.includes(row));
    this.#shown.replaceChildren(
      ...plain,
      ...(located.length ? [h('div', { class: 'pair' }, located)] : []),
      h('details', null, h('summary', null, 'Optional fields'), h('div', { class: 'pair' }, optional ?? [])),
    );
  }

  /** Names the required fields that are empty, and returns the first. */
  #showNext() {
    const empty = this.#fields().filter(({ required, control }) => required && !control.value);
    const names = empty.map(({ label }) => label.charAt(0).toLowerCase() + label.slice(1));
    this.#next.textContent = names.length
      ? `Next: ${[names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ')}.`
      : 'All required fields are filled in.';
    return empty[0];
  }

  #values() {
    return Object.fromEntries([...this.#data].map(([name, { read }]) => [name, read()]));
  }

  #fields() {
    return [
      ...this.#more.filter(({ pointer }) => pointer === '/namespace'),
      ...this.#data.values(),
      ...this.#more.filter(({ pointer }) => pointer !== '/namespace'),
    ];
  }

  /**
   * Where something can be pasted or dropped that fills the fields.
   * @param {((type: CredentialType) => void) | null} choose what to do with another type; `null`: the type is given
   */
  #paste(choose) {
    const paste = new PasteBox({
      rows: this.#mode === 'save' ? 4 : 2,
      several: choose !== null,
      take: (one) => this.#take(one, paste, choose),
      reveal: () => this.#reveal(),
    });
    return paste.box;
  }

  /**
   * Takes a key over, unless the form has another type and is filled in.
   * @param {Key} one
   * @param {PasteBox} paste
   * @param {((type: CredentialType) => void) | null} choose
   */
  #take(one, paste, choose) {
    const held = [...this.#data.values()].some(({ control }) => control.value !== '');
    const { url } = one.data;
    const change = (/** @type {CredentialType} */ type) => {
      choose?.(type);
      this.#fill(one, paste);
    };
    if (one.type === this.#type) this.#fill(one, paste);
    else if (url && this.#type === 's3' && held) {
      const endpoint = /** @type {Key} */ ({ ...one, type: 's3', data: { endpoint: url } });
      paste.ask('Is this link the endpoint of the storage?', [
        { name: 'Use it as the endpoint', act: () => this.#fill(endpoint, paste) },
        ...(choose ? [{ name: 'No, it is what is to be saved', act: () => change('direct-link') }] : []),
      ]);
    } else if (!choose)
      paste.say(
        `The text is of type ${TYPE_NAMES[one.type]}, but this credential is of type ${TYPE_NAMES[this.#type]}.`,
      );
    else if (held)
      paste.ask(`The text is of type ${TYPE_NAMES[one.type]}. Taking it over empties the fields that are filled in.`, [
        { name: `Change the type to ${TYPE_NAMES[one.type]}`, act: () => change(one.type) },
        { name: 'Keep the fields', act: () => paste.say('Nothing was changed.') },
      ]);
    else change(one.type);
  }

  /**
   * Fills the fields.
   * @param {Key} one
   * @param {PasteBox} paste
   */
  #fill(one, paste) {
    const { data } = one;
    // The address of a bucket or an endpoint completes the key in the form.
    const isKey = Object.keys(data).some((name) => !['bucket', 'key_prefix', 'endpoint'].includes(name));
    // Fields of another key must not remain: its endpoint would be this key's.
    if (data.access_key_id && this.#mode === 'save')
      for (const [name, target] of this.#data) if (!(name in data) && this.#filled.has(name)) target.write('');
    if (isKey) this.#filled = new Set(Object.keys(data));
    const targets = Object.entries(data).flatMap(([name, value]) => {
      const target = this.#data.get(name);
      return target ? [{ target, text: shown(name, value) }] : [];
    });
    for (const { target, text } of targets) {
      target.write(text);
      target.refuse('');
      target.row.closest('details')?.setAttribute('open', '');
    }
    // A key without a session token is not completed by that of the key before.
    if (data.access_key_id && !data.session_token) this.#data.get('session_token')?.write('');
    const expiry = one.expires_at ?? (data.url && linkExpiry(data.url));
    if (expiry) {
      this.#expires?.write(writeTime(expiry));
      this.#expires?.row.closest('details')?.setAttribute('open', '');
    }
    this.#reveal(one.name);
    const clear = () => {
      for (const { target } of targets) target.write('');
      if (expiry) this.#expires?.write('');
      paste.say('Cleared.');
      paste.focus();
    };
    const filled = `${count(targets.length, 'field')}${expiry && this.#expires ? ' and the expiry' : ''}`;
    paste.say(
      h(
        'p',
        { class: 'chip' },
        h('span', null, `✓ ${titleOf(one)}: ${filled} filled.`),
        button('✕', clear, { class: 'quiet', 'aria-label': 'Clear what was filled in' }),
      ),
      this.#next,
      one.needs && h('p', { class: 'note warn' }, said(one.needs)),
      one.left_out && h('p', { class: 'hint' }, `Left out: ${one.left_out.join(', ')}.`),
    );
    // With nothing left to fill in, Enter saves.
    const next = this.#showNext()?.control ?? paste.box.closest('form')?.querySelector('[type="submit"]');
    if (next instanceof HTMLElement) next.focus();
    this.typed = true;
  }

  /** The fields beside the data. */
  #saveFields() {
    return {
      namespace: field({
        label: 'Namespace',
        pointer: '/namespace',
        required: true,
        placeholder: 'imports/nightly',
        mono: true,
        list: 'namespaces',
        value: this.query.get('namespace') ?? '',
        hint: 'Jobs use this name. It cannot be changed later.',
      }),
      type: field({
        label: 'Type',
        pointer: '/type',
        options: Object.entries(TYPE_NAMES).filter(
          ([name]) => session.server().federation_issuer || !isKeyless(/** @type {CredentialType} */ (name)),
        ),
        value: 's3',
        hint: 'Recognized from what you paste.',
      }),
      labels: field({
        label: 'Labels',
        pointer: '/labels',
        rows: 2,
        mono: true,
        placeholder: 'team: data',
        hint: 'One in each line: name: value.',
        parse: (text) => (text.trim() ? readLabels(text) : undefined),
      }),
      description: field({ label: 'Description', pointer: '/description', maxlength: 500 }),
      expires: field({
        label: 'Expires',
        pointer: '/expires_at',
        type: 'datetime-local',
        hint: 'When it expires at its issuer.',
        parse: readTime,
      }),
      vend: field({
        label: 'Jobs receive',
        pointer: '/vend',
        value: 'any',
        options: [
          ['any', 'Saved key or temporary credentials'],
          ['short', 'Temporary credentials only'],
        ],
      }),
    };
  }

  #save() {
    const fields = this.#saveFields();
    const { namespace, type, expires, vend } = fields;
    const verify = verifyBox();
    const others = othersIn(namespace);
    this.#more = Object.values(fields);
    this.#expires = expires;
    const choose = (/** @type {CredentialType} */ chosen) => {
      type.control.value = chosen;
      this.#choose(chosen);
      // A keyless credential has no saved key to issue, and is checked after its provider trust was set up.
      vend.row.hidden = isKeyless(chosen);
      if (verify) verify.row.hidden = isKeyless(chosen);
    };
    type.control.addEventListener('input', () => choose(/** @type {CredentialType} */ (type.control.value)));
    this.#choose('s3');
    const idempotency = new Idempotency();
    const names = h('datalist', { id: 'namespaces' });
    const rest = this.#rest(fields, names, others.note, verify?.row);
    const open = () => {
      this.#reveal();
      namespace.control.focus();
    };
    const byHand = h('p', null, button('Fill in by hand', open, { class: 'quiet' }));
    this.#reveal = (name = '') => {
      rest.hidden = false;
      byHand.hidden = true;
      made.classList.remove('unfilled');
      void suggest(names, name);
    };
    const made = form({
      fields: () => this.#fields(),
      content: [this.#paste(choose), byHand, rest],
      submit: () => (verify?.control.checked && !isKeyless(this.#type) ? 'Save and check' : 'Save'),
      busy: 'Saving…',
      send: async () => {
        if (!(await others.accepted())) return false;
        await this.#send(fields, Boolean(verify?.control.checked), idempotency);
        return true;
      },
      buttons: [h('a', { class: 'button', href: '#/credentials', 'data-discard': true }, 'Cancel')],
      explain: explainVerify,
    });
    made.classList.add('page-form', 'unfilled');
    made.addEventListener('input', () => this.#showNext());
    if (namespace.control.value) this.#reveal();
    return made;
  }

  /**
   * What is hidden until something is pasted.
   * @param {SaveFields} fields
   * @param {HTMLElement} names
   * @param {HTMLElement} others
   * @param {HTMLElement | undefined} verify
   */
  #rest({ namespace, type, labels, description, expires, vend }, names, others, verify) {
    return h(
      'div',
      { class: 'page-body', hidden: true },
      names,
      h('div', { class: 'pair' }, namespace.row, type.row),
      others,
      this.#shown,
      h(
        'details',
        null,
        h('summary', null, 'Labels, description, expiry'),
        h('div', { class: 'pair' }, labels.row, description.row, expires.row, vend.row),
      ),
      verify,
    );
  }

  /**
   * @param {SaveFields} fields
   * @param {boolean} checks
   * @param {Idempotency} idempotency
   */
  async #send({ namespace, labels, description, expires, vend }, checks, idempotency) {
    const keyless = isKeyless(this.#type);
    const body = {
      type: this.#type,
      namespace: namespace.read(),
      data: this.#values(),
      labels: labels.read(),
      description: description.read(),
      expires_at: expires.read(),
      vend: keyless ? undefined : vend.read(),
    };
    const path = `/organization-vault${checks && !keyless ? '?verify=true' : ''}`;
    const { body: saved } = await call('PATCH', path, { body, headers: idempotency.header(body) });
    flash(
      keyless
        ? 'Saved. Set up its provider trust next.'
        : `Saved. Its secrets are encrypted and are never shown again.${checks ? ' Check passed.' : ''}`,
    );
    go(`#/credentials/${saved.id}${keyless ? '/trust' : ''}`);
  }

  /** @param {import('../parts/api.js').Credential} credential */
  #replace(credential) {
    const keyless = isKeyless(credential.type);
    const expires = field({
      label: 'Expires',
      pointer: '/expires_at',
      type: 'datetime-local',
      hint: 'When this data expires at its issuer.',
      parse: readTime,
    });
    const stage = field({
      label: 'Jobs use it',
      pointer: '/stage',
      value: keyless || this.query.get('stage') === 'false' ? 'false' : 'true',
      options: [
        ['true', 'After promotion (safe)'],
        ['false', 'Immediately'],
      ],
      parse: (text) => text === 'true',
      hint: `Check and promote it first. Until then jobs use the current ${keyless ? 'data' : 'key'}.`,
    });
    const verify = keyless ? null : verifyBox();
    this.#more = [expires, stage];
    this.#expires = expires;
    const idempotency = new Idempotency();
    const made = form({
      fields: () => this.#fields(),
      content: [
        ...this.#replaceIntro(credential),
        this.#shown,
        h('div', { class: 'pair' }, stage.row, expires.row),
        verify?.row,
      ],
      submit: 'Save as a new version',
      busy: 'Saving…',
      send: async () => {
        const body = { data: this.#values(), expires_at: expires.read(), stage: stage.read() };
        const headers = { ...idempotency.header(body), 'If-Match': this.#etag };
        const path = `/organization-vault/${this.#id}/versions${verify?.control.checked ? '?verify=true' : ''}`;
        const { body: made } = await call('POST', path, { body, headers });
        flash(
          stage.read()
            ? `Version ${made.version} is staged. Jobs still use the current ${keyless ? 'data' : 'key'}.`
            : `Version ${made.version} is current. Jobs use it from their next run.`,
        );
        go(`#/credentials/${this.#id}${keyless ? '' : '/rotate'}`);
      },
      buttons: [h('a', { class: 'button', href: `#/credentials/${this.#id}`, 'data-discard': true }, 'Cancel')],
      explain: (problem) => (problem.code === 'precondition-failed' ? this.#changed() : explainVerify(problem)),
    });
    made.classList.add('page-form');
    return made;
  }

  /** @param {import('../parts/api.js').Credential} credential */
  #replaceIntro({ type, staged_version: staged }) {
    if (isKeyless(type)) {
      const text = `Data is replaced as a whole. Another ${TRUSTING[type]} must trust the same subject.`;
      return [h('p', { class: 'hint' }, text)];
    }
    return [
      rotationSteps(0),
      h(
        'p',
        { class: 'hint' },
        'Create a new key at the storage provider and do not disable the old one yet. Data is replaced as a whole: enter the secrets again; bucket, endpoint and region are carried over. Jobs need no change.',
      ),
      staged &&
        h('p', { class: 'note warn' }, `Version ${staged} is already staged. Another staged version replaces it.`),
      this.#paste(null),
    ];
  }

  /** Another user changed the credential in the meantime. */
  #changed() {
    return h(
      'span',
      null,
      'Another user changed this credential after you opened this page. ',
      h('a', { href: `#/credentials/${this.#id}`, target: '_self' }, 'View its versions'),
      ', or ',
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          onclick: async (/** @type {Event} */ event) => {
            this.#etag = (await load(this.#id)).etag;
            /** @type {HTMLElement} */ (event.target).closest('.note')?.remove();
            announce('Save again to replace the data all the same.');
          },
        },
        'replace it all the same',
      ),
      '.',
    );
  }

  #match() {
    this.#more = [];
    const result = h('div', { role: 'status' });
    return form({
      fields: () => this.#fields(),
      content: [
        h(
          'p',
          { class: 'hint' },
          'Paste a key to see if it is the one stored. Nothing is decrypted. 10 tries an hour, each is audited.',
        ),
        !isKeyless(this.#type) && this.#paste(null),
        this.#shown,
        result,
      ],
      submit: 'Compare',
      busy: 'Comparing…',
      send: async () => {
        result.replaceChildren();
        const { body } = await call('POST', `/organization-vault/${this.#id}/match`, {
          body: { data: this.#values() },
        });
        result.replaceChildren(
          body.same
            ? h('p', { class: 'note good' }, 'This is the saved key.')
            : h(
                'p',
                { class: 'note warn' },
                'Different: at least one field differs from the saved one. Fields that are never shown, such as a session token or headers, count too.',
              ),
        );
      },
      buttons: [h('a', { class: 'button', href: `#/credentials/${this.#id}`, 'data-discard': true }, 'Back')],
    });
  }
}

/**
 * Warns that a namespace already contains credentials, so that its jobs cannot choose one.
 * @param {Field} namespace
 */
function othersIn(namespace) {
  const note = h('div', { class: 'note warn', hidden: true, role: 'status' });
  const box = checkbox('Save another credential in this namespace all the same');
  let asked = '';
  /** @type {import('../parts/api.js').Credential[]} */
  let others = [];
  const look = async () => {
    const name = namespace.control.value.trim();
    if (name === asked) return;
    asked = name;
    try {
      others = name ? (await call('GET', `/organization-vault${query({ namespace: name, limit: '5' })}`)).body : [];
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      [others, asked] = [[], '']; // saving searches again and reports an invalid name
    }
    box.control.checked = false;
    note.hidden = others.length === 0;
    note.replaceChildren(
      h(
        'p',
        null,
        h(
          'strong',
          null,
          `${name} already has ${others.length === 5 ? 'several credentials' : count(others.length, 'credential')}.`,
        ),
        ' A job that runs ',
        h('code', null, `orgvault exec --namespace ${name}`),
        ' without saying which one is refused from then on: it has to add ',
        h('code', null, '--id'),
        ', ',
        h('code', null, '--type'),
        ' or ',
        h('code', null, '--name'),
        '. To give jobs a new key, replace the data of the credential that they use:',
      ),
      h(
        'ul',
        null,
        others.map((one) =>
          h(
            'li',
            null,
            h('a', { href: `#/credentials/${one.id}/replace` }, `${TYPE_NAMES[one.type]} ${place(one)}`),
            ' ',
            one.information?.access_key_id ?? one.information?.fingerprint ?? '',
            ', saved ',
            day(one.created_at, ''),
          ),
        ),
      ),
      box.row,
    );
  };
  namespace.control.addEventListener('change', () => void look());
  if (namespace.control.value) void look();
  return {
    note,
    /** Whether there are none, or they are known. */
    accepted: async () => {
      await look();
      if (!others.length || box.control.checked) return true;
      box.control.focus();
      announce(`${asked} already has ${count(others.length, 'credential')}.`);
      return false;
    },
  };
}

/**
 * Suggests namespaces: the existing ones, and the pasted name below their prefixes.
 * @param {HTMLDataListElement} list
 * @param {string} name
 */
async function suggest(list, name) {
  const { body } = await call('GET', '/organization-vault?limit=1000');
  const all = [
    ...new Set(/** @type {import('../parts/api.js').Credential[]} */ (body).map(({ namespace }) => namespace)),
  ].sort();
  const prefixes = [
    ...new Set(all.filter((one) => one.includes('/')).map((one) => one.slice(0, one.lastIndexOf('/') + 1))),
  ];
  const own = name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-');
  list.replaceChildren(
    ...[...(own ? prefixes.map((prefix) => prefix + own) : prefixes), ...all].map((value) => h('option', { value })),
  );
}

/** Offers a check before anything is saved, if the server makes checks. */
function verifyBox() {
  return session.server().verify
    ? checkbox('Check it with the storage provider first', {
        hint: 'Nothing is saved if the provider does not accept it.',
        checked: true,
      })
    : null;
}

/** @param {Problem} problem */
function explainVerify(problem) {
  return problem.code === 'not-usable' ? 'Nothing was saved. Correct the data, or save it without the check.' : null;
}

customElements.define('ov-credential-form', CredentialForm);
