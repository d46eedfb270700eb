// Signing in.

import { call } from '../parts/api.js';
import { announce, h } from '../parts/dom.js';
import { field, form, passcodeField } from '../parts/forms.js';
import { Page, openDialog } from '../parts/parts.js';
import * as session from '../parts/session.js';

/** @type {[string, string][]} */
const LIFETIMES = [
  ['900', '15 minutes'],
  ['3600', '1 hour'],
  ['14400', '4 hours'],
  ['28800', '8 hours'],
  ['86400', '24 hours'],
];

/**
 * The address for password managers, which store it with the password.
 * @param {string} email
 */
export function userName(email) {
  return h('input', {
    type: 'text',
    autocomplete: 'username',
    class: 'hidden',
    tabindex: '-1',
    'aria-hidden': 'true',
    value: email,
    readonly: true,
  });
}

/** The fields that authenticate a user, except the address. */
export function proofFields() {
  return {
    password: field({
      label: 'Password',
      pointer: '/password',
      type: 'password',
      secret: true,
      required: true,
      autocomplete: 'current-password',
    }),
    passcode: passcodeField('Six digits from your authenticator app, or a recovery code. Each works once.'),
  };
}

/** For how long a session is valid, unless another time is chosen, in seconds. */
const LIFETIME = '3600';

/**
 * Starts a session.
 * @param {string} email
 * @param {string} password
 * @param {string} code
 * @param {string} [ttl]
 */
export async function signIn(email, password, code, ttl = LIFETIME) {
  const body = { email, password, passcode: code, ttl: Number(ttl) };
  const { body: granted } = await call('POST', '/login', { body, open: true });
  const { body: account } = await call('GET', '/account', { token: granted.access_token });
  session.begin(granted.access_token, granted.expires_in, account);
}

class SignIn extends Page {
  reason = '';

  label() {
    return 'Sign in';
  }

  async content() {
    const email = field({
      label: 'E-mail',
      pointer: '/email',
      type: 'email',
      required: true,
      autocomplete: 'username',
      inputmode: 'email',
      value: this.query.get('email') ?? '',
    });
    const proof = proofFields();
    const ttl = field({ label: 'Sign me out after', pointer: '/ttl', options: LIFETIMES, value: LIFETIME });
    this.classList.add('narrow');
    const fields = [email, proof.password, proof.passcode, ttl];
    return [
      this.reason && h('p', { class: 'note', role: 'status' }, this.reason),
      form({
        fields: () => fields,
        content: fields.map(({ row }) => row),
        submit: 'Sign in',
        busy: 'Signing in…',
        send: async () => {
          await signIn(email.read(), proof.password.read(), proof.passcode.read(), ttl.read());
        },
        explain: ({ code }) =>
          code === 'invalid-login'
            ? 'If the passcode was used before, wait for the next one. Still refused? An admin can unlock your account.'
            : null,
      }),
      h(
        'p',
        { class: 'hint' },
        'Invited? Open the link that you were given, or ',
        h('a', { href: '#/enrol' }, 'enter your invitation code'),
        '.',
      ),
    ];
  }
}

/** Asks for password and passcode again and starts a new session. The page is unchanged. */
export function extendSession() {
  openDialog('Stay signed in', (close) => {
    const old = session.token();
    return [
      again(
        'Stay signed in',
        'This starts a new session and ends the current one.',
        () => {
          if (old) call('POST', '/logout', { token: old }).catch(() => {}); // it expires soon
          announce('You stay signed in.');
          close();
        },
        h('button', { type: 'button', onclick: close }, 'Cancel'),
      ),
    ];
  });
}

/**
 * Asks the user of an expired session to sign in again, above the page, which is unchanged but hidden.
 * @param {string} reason
 */
export function signInAgain(reason) {
  const { email } = session.account();
  openDialog(
    'Sign in again',
    (close) => [
      again(
        'Sign in',
        `${reason} You are ${email}. The page comes back as you left it.`,
        close,
        h(
          'button',
          {
            type: 'button',
            onclick: () => {
              close();
              session.end('You are signed out.');
            },
          },
          'Sign in as another user',
        ),
      ),
    ],
    true,
    'locked',
  );
}

/**
 * A form that proves who the owner of the session is.
 * @param {string} submit
 * @param {string} text
 * @param {() => void} done
 * @param {Node} other another button
 */
function again(submit, text, done, other) {
  const proof = proofFields();
  const ttl = field({ label: 'Sign me out after', pointer: '/ttl', options: LIFETIMES, value: LIFETIME });
  return form({
    fields: () => [proof.password, proof.passcode, ttl],
    content: [h('p', null, text), userName(session.account().email), proof.password.row, proof.passcode.row, ttl.row],
    submit,
    busy: 'Signing in…',
    send: async () => {
      await signIn(session.account().email, proof.password.read(), proof.passcode.read(), ttl.read());
      done();
    },
    explain: ({ code }) =>
      code === 'invalid-login'
        ? 'If the passcode was used before, wait for the next one. Still refused? An admin can unlock your account.'
        : null,
    buttons: [other],
  });
}

customElements.define('ov-sign-in', SignIn);
