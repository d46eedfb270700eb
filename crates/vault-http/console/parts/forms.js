// Forms that show errors next to their fields.

import { Problem } from './api.js';
import { announce, freshId, h } from './dom.js';
import { problemNote } from './parts.js';
import { ZONE } from '../rules/times.js';

export { readTime, writeTime } from '../rules/times.js';

/**
 * A labelled control.
 * @typedef {object} Field
 * @property {string} pointer the JSON pointer of the member that it fills, by which refusals name it; empty: none
 * @property {HTMLElement} row
 * @property {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} control
 * @property {string} label
 * @property {boolean} required
 * @property {() => any} read the member's value; `undefined` leaves the member out. Throws a text for people
 * @property {() => string} text what the control contains
 * @property {(value: string) => void} write
 * @property {(message: string) => void} refuse shows why the value is not accepted; empty: it is
 */

/**
 * @typedef {object} FieldOptions
 * @property {string} label
 * @property {string} [pointer]
 * @property {string | Node | null} [hint]
 * @property {boolean} [required]
 * @property {string} [value]
 * @property {string} [type] `datetime-local` is a date with an optional time
 * @property {string} [autocomplete]
 * @property {string} [inputmode]
 * @property {string} [placeholder]
 * @property {number} [maxlength]
 * @property {number} [rows] a text of several lines
 * @property {[string, string][]} [options] value and text of each choice
 * @property {[string, [string, string][]][]} [groups] further choices under headings
 * @property {boolean} [secret] hidden while it is typed, with a button that shows it
 * @property {boolean} [mono]
 * @property {string} [list] the id of a `datalist`
 * @property {(text: string) => any} [parse] the member's value from the control's; throws a text for people
 */

/**
 * @param {FieldOptions} options
 * @returns {Field}
 */
export function field(options) {
  const { label, pointer = '', required = false } = options;
  const id = freshId();
  const { control, clock } = controls(options, id);
  const write = (/** @type {string} */ value) => {
    const [date = '', time = ''] = clock ? value.split('T') : [value];
    control.value = date;
    if (clock) clock.value = time;
  };
  if (options.value !== undefined) write(options.value);
  const error = h('p', { id: `${id}-error`, class: 'field-error' });
  const row = rowOf(options, id, { control, clock, error });
  const parse = options.parse ?? ((text) => (text === '' ? undefined : text));
  /** @type {Field} */
  const made = {
    pointer,
    row,
    control,
    label,
    required,
    read: () => {
      // A browser reports a half-typed date as empty.
      if (control.validity.badInput || clock?.validity.badInput) throw 'Complete the date, or clear it.';
      if (clock?.value && !control.value) throw 'Enter the date, or clear the time.';
      return parse(made.text());
    },
    text: () => (clock?.value ? `${control.value}T${clock.value}` : control.value),
    write,
    refuse: (message) => {
      error.textContent = message;
      row.classList.toggle('refused', message !== '');
      if (message) row.closest('details')?.setAttribute('open', '');
      if (message) control.setAttribute('aria-invalid', 'true');
      else control.removeAttribute('aria-invalid');
    },
  };
  for (const one of [control, clock]) one?.addEventListener('input', () => made.refuse(''));
  return made;
}

/**
 * The control of a field, and that of its time if it is a date.
 * @param {FieldOptions} options
 * @param {string} id
 * @returns {{control: Field['control'], clock: HTMLInputElement | null}}
 */
function controls({ pointer = '', label, hint, required, secret, ...options }, id) {
  const described = [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(' ');
  const common = { id, name: pointer.slice(1).replaceAll('/', '.') || id, 'aria-describedby': described };
  const choice = (/** @type {[string, string]} */ [value, text]) => h('option', { value }, text);
  if (options.options) {
    const groups = (options.groups ?? []).map(([label, choices]) => h('optgroup', { label }, choices.map(choice)));
    return { control: h('select', common, options.options.map(choice), groups), clock: null };
  }
  const attributes = {
    ...common,
    autocomplete: options.autocomplete ?? 'off',
    'aria-required': required ? 'true' : null,
    placeholder: options.placeholder,
    maxlength: options.maxlength,
    spellcheck: 'false',
    autocapitalize: 'none',
    class: options.mono || secret ? 'mono' : null,
    translate: options.mono || secret ? 'no' : null,
  };
  if (options.rows) {
    const style = secret ? 'mono masked' : attributes.class;
    return { control: h('textarea', { ...attributes, rows: options.rows, class: style }), clock: null };
  }
  const dated = options.type === 'datetime-local';
  const type = secret ? 'password' : dated ? 'date' : (options.type ?? 'text');
  const control = h('input', { ...attributes, type, inputmode: options.inputmode, list: options.list });
  const name = { 'aria-label': `${label}, time`, title: `Time in ${ZONE}`, 'aria-describedby': described };
  return { control, clock: dated ? h('input', { type: 'time', ...name, class: 'clock' }) : null };
}

/**
 * @param {FieldOptions} options
 * @param {string} id
 * @param {{control: Field['control'], clock: HTMLInputElement | null, error: HTMLElement}} parts
 */
function rowOf({ label, hint, required, secret, options }, id, { control, clock, error }) {
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, label, !required && !options && h('span', { class: 'optional' }, ' optional')),
    hint && h('p', { id: `${id}-hint`, class: 'hint' }, hint),
    secret
      ? h('div', { class: 'with-button' }, control, revealButton(control, label))
      : clock
        ? h('div', { class: 'with-clock' }, control, clock)
        : control,
    error,
  );
}

/**
 * @param {Field['control']} control
 * @param {string} label
 */
function revealButton(control, label) {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      'aria-label': `Show ${label.toLowerCase()}`,
      onclick: () => {
        const lines = control instanceof HTMLTextAreaElement;
        const shown = lines ? control.classList.contains('masked') : control.getAttribute('type') === 'password';
        if (lines) control.classList.toggle('masked', !shown);
        else control.setAttribute('type', shown ? 'text' : 'password');
        button.textContent = shown ? 'Hide' : 'Show';
        button.setAttribute('aria-label', `${button.textContent} ${label.toLowerCase()}`);
      },
    },
    'Show',
  );
  return button;
}

/**
 * A box to tick.
 * @param {string} label
 * @param {{pointer?: string, hint?: string, checked?: boolean}} [options]
 */
export function checkbox(label, { pointer = '', hint, checked = false } = {}) {
  const id = freshId();
  const control = h('input', { type: 'checkbox', id, checked, 'aria-describedby': hint ? `${id}-hint` : null });
  const row = h(
    'div',
    { class: 'check' },
    control,
    h('div', null, h('label', { for: id }, label), hint && h('p', { class: 'hint', id: `${id}-hint` }, hint)),
  );
  return { row, control, pointer };
}

/**
 * A choice of one of a few, side by side.
 * @param {string} label
 * @param {[string, string][]} options value and text of each choice
 * @param {() => void} changed
 */
export function segments(label, options, changed) {
  const name = freshId();
  const controls = options.map(([value], index) =>
    h('input', { type: 'radio', id: freshId(), name, value, checked: index === 0, onchange: changed }),
  );
  const row = h(
    'fieldset',
    { class: 'segments' },
    h('legend', null, label),
    h(
      'div',
      null,
      options.map(([, text], index) =>
        h('span', null, controls[index], h('label', { for: controls[index]?.id }, text)),
      ),
    ),
  );
  return { row, value: () => controls.find(({ checked }) => checked)?.value ?? '' };
}

/**
 * A form. Refused fields are marked and the first gets the focus; any other problem is shown above the buttons.
 * @param {object} options
 * @param {() => Field[]} options.fields those that are shown now
 * @param {import('./dom.js').Child[]} options.content
 * @param {string | (() => string)} options.submit the button's text
 * @param {string} options.busy the same while the request is under way
 * @param {() => Promise<void | boolean>} options.send `false`: nothing was sent, and it is said why
 * @param {import('./dom.js').Child[]} [options.buttons] further ones
 * @param {boolean} [options.danger]
 * @param {(problem: Problem) => string | Node | null} [options.explain] what else to say of a problem
 */
export function form({ fields, content, submit, busy, send, buttons = [], danger = false, explain }) {
  const note = h('div', { class: 'form-note' });
  const text = () => (typeof submit === 'string' ? submit : submit());
  const button = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, text());
  let sending = false;
  const element = h(
    'form',
    {
      novalidate: true,
      autocomplete: 'off',
      onsubmit: async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        if (sending) return;
        note.replaceChildren();
        if (!complete(fields())) return;
        sending = true;
        button.setAttribute('aria-disabled', 'true');
        button.textContent = busy;
        try {
          if ((await send()) === false) return;
          // The typed data was sent, so leaving the page loses nothing.
          element.dispatchEvent(new CustomEvent('sent', { bubbles: true }));
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          // The user signs in again, and the form is as it was.
          if (element.isConnected && error.code !== 'invalid-token') show(error, fields(), note, explain);
        } finally {
          sending = false;
          button.removeAttribute('aria-disabled');
          button.textContent = text();
        }
      },
    },
    ...content,
    note,
    h('div', { class: 'buttons' }, button, buttons),
  );
  if (typeof submit !== 'string')
    element.addEventListener('input', () => {
      if (!sending) button.textContent = text();
    });
  return element;
}

/**
 * Whether every field has a value that can be sent; the first that has none gets the focus.
 * @param {Field[]} fields
 */
function complete(fields) {
  /** @type {Field[]} */
  const refused = [];
  for (const field of fields) {
    let message = '';
    try {
      if (field.required && field.read() === undefined) message = `Enter ${article(field.label)}.`;
      else field.read();
    } catch (error) {
      message = String(error);
    }
    field.refuse(message);
    if (message) refused.push(field);
  }
  refused[0]?.control.focus();
  if (refused.length) announce(`${count(refused.length, 'field')} to correct.`);
  return refused.length === 0;
}

/** @param {string} label */
function article(label) {
  const text = /^[A-Z][a-z-]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
  return `the ${text}`;
}

/**
 * @param {number} number
 * @param {string} noun
 */
export function count(number, noun) {
  const many = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number.toLocaleString('en')} ${number === 1 ? noun : many}`;
}

/**
 * @param {Problem} problem
 * @param {Field[]} fields
 * @param {HTMLElement} note
 * @param {((problem: Problem) => string | Node | null) | undefined} explain
 */
function show(problem, fields, note, explain) {
  /** @type {Set<Field>} */
  const refused = new Set();
  const others = problem.errors.filter((error) => {
    const named = fields.find(
      ({ pointer }) => pointer && (error.pointer === pointer || error.pointer.startsWith(`${pointer}/`)),
    );
    if (!named) return true;
    if (!refused.has(named)) named.refuse(sentence(error.detail));
    refused.add(named);
    return false;
  });
  const first = fields.find((field) => refused.has(field));
  if (first && !others.length) {
    announce(`${count(refused.size, 'field')} to correct.`);
    first.control.focus();
    return;
  }
  note.replaceChildren(problemNote(problem, others, explain?.(problem)));
  const shown = note.querySelector('.note');
  if (shown instanceof HTMLElement) shown.focus();
}

/** @param {string} text */
function sentence(text) {
  const capitalized = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}

/**
 * @param {string | Node} hint
 * @param {string} label
 */
export const passcodeField = (hint, label = 'Passcode') =>
  field({
    label,
    pointer: '/passcode',
    required: true,
    autocomplete: 'one-time-code',
    inputmode: 'numeric',
    mono: true,
    hint,
    parse: passcode,
  });

/** @param {string} text */
function passcode(text) {
  const code = text.replaceAll(/\s/g, '');
  // What cannot be right is not sent: it would count as a failed sign-in.
  if (code && !/^(\d{6}|[\d-]{20,23})$/.test(code))
    throw 'Enter the six digits of the app, or a recovery code of 20 digits.';
  return code || undefined;
}
