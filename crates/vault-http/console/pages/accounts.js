// The organization's accounts and invitations.

import { call, query } from '../parts/api.js';
import { button, h, parted } from '../parts/dom.js';
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
          { name: 'Valid until', value: time(at) },
          { name: 'Code alone', value: h('code', null, code) },
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
    const invited = state === 'invited';
    const act = (/** @type {string} */ text, /** @type {() => void} */ does, style = 'quiet') =>
      button(text, does, { class: style, 'aria-label': `${text} ${email}` });
    return h(
      'div',
      { class: 'buttons' },
      act('Role', () => this.#role(account)),
      locked && act('Unlock', () => this.#unlock(account)),
      state === 'disabled' && act('Enable', () => this.#enable(account)),
      !own && (state === 'active' || state === 're-enrolling') && act('Disable', () => this.#disable(account)),
      !own && !invited && act('Reset sign-in', () => this.#reEnrol(account)),
      !own && act(invited ? 'Withdraw' : 'Delete', () => this.#delete(account), 'quiet danger'),
    );
  }

  /** @param {Account} account */
  #unlock({ id, email }) {
    this.#ask({
      heading: `Unlock ${email}?`,
      text: 'Sign-ins are accepted again. Unlock only if the owner asked for it.',
      submit: 'Unlock',
      done: `Unlocked ${email}.`,
      send: () => call('POST', `/accounts/${id}/unlock`),
    });
  }

  /** @param {Account} account */
  #enable({ id, email }) {
    this.#ask({
      heading: `Enable ${email}?`,
      text: 'The owner can sign in again.',
      submit: 'Enable',
      done: `Enabled ${email}.`,
      send: () => call('PATCH', `/accounts/${id}`, { body: { state: 'active' } }),
    });
  }

  /** @param {Account} account */
  #disable({ id, email }) {
    this.#ask({
      heading: `Disable ${email}?`,
      text: 'All sessions end. The owner cannot sign in until the account is enabled.',
      submit: 'Disable',
      danger: true,
      done: `Disabled ${email} and ended its sessions.`,
      send: () => call('PATCH', `/accounts/${id}`, { body: { state: 'disabled' } }),
    });
  }

  /** @param {Account} account */
  #delete({ id, email, state }) {
    const invited = state === 'invited';
    this.#ask({
      heading: invited ? `Withdraw the invitation of ${email}?` : `Delete ${email}?`,
      text: invited
        ? 'The invitation link stops working.'
        : 'The account is deleted permanently, and its sessions end. The audit log keeps its entries.',
      submit: invited ? 'Withdraw' : 'Delete',
      danger: true,
      done: invited ? `Withdrew the invitation of ${email}.` : `Deleted ${email}.`,
      send: () => call('DELETE', `/accounts/${id}`),
    });
  }

  /**
   * Asks, and does it.
   * @param {{heading: string, text: string, submit: string, danger?: boolean, done: string, send: () => Promise<unknown>}} question
   */
  #ask({ heading, text, submit, danger = false, done, send }) {
    confirm({
      heading,
      text: [text],
      submit,
      busy: 'One moment…',
      danger,
      act: async () => {
        await send();
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
