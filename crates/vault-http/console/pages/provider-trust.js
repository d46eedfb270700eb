// The trust that a keyless credential needs at its provider: the values, and the steps for its administrator.

import { Problem, call } from '../parts/api.js';
import { section, facts } from '../parts/blocks.js';
import { check } from '../parts/checking.js';
import { copyButton } from '../parts/copy.js';
import { load } from '../parts/credential.js';
import { h } from '../parts/dom.js';
import { Page } from '../parts/parts.js';
import * as session from '../parts/session.js';

/**
 * The values and steps for a credential.
 * @param {string} id
 */
export async function providerTrust(id) {
  let trust;
  try {
    trust = /** @type {import('../parts/api.js').ProviderTrust} */ (
      (await call('GET', `/organization-vault/${id}/trust`)).body
    );
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 409) throw error;
    return [h('p', { class: 'note warn' }, error.detail)];
  }
  const value = (/** @type {string} */ text, /** @type {string} */ what) => [
    h('code', null, text),
    ' ',
    copyButton(text, what),
  ];
  return [
    h(
      'div',
      { class: 'trust' },
      facts([
        { name: 'Issuer', value: value(trust.issuer, 'the issuer') },
        { name: 'Subject', value: value(trust.subject, 'the subject') },
        { name: 'Audience', value: value(trust.audience, 'the audience') },
      ]),
    ),
    h(
      'ol',
      { class: 'trust-steps' },
      trust.steps.map(({ title, language, text }, index) =>
        h(
          'li',
          null,
          h('p', null, title),
          h(
            'div',
            { class: 'copied' },
            h('pre', null, h('code', null, language === 'sh' ? options(text) : text)),
            copyButton(text, `the text of step ${index + 1}`),
          ),
        ),
      ),
    ),
    h(
      'p',
      { class: 'hint' },
      'The server tests the trust with a subject that belongs to no credential. The provider records each test as a denied request.',
    ),
  ];
}

/**
 * A command whose lines break before an option.
 * @param {string} text
 */
function options(text) {
  return text.split(/ (?=--)/).flatMap((part, index) => [index ? ' ' : '', h('span', null, part)]);
}

class ProviderTrustPage extends Page {
  label() {
    return 'Set up provider trust';
  }

  async content() {
    const id = this.params[0] ?? '';
    const { credential } = await load(id);
    this.crumbs(
      h('a', { href: '#/credentials' }, 'Credentials'),
      ' / ',
      h('a', { href: `#/credentials/${id}` }, credential.namespace),
      ' /',
    );
    const mayCheck = session.mayWrite();
    this.actions(
      mayCheck && h('button', { type: 'button', class: 'primary', onclick: () => void check(this, id) }, 'Check now'),
      h('a', { class: 'button', href: `#/credentials/${id}` }, 'View credential'),
    );
    return [
      h(
        'p',
        { class: 'lead' },
        'This credential contains no secret. Jobs can use it after the administrator of the storage provider has applied these steps.',
      ),
      section('Steps', ...(await providerTrust(id))),
    ];
  }
}

customElements.define('ov-provider-trust', ProviderTrustPage);
