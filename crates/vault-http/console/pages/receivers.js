// Notifications: receivers of events, by webhook or e-mail.

import { Problem, call } from '../parts/api.js';
import { button, h } from '../parts/dom.js';
import { checkbox, field, form } from '../parts/forms.js';
import { list } from '../parts/list.js';
import { Page, badge, confirm, openDialog, time } from '../parts/parts.js';
import { table } from '../parts/blocks.js';
import { secretBox } from '../parts/copy.js';
import * as session from '../parts/session.js';

/** @typedef {import('../parts/api.js').Receiver} Receiver */
/** @typedef {import('../parts/api.js').Delivery} Delivery */

/** The events of an organization in words, by what they are about. @type {[string, [string, string][]][]} */
const EVENTS = [
  [
    'Credentials',
    [
      ['credential.expiring', '30, 7 and 1 days before it expires'],
      ['credential.expired', 'has expired'],
      ['credential.failing', 'stops working'],
      ['credential.healthy-again', 'works again'],
      ['credential.replaced', 'was replaced'],
      ['credential.deleted', 'was deleted'],
    ],
  ],
  [
    'Jobs',
    [
      ['integration.token-expiring', '30, 7 and 1 days before an integration expires'],
      ['integration.refused-after-freeze', 'a job was denied because its namespace is frozen'],
      ['namespace.frozen', 'a namespace was frozen'],
      ['namespace.thawed', 'a namespace was thawed'],
    ],
  ],
  [
    'People',
    [
      ['account.locked', 'an account was locked after failed attempts'],
      ['account.re-enrolled', 'an account’s sign-in was reset'],
      ['account.re-enrolment-confirmed', 'its owner has enrolled again'],
      ['account.recovery-code-used', 'a user used a recovery code'],
      ['account.admin-added', 'a user became an admin'],
    ],
  ],
];

/** Why a delivery failed, and what to do. @type {Record<string, string>} */
const FAILURES = {
  'unknown-host': 'Its host name does not resolve.',
  'blocked-address': 'This server does not connect to its address; an operator allows it with --allow-egress.',
  'proxy-failed': 'The outgoing proxy of this server fails or does not permit it: ask the operator.',
  unreachable: 'It does not respond within 10 seconds.',
  'untrusted-certificate': 'Its certificate is not trusted.',
  redirected: 'It redirects, which is not followed: use the final address.',
  gone: 'It responded that it is gone (status 410).',
  refused: 'It responds with an error.',
  'no-mail-server': 'This server sends no mail.',
  'starttls-not-offered': 'The mail server does not offer STARTTLS, which --smtp-url requires.',
  'login-not-offered': 'The mail server does not offer a login to this server.',
  'no-member': 'The address has no active user.',
  damaged: 'Its row was changed outside the service. Remove it, and tell an operator.',
};

/** @param {string | undefined} error */
const why = (error) => (error ? (FAILURES[error] ?? error) : '');

/**
 * Boxes for the events, those of `chosen` checked.
 * @param {string[] | null} chosen
 */
function eventBoxes(chosen) {
  const boxes = EVENTS.flatMap(([, events]) => events).map(([name, text]) => ({
    name,
    box: checkbox(text, { checked: !chosen || chosen.includes(name) }),
  }));
  const groups = EVENTS.map(([heading, events]) =>
    h(
      'fieldset',
      null,
      h('legend', null, heading),
      boxes.filter(({ name }) => events.some(([one]) => one === name)).map(({ box }) => box.row),
    ),
  );
  const read = () => boxes.filter(({ box }) => box.control.checked).map(({ name }) => name);
  return { groups, read, all: boxes.length };
}

/**
 * A signing secret, shown once.
 * @param {string} secret
 * @param {string} text
 * @param {() => void} closed
 */
function showSecret(secret, text, closed) {
  const dialog = openDialog(
    'Signing secret',
    (close) => [
      h(
        'div',
        { class: 'page-body' },
        h('p', null, text),
        secretBox(secret, 'the signing secret'),
        h('p', { class: 'hint' }, 'It is not shown again. Any library of Standard Webhooks verifies messages with it.'),
        h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')),
      ),
    ],
    true,
  );
  dialog.addEventListener('close', closed);
}

/** @param {Receiver} receiver */
const nameOf = ({ id, url, to }) => url ?? to ?? id;

class Receivers extends Page {
  label() {
    return 'Notifications';
  }

  async content() {
    this.actions(h('button', { type: 'button', class: 'primary', onclick: () => this.#add() }, 'Add a receiver'));
    const { body: rows } = /** @type {{body: Receiver[]}} */ (await call('GET', '/receivers'));
    return [
      h(
        'p',
        { class: 'hint' },
        'Get a webhook or e-mail before a key expires or when one stops working. Webhooks are signed.',
      ),
      list({
        caption: 'Receivers',
        noun: 'receiver',
        file: 'receivers',
        rows,
        empty: 'No receivers yet. Add one to get a message before a key expires.',
        columns: [
          {
            heading: 'Address',
            cell: ({ kind, url, to }) => [
              h('span', { class: 'long', translate: 'no' }, url ?? to),
              h('span', { class: 'hint block' }, kind === 'webhook' ? 'webhook' : 'mail'),
            ],
            value: ({ url, to }) => url ?? to,
          },
          {
            heading: 'State',
            cell: ({ state, last_error: error }) => [
              badge(state, state === 'active' ? 'good' : 'bad'),
              error ? h('span', { class: 'hint block' }, why(error)) : null,
            ],
            value: ({ state }) => state,
          },
          {
            heading: 'Events',
            cell: ({ events }) =>
              events.length === eventBoxes(null).all
                ? 'all'
                : h('span', { title: events.join('\n') }, `${events.length} of ${eventBoxes(null).all}`),
            value: ({ events }) => events.join(' '),
          },
          {
            heading: 'Last delivered',
            cell: ({ last_delivered_at: at }) => time(at),
            value: ({ last_delivered_at: at }) => at,
          },
          { heading: '(Actions)', cell: (receiver) => this.#buttons(receiver) },
        ],
      }),
    ];
  }

  /**
   * Runs an action, and shows its error if it is refused.
   * @param {() => Promise<void>} act
   */
  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.say(error.detail, 'bad');
    }
  }

  #add() {
    const mail = session.server().mail;
    const kind = field({
      label: 'How',
      pointer: '/kind',
      options: mail
        ? [
            ['webhook', 'Webhook'],
            ['email', 'E-mail'],
          ]
        : [['webhook', 'Webhook']],
      value: 'webhook',
    });
    const url = field({
      label: 'URL',
      pointer: '/url',
      required: true,
      mono: true,
      placeholder: 'https://hooks.example.com/orgvault',
      maxlength: 2048,
      hint: 'https. Only its host is shown later.',
    });
    const to = field({
      label: 'E-mail address',
      pointer: '/to',
      required: true,
      type: 'email',
      hint: 'Of a user of your organization. At most one e-mail an hour.',
    });
    const { groups, read, all } = eventBoxes(null);
    const turn = () => {
      const isMail = kind.control.value === 'email';
      url.row.hidden = isMail;
      to.row.hidden = !isMail;
    };
    kind.control.addEventListener('change', turn);
    turn();
    openDialog('Add a receiver', (close) => [
      form({
        fields: () => (kind.control.value === 'email' ? [kind, to] : [kind, url]),
        content: [
          kind.row,
          !mail && h('p', { class: 'hint' }, 'This server sends no mail. An operator turns that on with --smtp-url.'),
          url.row,
          to.row,
          h('h3', null, 'Events'),
          ...groups,
        ],
        submit: 'Add',
        busy: 'Adding…',
        send: async () => {
          const events = read();
          const isMail = kind.control.value === 'email';
          const { body } = await call('POST', '/receivers', {
            body: {
              kind: kind.read(),
              url: isMail ? undefined : url.read(),
              to: isMail ? to.read() : undefined,
              events: events.length === all ? undefined : events,
            },
          });
          close();
          const done = () => void this.done('Added a receiver. Send it a test.');
          if (body.secret) showSecret(body.secret, 'Give it to the program behind the URL.', done);
          else done();
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]).classList.add('wide');
  }

  /** @param {Receiver} receiver */
  #buttons(receiver) {
    const { id, kind, state } = receiver;
    const act = (/** @type {string} */ text, /** @type {() => void} */ does, style = 'quiet') =>
      button(text, does, { class: style, 'aria-label': `${text} ${nameOf(receiver)}` });
    const test = () =>
      this.#attempt(async () => {
        await call('POST', `/receivers/${id}/test`);
        this.#deliveries(receiver);
      });
    return h(
      'div',
      { class: 'buttons' },
      state !== 'disabled' && act('Test', () => void test()),
      act('Deliveries', () => this.#deliveries(receiver)),
      act('Events', () => this.#edit(receiver)),
      kind === 'webhook' && act('New secret', () => this.#newSecret(receiver)),
      state === 'disabled'
        ? act('Enable', () => this.#turn(receiver, 'active'))
        : act('Disable', () => this.#turn(receiver, 'disabled')),
      act('Remove', () => this.#remove(receiver), 'quiet danger'),
    );
  }

  /** @param {Receiver} receiver */
  #newSecret(receiver) {
    const name = nameOf(receiver);
    confirm({
      heading: `A new signing secret for ${name}?`,
      text: ['For 24 hours messages are signed with the old one too.'],
      submit: 'Create new secret',
      busy: 'One moment…',
      danger: false,
      act: async () => {
        const { body } = await call('POST', `/receivers/${receiver.id}/rotate-secret`);
        showSecret(
          body.secret,
          'Give it to the program behind the URL within 24 hours.',
          () => void this.done(`${name} has a new signing secret.`),
        );
      },
    });
  }

  /**
   * @param {Receiver} receiver
   * @param {'active' | 'disabled'} state
   */
  #turn(receiver, state) {
    const [name, on] = [nameOf(receiver), state === 'active'];
    confirm({
      heading: `${on ? 'Enable' : 'Disable'} ${name}?`,
      text: [on ? 'It gets events from now on.' : 'It gets no events until it is enabled again.'],
      submit: on ? 'Enable' : 'Disable',
      busy: on ? 'Enabling…' : 'Disabling…',
      danger: !on,
      act: async () => {
        await call('PATCH', `/receivers/${receiver.id}`, { body: { state } });
        await this.done(on ? `Enabled ${name}.` : `Disabled ${name}. It gets no events.`);
      },
    });
  }

  /** @param {Receiver} receiver */
  #remove(receiver) {
    const name = nameOf(receiver);
    confirm({
      heading: `Remove ${name}?`,
      text: ['It gets no more events, and pending ones are dropped.'],
      submit: 'Remove',
      busy: 'Removing…',
      act: async () => {
        await call('DELETE', `/receivers/${receiver.id}`);
        await this.done(`Removed receiver ${name}.`);
      },
    });
  }

  /** @param {Receiver} receiver */
  #edit({ id, events, url, to }) {
    const { groups, read } = eventBoxes(events);
    const none = h(
      'p',
      { class: 'note bad', role: 'alert', hidden: true },
      'Choose at least one event, or disable the receiver.',
    );
    openDialog(`Events of ${url ?? to}`, (close) => [
      form({
        fields: () => [],
        content: [...groups, none],
        submit: 'Save',
        busy: 'Saving…',
        send: async () => {
          const wanted = read();
          none.hidden = wanted.length > 0;
          if (!wanted.length) return false;
          await call('PATCH', `/receivers/${id}`, { body: { events: wanted } });
          close();
          await this.done(`Saved ${url ?? to}.`);
          return true;
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]).classList.add('wide');
  }

  /**
   * Past and pending deliveries, reloaded every second while one is pending.
   * @param {Receiver} receiver
   */
  #deliveries({ id, url, to }) {
    const box = h('div', { 'aria-live': 'polite' }, h('p', { class: 'muted' }, 'Loading…'));
    const dialog = openDialog(`Deliveries to ${url ?? to}`, (close) => [
      h(
        'div',
        { class: 'page-body' },
        box,
        h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close')),
      ),
    ]);
    dialog.classList.add('wide');
    dialog.addEventListener('close', () => void this.refresh());
    let shown = '';
    const show = async () => {
      const { body: rows } = /** @type {{body: Delivery[]}} */ (
        await call('GET', `/receivers/${id}/deliveries?limit=50`)
      );
      const text = JSON.stringify(rows);
      if (text !== shown) box.replaceChildren(this.#table(id, rows, show));
      shown = text;
      if (dialog.open && rows.some(({ state }) => state === 'waiting'))
        setTimeout(() => {
          if (dialog.open) void this.#attempt(show);
        }, 1000);
    };
    void this.#attempt(show);
  }

  /**
   * @param {string} id
   * @param {Delivery[]} rows
   * @param {() => Promise<void>} show
   */
  #table(id, rows, show) {
    const again = (/** @type {Delivery} */ { id: event, type }) =>
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-label': `Send ${type} again`,
          onclick: () =>
            void this.#attempt(async () => {
              await call('POST', `/receivers/${id}/deliveries/${event}/resend`);
              await show();
            }),
        },
        'Send again',
      );
    /** @type {import('../parts/blocks.js').TableColumn<Delivery>[]} */
    const columns = [
      { heading: 'Event', cell: ({ type }) => h('code', { class: 'whole' }, type) },
      { heading: 'When', cell: ({ timestamp }) => time(timestamp) },
      {
        heading: 'State',
        cell: ({ state, last_error: error, next_attempt_at: next }) => [
          badge(state, state === 'delivered' ? 'good' : state === 'failed' ? 'bad' : 'plain'),
          error &&
            h(
              'span',
              { class: 'hint block' },
              why(error),
              state === 'waiting' && next ? [' Next attempt ', time(next)] : '',
            ),
        ],
      },
      { heading: '(Actions)', cell: (row) => (row.state === 'waiting' ? null : again(row)) },
    ];
    return table('Deliveries', columns, rows, 'No events yet.');
  }
}

customElements.define('ov-receivers', Receivers);
