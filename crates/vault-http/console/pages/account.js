// One's own account: notices, password, passcode, recovery codes, sessions.

import { call } from '../parts/api.js';
import { announce, h } from '../parts/dom.js';
import { field, form, passcodeField } from '../parts/forms.js';
import { Page, badge, confirm, openDialog, time } from '../parts/parts.js';
import { facts, section, table } from '../parts/blocks.js';
import { authenticator, newPassword, recoveryCodes } from './enrol.js';
import * as session from '../parts/session.js';
import { proofFields } from './sign-in.js';
import { THEMES, chooseTheme, theme } from '../parts/theme.js';
import { ZONE } from '../rules/times.js';

/** @typedef {import('../parts/api.js').Session} Session */

/** @param {import('../parts/api.js').Problem} problem */
const explain = ({ code }) =>
  code === 'invalid-login' ? 'If the passcode was used before, wait for the next one. You stay signed in.' : null;

/**
 * The text of a notice, with its account.
 * @param {import('../parts/api.js').Notice} notice
 * @param {Map<string, string>} emails of users, by their ids
 */
export function noticeText({ account, detail }, emails) {
  return account
    ? h('span', null, h('strong', null, emails.get(account) ?? 'A user whose account is deleted'), `: ${detail}`)
    : h('span', null, h('strong', null, 'You'), `: ${detail}`);
}

/**
 * The addresses of the users that notices name.
 * @param {import('../parts/api.js').OwnAccount} account
 * @returns {Promise<Map<string, string>>}
 */
async function emails({ notices }) {
  if (!session.isAdmin() || !notices.some(({ account }) => account)) return new Map();
  const { body } = await call('GET', '/accounts?limit=1000');
  return new Map(body.map((/** @type {import('../parts/api.js').Account} */ { id, email }) => [id, email]));
}

/**
 * A browser's own description of itself in a few words, as most of them write it.
 * @param {string} agent
 */
function clientName(agent) {
  const names = [
    ['Edg/', 'Edge'],
    ['OPR/', 'Opera'],
    ['Firefox/', 'Firefox'],
    ['Chrome/', 'Chrome'],
    ['Safari/', 'Safari'],
    ['orgvault/', 'orgvault'],
    ['curl/', 'curl'],
  ];
  const systems = [
    ['Android', 'Android'],
    ['iPhone', 'iPhone'],
    ['iPad', 'iPad'],
    ['Windows', 'Windows'],
    ['Mac OS X', 'macOS'],
    ['CrOS', 'ChromeOS'],
    ['Linux', 'Linux'],
  ];
  const found = (/** @type {string[][]} */ list) => list.find(([mark = '']) => agent.includes(mark))?.[1];
  const [name, system] = [found(names), found(systems)];
  return name ? [name, system].filter(Boolean).join(' on ') : agent;
}

class Account extends Page {
  label() {
    return 'Your account';
  }

  async content() {
    const [{ body: account }, { body: sessions }] = await Promise.all([
      call('GET', '/account'),
      call('GET', '/account/sessions'),
    ]);
    session.update(account);
    return [
      this.#notices(account, await emails(account)),
      this.#overview(account),
      this.#sessions(sessions),
      this.#appearance(),
    ];
  }

  /**
   * @param {import('../parts/api.js').OwnAccount} account
   * @param {Map<string, string>} emails
   */
  #notices({ notices }, emails) {
    if (!notices.length) return null;
    return section(
      'Notices',
      h(
        'ul',
        { class: 'notices' },
        notices.map((notice) => h('li', null, notice.at ? [time(notice.at), ': '] : [], noticeText(notice, emails))),
      ),
    );
  }

  #appearance() {
    const chosen = field({ label: 'Theme', options: THEMES, value: theme() });
    chosen.control.addEventListener('input', () => chooseTheme(chosen.control.value));
    return section(
      'Appearance',
      h('div', { class: 'pair' }, chosen.row),
      facts([{ name: 'Time zone of this browser', value: ZONE }]),
    );
  }

  /** @param {import('../parts/api.js').OwnAccount} account */
  #overview(account) {
    const few = account.recovery_codes_left <= 3;
    return section(
      'Sign-in',
      facts([
        { name: 'E-mail', value: account.email },
        { name: 'Organization', value: account.organization },
        { name: 'Role', value: account.role },
        { name: 'Authenticator set up', value: time(account.passcode_enrolled_at) },
        {
          name: 'Recovery codes left',
          value: few ? badge(String(account.recovery_codes_left), 'warn') : account.recovery_codes_left,
        },
      ]),
      h(
        'div',
        { class: 'buttons' },
        h('button', { type: 'button', onclick: () => this.#password() }, 'Change password'),
        h('button', { type: 'button', onclick: () => this.#passcode() }, 'Change authenticator'),
        h('button', { type: 'button', onclick: () => this.#recovery() }, 'New recovery codes'),
      ),
    );
  }

  /** @param {Session[]} sessions */
  #sessions(sessions) {
    return section(
      'Sessions',
      table(
        'Sessions',
        [
          {
            heading: 'Started',
            cell: ({ created_at: at, current }) => [time(at), ' ', current && badge('this session', 'good')],
          },
          { heading: 'Network', cell: ({ network }) => network },
          { heading: 'Client', cell: ({ client = '' }) => h('span', { title: client }, clientName(client)) },
          { heading: 'Last used', cell: ({ last_used_at: at }) => time(at) },
          { heading: 'Ends', cell: ({ expires_at: at }) => time(at) },
          {
            heading: '(Actions)',
            cell: (one) =>
              one.current
                ? null
                : h(
                    'div',
                    { class: 'buttons' },
                    h(
                      'button',
                      {
                        type: 'button',
                        class: 'quiet danger',
                        'aria-label': `End the session from ${one.network}`,
                        onclick: () =>
                          confirm({
                            heading: 'End this session?',
                            text: [`The session from ${one.network} stops working immediately.`],
                            submit: 'End session',
                            busy: 'Ending…',
                            act: async () => {
                              await call('DELETE', `/account/sessions/${one.id}`);
                              await this.done('Ended the session.');
                            },
                          }),
                      },
                      'End',
                    ),
                  ),
          },
        ],
        sessions,
        'No sessions.',
      ),
    );
  }

  #password() {
    const proof = proofFields();
    const password = newPassword('/new_password');
    const fields = [proof.password, proof.passcode, ...password.fields];
    openDialog('Change password', (close) => [
      form({
        fields: () => fields,
        content: [h('p', { class: 'hint' }, 'All your other sessions end.'), ...fields.map(({ row }) => row)],
        submit: 'Change password',
        busy: 'Changing…',
        explain,
        send: async () => {
          await call('POST', '/account/password', {
            body: {
              password: proof.password.read(),
              passcode: proof.passcode.read(),
              new_password: password.first.read(),
            },
          });
          close();
          await this.done('Changed the password and ended all other sessions.');
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }

  #passcode() {
    const proof = proofFields();
    const dialog = openDialog('Change authenticator', (close) => [
      form({
        fields: () => [proof.password, proof.passcode],
        content: [
          h(
            'p',
            { class: 'hint' },
            'Your current authenticator works until you confirm the new one. Then all your other sessions end.',
          ),
          proof.password.row,
          proof.passcode.row,
        ],
        submit: 'Continue',
        busy: 'One moment…',
        explain,
        send: async () => {
          const { body } = await call('POST', '/account/passcode', {
            body: { password: proof.password.read(), passcode: proof.passcode.read() },
          });
          const first = passcodeField('The six digits that the app shows now.', 'Passcode of the new secret');
          const confirmed = form({
            fields: () => [first],
            content: [authenticator(body.totp), first.row],
            submit: 'Finish',
            busy: 'One moment…',
            send: async () => {
              await call('POST', '/account/passcode/confirm', { body: { passcode: first.read() } });
              close();
              await this.done(
                'Changed the authenticator and ended all other sessions. Delete the old entry in the app.',
              );
            },
            buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
          });
          dialog.querySelector('form')?.replaceWith(confirmed);
          first.control.focus();
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }

  #recovery() {
    const proof = proofFields();
    const dialog = openDialog('New recovery codes', (close, once) => [
      form({
        fields: () => [proof.password, proof.passcode],
        content: [
          h('p', { class: 'hint' }, 'Your current recovery codes stop working, and all your other sessions end.'),
          proof.password.row,
          proof.passcode.row,
        ],
        submit: 'Create new codes',
        busy: 'One moment…',
        explain,
        send: async () => {
          const { body } = await call('POST', '/account/recovery-codes', {
            body: { password: proof.password.read(), passcode: proof.passcode.read() },
          });
          once();
          const done = h(
            'button',
            {
              type: 'button',
              class: 'primary',
              onclick: () => {
                close();
                void this.done('Created new recovery codes and ended all other sessions.');
              },
            },
            'I’ve saved these codes',
          );
          dialog
            .querySelector('form')
            ?.replaceWith(
              h(
                'div',
                { class: 'page-body' },
                recoveryCodes(body.recovery_codes, session.account().email),
                h('div', { class: 'buttons' }, done),
              ),
            );
          announce('New recovery codes are shown.');
          done.focus();
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }
}

customElements.define('ov-account', Account);
