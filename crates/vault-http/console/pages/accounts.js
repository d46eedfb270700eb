// The organization's accounts and invitations.

import { call, query } from '../parts/api.js';
import { h, parted } from '../parts/dom.js';
import { count, field, form } from '../parts/forms.js';
import { list, loadAll } from '../parts/list.js';
import { Page, badge, confirm, live, openDialog, time } from '../parts/parts.js';
import { facts } from '../parts/blocks.js';
import { secretBox } from '../parts/copy.js';
import * as session from '../parts/session.js';

/** @typedef {import('../parts/api.js').Account} Account */

/** @type {[string, string][]} */
const ROLES = [
  ['viewer', 'Viewer: sees the list'],
  ['editor', 'Editor: also saves, replaces and deletes'],
  ['admin', 'Admin: also manages accounts and integrations'],
];

/**
 * An invitation code, shown once.
 * @param {string} heading
 * @param {string} email
 * @param {{enrolment_code: string, expires_at: string}} invited
 * @param {() => void} closed
 */
function showCode(heading, email, { enrolment_code: code, expires_at: at }, closed) {
  const link = `${location.origin}/#/enrol/${code}`;
  const dialog = openDialog(
    heading,
    (close) => [
      h(
        'div',
        { class: 'page-body' },
        h(
          'p',
          null,
          `Send this link to the owner of ${email} over a channel that you trust. It works once and is shown only once.`,
        ),
        secretBox(link, 'the link'),
        facts([
          ['Valid until', time(at)],
          ['Code alone', h('code', null, code)],
        ]),
        h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')),
      ),
    ],
    true,
  );
  dialog.addEventListener('close', closed);
}

class Accounts extends Page {
  label() {
    return 'Accounts';
  }

  async content() {
    this.actions(h('button', { type: 'button', class: 'primary', onclick: () => this.#invite() }, 'Invite user'));
    const { rows, partial } = /** @type {{rows: Account[], partial: boolean}} */ (await loadAll('/accounts'));
    const [named, invite] = [this.query.get('email'), this.once('invite')];
    if (invite) queueMicrotask(() => this.#invite());
    return [
      list({
        caption: 'Accounts',
        noun: 'account',
        partial,
        file: 'accounts',
        empty: 'No accounts.',
        rows: named ? rows.toSorted((one, other) => Number(other.email === named) - Number(one.email === named)) : rows,
        columns: [
          {
            heading: 'E-mail',
            cell: ({ email }) => h('span', { class: 'long', translate: 'no' }, parted(email)),
            value: ({ email }) => email,
          },
          { heading: 'Role', cell: ({ role }) => role, value: ({ role }) => role },
          {
            heading: 'State',
            cell: ({ id, state, locked, locked_since: since, failed_logins: failed, invitation_expires_at: at }) =>
              [
                locked && state === 'active'
                  ? badge('locked', 'bad')
                  : badge(state, { active: 'good', disabled: 'bad', invited: 'warn', 're-enrolling': 'warn' }[state]),
                locked && state !== 'active' ? [' ', badge('locked', 'bad')] : [],
                failed
                  ? [
                      h(
                        'a',
                        {
                          class: 'hint block',
                          href: `#/audit${query({ action: 'sign-ins', subject: `account:${id}` })}`,
                        },
                        count(failed, 'failed sign-in'),
                        since ? [', locked ', live('relative', since)] : [],
                      ),
                    ]
                  : [],
                at ? [h('span', { class: 'hint block' }, 'invitation expires ', time(at))] : [],
              ].flat(),
            value: ({ state }) => state,
          },
          { heading: 'Last login', cell: ({ last_login_at: at }) => time(at), value: ({ last_login_at: at }) => at },
          { heading: '(Actions)', cell: (account) => this.#buttons(account) },
        ],
      }),
    ];
  }

  #invite() {
    const email = field({ label: 'E-mail', pointer: '/email', type: 'email', inputmode: 'email', required: true });
    const role = field({ label: 'Role', pointer: '/role', options: ROLES, value: 'editor' });
    openDialog('Invite user', (close) => [
      form({
        fields: () => [email, role],
        content: [email.row, role.row],
        submit: 'Invite',
        busy: 'Inviting…',
        send: async () => {
          const { body } = await call('POST', '/accounts', { body: { email: email.read(), role: role.read() } });
          close();
          showCode('Invitation', email.read(), body, () => void this.done(`Invited ${email.read()}.`));
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }

  /** @param {Account} account */
  #buttons(account) {
    const { email, state, locked } = account;
    const own = account.id === session.account().id;
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, danger = false) =>
      h(
        'button',
        { type: 'button', class: danger ? 'quiet danger' : 'quiet', 'aria-label': `${text} ${email}`, onclick },
        text,
      );
    return h(
      'div',
      { class: 'buttons' },
      button('Role', () => this.#role(account)),
      locked &&
        button('Unlock', () =>
          this.#ask(
            `Unlock ${email}?`,
            'Sign-ins are accepted again. Unlock only if the owner asked for it.',
            'Unlock',
            `Unlocked ${email}.`,
            'POST',
            account,
            '/unlock',
          ),
        ),
      state === 'disabled' &&
        button('Enable', () =>
          this.#ask(
            `Enable ${email}?`,
            'The owner can sign in again.',
            'Enable',
            `Enabled ${email}.`,
            'PATCH',
            account,
            '',
            { state: 'active' },
          ),
        ),
      !own &&
        (state === 'active' || state === 're-enrolling') &&
        button('Disable', () =>
          this.#ask(
            `Disable ${email}?`,
            'All sessions end. The owner cannot sign in until the account is enabled.',
            'Disable',
            `Disabled ${email} and ended its sessions.`,
            'PATCH',
            account,
            '',
            { state: 'disabled' },
          ),
        ),
      !own && state !== 'invited' && button('Reset sign-in', () => this.#reEnrol(account)),
      !own &&
        button(
          state === 'invited' ? 'Withdraw' : 'Delete',
          () =>
            state === 'invited'
              ? this.#ask(
                  `Withdraw the invitation of ${email}?`,
                  'The invitation link stops working.',
                  'Withdraw',
                  `Withdrew the invitation of ${email}.`,
                  'DELETE',
                  account,
                )
              : this.#ask(
                  `Delete ${email}?`,
                  'The account is deleted permanently, and its sessions end. The audit log keeps its entries.',
                  'Delete',
                  `Deleted ${email}.`,
                  'DELETE',
                  account,
                ),
          true,
        ),
    );
  }

  /**
   * Asks, and does it.
   * @param {string} heading
   * @param {string} text
   * @param {string} submit
   * @param {string} done
   * @param {string} method
   * @param {Account} account
   * @param {string} [path]
   * @param {unknown} [body]
   */
  #ask(heading, text, submit, done, method, { id }, path = '', body = undefined) {
    confirm({
      heading,
      text: [text],
      submit,
      busy: 'One moment…',
      danger: method === 'DELETE' || submit === 'Disable',
      act: async () => {
        await call(method, `/accounts/${id}${path}`, { body });
        await this.done(done);
      },
    });
  }

  /** @param {Account} account */
  #role({ id, email, role: before }) {
    const role = field({ label: 'Role', pointer: '/role', options: ROLES, value: before });
    openDialog(`Role of ${email}`, (close) => [
      form({
        fields: () => [role],
        content: [role.row, h('p', { class: 'hint' }, 'All sessions of the account end.')],
        submit: 'Change role',
        busy: 'Changing…',
        send: async () => {
          await call('PATCH', `/accounts/${id}`, { body: { role: role.read() } });
          close();
          await this.done(`${email} is now ${role.read() === 'viewer' ? 'a' : 'an'} ${role.read()}.`);
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }

  /** @param {Account} account */
  #reEnrol({ id, email }) {
    confirm({
      heading: `Reset the sign-in of ${email}?`,
      submit: 'Reset sign-in',
      busy: 'One moment…',
      text: [
        'For a user who lost authenticator and recovery codes. Password, passcode and recovery codes are deleted immediately, and all sessions end. The owner and all admins get a notice.',
      ],
      act: async () => {
        const { body } = await call('POST', `/accounts/${id}/re-enrol`);
        showCode('New invitation', email, body, () => void this.done(`Reset the sign-in of ${email}.`));
      },
    });
  }
}

customElements.define('ov-accounts', Accounts);
