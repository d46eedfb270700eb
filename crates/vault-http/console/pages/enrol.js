// Enrolment of an invited person: password, authenticator, recovery codes, confirmed by a first passcode.

import { Problem, call } from '../parts/api.js';
import { facts } from '../parts/blocks.js';
import { h, nodes, parted } from '../parts/dom.js';
import { field, form, passcodeField } from '../parts/forms.js';
import { generate } from '../parts/lean-qr.js';
import { Page, live } from '../parts/parts.js';
import { copyButton } from '../parts/copy.js';
import { signIn, userName } from './sign-in.js';

/** How long an authenticator shows a passcode, in milliseconds. */
const STEP = 30_000;
/** About how wide the QR code is, in pixels. */
const QR_WIDTH = 220;

/**
 * A field for a new password, with its rules: which hold is shown while it is typed.
 * @param {string} pointer
 */
export function newPassword(pointer) {
  const rules = h('ul', { class: 'rules' });
  /** @type {[string, (text: string) => boolean][]} */
  const checked = [
    ['At least 8 characters; a sentence of several words is best', (text) => [...text].length >= 8],
    ['At most 1,024 bytes', (text) => new TextEncoder().encode(text).length <= 1024],
  ];
  const items = checked.map(([rule]) => h('li', null, h('span', { class: 'mark' }), rule));
  rules.append(
    ...items,
    h(
      'li',
      null,
      h('span', { class: 'mark' }),
      'Not a common password, your address, or the name of your organization (checked when you continue)',
    ),
  );
  const first = field({
    label: 'New password',
    pointer,
    type: 'password',
    secret: true,
    required: true,
    autocomplete: 'new-password',
    hint: rules,
    parse: (text) => {
      if (text && !checked.every(([, isMet]) => isMet(text))) throw 'Choose a password that keeps the rules above.';
      return text || undefined;
    },
  });
  const second = field({
    label: 'New password again',
    type: 'password',
    secret: true,
    required: true,
    autocomplete: 'new-password',
    parse: (text) => {
      if (text && text !== first.control.value) throw 'The two passwords differ.';
      return text || undefined;
    },
  });
  const validate = () =>
    items.forEach((item, index) => {
      const text = first.control.value;
      const isMet = text !== '' && Boolean(checked[index]?.[1](text));
      item.classList.toggle('met', isMet);
      const mark = item.querySelector('.mark');
      if (mark) mark.textContent = isMet ? '✓' : '';
    });
  first.control.addEventListener('input', validate);
  return { first, second, fields: [first, second] };
}

/**
 * How an authenticator app takes in a new secret.
 * @param {import('../parts/api.js').Totp} totp
 */
export function authenticator({ secret, uri }) {
  const canvas = h('canvas', { class: 'qr', role: 'img', 'aria-label': 'QR code of the secret below' });
  /** @type {any} */ (generate)(uri, { minCorrectionLevel: 1 }).toCanvas(canvas, {
    on: [0, 0, 0, 255],
    off: [255, 255, 255, 255],
  });
  // A whole number of pixels for each module, so that cameras see even squares.
  canvas.style.width = `${canvas.width * Math.max(2, Math.floor(QR_WIDTH / canvas.width))}px`;
  const spaced = secret.match(/.{1,4}/g)?.join(' ') ?? secret;
  return h(
    'div',
    { class: 'authenticator' },
    canvas,
    h(
      'div',
      null,
      h(
        'p',
        null,
        'Scan this code with an authenticator app, such as the one in your password manager or on your phone.',
      ),
      h('p', null, 'Or enter this secret in the app:'),
      h('div', { class: 'secret' }, h('code', { 'data-secret': secret }, spaced), copyButton(secret, 'the secret')),
      h(
        'p',
        { class: 'hint' },
        'Time-based, six digits, 30 seconds, SHA-1. On this device: ',
        h('a', { href: uri }, 'open it in an app'),
        '.',
      ),
    ),
  );
}

/**
 * Recovery codes, to print or copy.
 * @param {string[]} codes
 * @param {string} email
 */
export function recoveryCodes(codes, email) {
  const list = h(
    'ol',
    { class: 'codes' },
    codes.map((code) => h('li', null, h('code', null, code))),
  );
  return h(
    'div',
    { class: 'print-sheet' },
    h('p', { class: 'print-only' }, `OrgVault recovery codes of ${email} at ${location.host}`),
    h(
      'p',
      null,
      'Each of these signs you in once in place of a passcode, if you lose your authenticator. They are not shown again.',
    ),
    list,
    h(
      'div',
      { class: 'buttons screen-only' },
      h('button', { type: 'button', onclick: () => print() }, 'Print'),
      copyButton(codes.join('\n'), 'the recovery codes'),
    ),
  );
}

/** Explains why a code is refused. */
const REFUSED = 'This invitation was used or has expired. Ask the user who invited you for a new one.';

/**
 * The open invitation with this code, or `undefined`.
 * @param {string} code
 * @returns {Promise<import('../parts/api.js').Invitation | undefined>}
 */
async function invitation(code) {
  try {
    return (await call('POST', '/enrol/invitation', { body: { enrolment_code: code }, open: true })).body;
  } catch (error) {
    if (error instanceof Problem && error.code === 'invalid-enrolment') return undefined;
    throw error;
  }
}

/**
 * For whom, by whom and until when an invitation is. The hidden user name is for password managers.
 * @param {import('../parts/api.js').Invitation} invitation
 */
function invited({ email, organization, invited_by: inviter, expires_at: at }) {
  return [
    facts([
      { name: 'Account', value: h('strong', { translate: 'no' }, parted(email)) },
      { name: 'Organization', value: h('span', { translate: 'no' }, organization) },
      { name: 'Invited by', value: inviter ? h('span', { translate: 'no' }, parted(inviter)) : 'an operator' },
      { name: 'Expires', value: live('deadline', at) },
    ]),
    userName(email),
  ];
}

class Enrol extends Page {
  #code = '';

  label() {
    return 'Set up your account';
  }

  async content() {
    this.classList.add('narrow');
    if (this.params[0]) {
      // The code belongs neither into the history nor into a bookmark.
      this.#code = this.params[0];
      history.replaceState(null, '', '#/enrol');
    }
    const found = this.#code ? await invitation(this.#code) : null;
    return [this.#choosePassword(found)];
  }

  /** @param {import('../parts/api.js').Invitation | null | undefined} found by the code of the link; `undefined`: it is refused */
  #choosePassword(found) {
    const code = field({
      label: 'Invitation code',
      pointer: '/enrolment_code',
      required: true,
      mono: true,
      value: this.#code,
      hint: 'From your invitation. It works once and for 72 hours.',
      parse: (text) => text.trim() || undefined,
    });
    const password = newPassword('/password');
    const shown = h(
      'div',
      null,
      found === undefined ? h('p', { class: 'note bad' }, REFUSED) : found && invited(found),
    );
    // A code that is refused can be replaced.
    code.row.hidden = Boolean(found);
    code.control.addEventListener('change', async () => {
      const text = code.control.value.trim();
      const other = text ? await invitation(text).catch(() => null) : null;
      if (text === code.control.value.trim())
        shown.replaceChildren(
          ...nodes([other === undefined ? h('p', { class: 'note bad' }, REFUSED) : other && invited(other)]),
        );
    });
    return form({
      fields: () => [code, ...password.fields],
      content: [
        h(
          'p',
          { class: 'hint' },
          'You set up an account of OrgVault at ',
          h('strong', { translate: 'no' }, location.host),
          '.',
        ),
        shown,
        h(
          'ol',
          { class: 'steps' },
          h('li', { 'aria-current': 'step' }, 'Password'),
          h('li', null, 'Authenticator'),
          h('li', null, 'Sign in'),
        ),
        code.row,
        ...password.fields.map(({ row }) => row),
      ],
      submit: 'Continue',
      busy: 'One moment…',
      send: async () => {
        const body = { enrolment_code: code.read(), password: password.first.read() };
        const { body: drafted } = await call('POST', '/enrol', { body, open: true });
        this.#confirm(body.enrolment_code, body.password, drafted);
      },
      explain: ({ code: problem }) => {
        if (problem !== 'invalid-enrolment') return null;
        code.row.hidden = false;
        return REFUSED;
      },
    });
  }

  /**
   * @param {string} code
   * @param {string} password
   * @param {{email: string, totp: import('../parts/api.js').Totp, recovery_codes: string[]}} drafted
   */
  #confirm(code, password, { email, totp, recovery_codes: codes }) {
    const first = passcodeField('The six digits that the app shows now. This proves that it works.');
    const heading = (/** @type {string} */ text) => h('h2', null, text);
    const content = form({
      fields: () => [first],
      content: [
        h(
          'ol',
          { class: 'steps' },
          h('li', { class: 'done' }, 'Password'),
          h('li', { 'aria-current': 'step' }, 'Authenticator'),
          h('li', null, 'Sign in'),
        ),
        h('p', null, 'Account: ', h('strong', { translate: 'no' }, email), userName(email)),
        heading('1. Add the account to your authenticator app'),
        authenticator(totp),
        heading('2. Keep the recovery codes'),
        recoveryCodes(codes, email),
        heading('3. Enter a first passcode'),
        first.row,
      ],
      submit: 'Finish',
      busy: 'One moment…',
      send: async () => {
        await call('POST', '/enrol/confirm', { body: { enrolment_code: code, passcode: first.read() }, open: true });
        this.#done(email, password);
      },
      explain: ({ code: problem }) =>
        problem === 'invalid-enrolment'
          ? 'Wrong code, or the clock of the device is wrong. Enter the six digits shown now.'
          : null,
    });
    this.typed = true; // the recovery codes are not shown again
    this.#show('Add your authenticator', content);
  }

  /**
   * Signs in with the password of the first step and the next passcode, since each works once.
   * @param {string} email
   * @param {string} password
   */
  #done(email, password) {
    this.typed = false;
    const used = Math.floor(Date.now() / STEP);
    const hint = h('span');
    const next = passcodeField(hint, 'Next passcode');
    const tick = () => {
      const left = Math.ceil(((used + 1) * STEP - Date.now()) / 1000);
      const text =
        left > 0
          ? `The one that you entered is used. The app shows the next one in about ${left} s.`
          : 'The six digits that the app shows now.';
      if (hint.textContent !== text) hint.textContent = text;
      if (left > 0)
        setTimeout(() => {
          if (next.control.isConnected) tick();
        }, 1000);
    };
    tick();
    this.#show(
      'Your account is ready',
      form({
        fields: () => [next],
        content: [
          h(
            'ol',
            { class: 'steps' },
            h('li', { class: 'done' }, 'Password'),
            h('li', { class: 'done' }, 'Authenticator'),
            h('li', { 'aria-current': 'step' }, 'Sign in'),
          ),
          h('p', { class: 'note good' }, parted(email), ' is enrolled.'),
          userName(email),
          next.row,
        ],
        submit: 'Sign in',
        busy: 'Signing in…',
        send: async () => {
          this.typed = false; // the session leads to another page, and a passcode is no draft
          await signIn(email, password, next.read());
        },
        explain: ({ code: problem }) =>
          problem === 'invalid-login' ? 'Wait until the app shows another passcode, then enter it.' : null,
      }),
    );
    next.control.focus();
  }

  /**
   * @param {string} heading
   * @param {Node} content
   */
  #show(heading, content) {
    this.heading(heading);
    this.querySelector('.page-body')?.replaceChildren(content);
    scrollTo(0, 0);
    const title = this.querySelector('h1');
    if (title instanceof HTMLElement) title.focus({ preventScroll: true });
  }
}

customElements.define('ov-enrol', Enrol);
