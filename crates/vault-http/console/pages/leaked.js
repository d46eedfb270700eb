// A key leaked: which version of which credential it is, who may have it until when, and how it is stopped.

import { call, query } from '../parts/api.js';
import { section } from '../parts/blocks.js';
import { disabling } from '../parts/disabling.js';
import { announce, button, h, parted } from '../parts/dom.js';
import { count, field, form } from '../parts/forms.js';
import { confirmFreeze } from '../parts/freezing.js';
import { load } from '../parts/credential.js';
import { Page, badge, flash, live } from '../parts/parts.js';
import * as session from '../parts/session.js';
import { TYPE_NAMES, isKeyless } from '../rules/credentials.js';

/**
 * @typedef {import('../parts/api.js').FoundKey} FoundKey
 * @typedef {import('../parts/api.js').Holder} Holder
 * @typedef {import('../parts/api.js').Version} Version
 * @typedef {import('../parts/api.js').Credential} Credential
 */

/** What a version has in common with the key. @type {Record<FoundKey['matched'], string>} */
const MATCHED = {
  data: 'It contains exactly this key.',
  fingerprint: 'It has this fingerprint.',
  'key-id': 'Its key ID ends alike.',
};
/** The longest text that stays in the box: a fingerprint. */
const KEPT = 12;
/** The colours of the states. */
const STATES = { current: 'bad', staged: 'warn', previous: 'plain' };

/** What is searched for when the page is shown next. It may be a whole key, so the address does not contain it. */
let wanted = '';

/**
 * Opens the page with a text.
 * @param {string} text
 */
export function searchKey(text) {
  wanted = text;
  if (location.hash === '#/leaked') /** @type {Leaked | null} */ (document.querySelector('ov-leaked'))?.refresh();
  else location.hash = '#/leaked';
}

class Leaked extends Page {
  label() {
    return 'A key leaked';
  }

  async content() {
    const results = h('div', { class: 'page-body' });
    const text = field({
      label: 'Key',
      pointer: '/text',
      rows: 3,
      mono: true,
      required: true,
      value: wanted,
      hint: 'The key ID or its last four characters, a fingerprint, or the whole text that contains the key. It is compared on the server, and neither stored nor logged.',
    });
    const search = async () => {
      const { body } = await call('POST', '/organization-vault/find', { body: { text: text.read() } });
      // A whole key does not stay visible.
      if (text.text().length > KEPT) text.write('');
      results.replaceChildren(...(await found(body, () => void this.refresh())));
    };
    const searching = form({
      fields: () => [text],
      content: [text.row],
      submit: 'Search all versions',
      busy: 'Searching…',
      send: search,
    });
    if (wanted) {
      wanted = '';
      this.addEventListener('loaded', () => searching.requestSubmit(), { once: true });
    }
    return [searching, results];
  }
}

/**
 * @param {FoundKey[]} rows
 * @param {() => void} done
 */
async function found(rows, done) {
  announce(`${count(rows.length, 'version')} found.`);
  if (!rows.length)
    return [
      h('p', { class: 'note' }, 'No version that is kept contains this key. Deleted versions cannot be searched.'),
    ];
  return Promise.all(
    rows.map(async (row) => {
      const path = `/organization-vault/${row.id}`;
      const [{ credential }, { body: holders }, { body: versions }] = await Promise.all([
        load(row.id),
        call('GET', `${path}/holders`),
        call('GET', `${path}/versions`),
      ]);
      const version = versions.find((/** @type {Version} */ one) => one.version === row.version);
      return result(row, holders, { credential, information: version?.information ?? {} }, done);
    }),
  );
}

/**
 * @param {FoundKey} row
 * @param {Holder[]} holders of all versions
 * @param {{credential: Credential, information: Record<string, any>}} of
 * @param {() => void} done
 */
function result(row, holders, { credential, information }, done) {
  const { id, namespace, version, state, matched, type } = row;
  const own = holders.filter((one) => one.version === version);
  const freeze = () =>
    confirmFreeze([namespace], async () => {
      await call('POST', '/namespaces/freeze', { body: { namespace } });
      flash(`Froze ${namespace}. New activations are refused. Credentials already issued still work.`);
      done();
    });
  return section(
    `Version ${version} of ${namespace}`,
    h(
      'p',
      null,
      badge(state, STATES[state]),
      ' ',
      `${TYPE_NAMES[type]}. ${MATCHED[matched]} `,
      state === 'current' ? 'Jobs get it at each run.' : 'Jobs do not get it any more.',
    ),
    h('h3', null, 'Who has it'),
    own.length
      ? h('ul', { class: 'ticks' }, own.map(holder))
      : h('p', { class: 'hint' }, 'No job used this version in the last 30 days.'),
    h(
      'div',
      { class: 'buttons' },
      state === 'current' &&
        h(
          'a',
          { class: 'button primary', href: `#/credentials/${id}/replace` },
          isKeyless(type) ? 'Change data' : 'Rotate the key',
        ),
      session.isAdmin() && button(`Freeze ${namespace}`, freeze, { class: 'danger' }),
      h('a', { class: 'button', href: `#/credentials/${id}` }, 'View ', parted(namespace)),
      session.isAdmin() &&
        h('a', { class: 'button quiet', href: `#/audit${query({ subject: id })}` }, 'See uses in the audit'),
    ),
    h('h3', null, 'Disable it at the provider'),
    h('p', { class: 'hint' }, 'Only this stops whoever has a copy of the key.'),
    ...disabling(credential, information),
  );
}

/** @param {Holder} holder */
function holder({ integration, activations, last_activated_at: last, held_until: until }) {
  return h(
    'li',
    { class: until ? null : 'done' },
    h('strong', null, integration),
    `: ${count(activations, 'run')}, last `,
    live('relative', last),
    until ? ['. May use it until ', live('until', until)] : [],
    '.',
  );
}

customElements.define('ov-leaked', Leaked);
