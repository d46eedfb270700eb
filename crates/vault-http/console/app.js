// The console's frame: who is signed in, where one can go, and which page is shown.

import { call } from './api.js';
import { announce, h } from './dom.js';
import { Page, clock, duration } from './parts.js';
import * as session from './session.js';
import { extendSession } from './sign-in.js';

/**
 * @typedef {object} Route
 * @property {RegExp} pattern
 * @property {string} element
 * @property {() => Promise<unknown>} load
 * @property {'nobody' | 'anybody' | 'writer' | 'admin'} [who]
 */

/** @type {Route[]} */
const ROUTES = [
  { pattern: /^\/enrol(?:\/(.+))?$/, element: 'ov-enrol', load: () => import('./enrol.js'), who: 'nobody' },
  { pattern: /^\/credentials$/, element: 'ov-credentials', load: () => import('./credentials.js') },
  { pattern: /^\/credentials\/new$/, element: 'ov-credential-form', load: () => import('./credential-form.js'), who: 'writer' },
  { pattern: /^\/credentials\/([^/]+)$/, element: 'ov-credential', load: () => import('./credential.js') },
  { pattern: /^\/credentials\/([^/]+)\/(replace|match)$/, element: 'ov-credential-form', load: () => import('./credential-form.js'), who: 'writer' },
  { pattern: /^\/account$/, element: 'ov-account', load: () => import('./account.js') },
  { pattern: /^\/accounts$/, element: 'ov-accounts', load: () => import('./accounts.js'), who: 'admin' },
  { pattern: /^\/integrations$/, element: 'ov-integrations', load: () => import('./integrations.js'), who: 'admin' },
  { pattern: /^\/namespaces$/, element: 'ov-namespaces', load: () => import('./namespaces.js'), who: 'admin' },
  { pattern: /^\/audit$/, element: 'ov-audit', load: () => import('./audit.js'), who: 'admin' },
];

const HOME = '/credentials';
/** When the coming end of the session is said, in milliseconds before it. */
const WARNINGS = [300_000, 60_000];

/** @type {[string, string, boolean][]} Address, name, and whether it is for admins alone. */
const PLACES = [
  ['#/credentials', 'Credentials', false],
  ['#/integrations', 'Integrations', true],
  ['#/namespaces', 'Namespaces', true],
  ['#/accounts', 'Accounts', true],
  ['#/audit', 'Audit', true],
  ['#/account', 'Your account', false],
];

class App extends HTMLElement {
  #main = h('main', { id: 'main' });
  #top = h('div', { class: 'top' });
  #warning = h('div', { class: 'session-warning', hidden: true });
  #left = h('span', { class: 'session-left' });
  #said = 0;
  #reason = '';
  #shown = 0;

  connectedCallback() {
    this.replaceChildren(
      h('a', { class: 'skip', href: '#main', onclick: (/** @type {Event} */ event) => {
        event.preventDefault();
        this.#focus();
      } }, 'Skip to the content'),
      this.#top, this.#warning, this.#main,
      h('div', { id: 'announcements', class: 'hidden', role: 'status', 'aria-live': 'polite' }));
    addEventListener('hashchange', () => void this.#route(true));
    for (const event of ['begun', 'extended']) {
      session.events.addEventListener(event, () => {
        this.#said = 0;
        this.#reason = '';
        this.#frame();
        this.#tick();
        if (event === 'begun') void this.#route(true);
      });
    }
    session.events.addEventListener('ended', (event) => {
      this.#reason = /** @type {CustomEvent} */ (event).detail;
      for (const dialog of this.querySelectorAll('dialog')) dialog.remove();
      this.#frame();
      void this.#route(true);
    });
    // The token is gone with the page, so the session serves nobody any more.
    addEventListener('pagehide', () => {
      if (session.token()) call('POST', '/logout', { keepalive: true }).catch(() => {});
      session.end('Sign in again: leaving the page ended your session.');
    });
    setInterval(() => this.#tick(), 1000);
    this.#frame();
    void this.#route(false);
  }

  /** What is around the page. */
  #frame() {
    const brand = h('span', { class: 'brand' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'OrgVault');
    document.body.classList.toggle('signed-in', Boolean(session.token()));
    if (!session.token()) {
      this.#top.replaceChildren(h('header', { class: 'bar' }, brand));
      this.#warning.hidden = true;
      return;
    }
    const { email, organization, role } = session.account();
    this.#top.replaceChildren(
      h('header', { class: 'bar' }, brand,
        h('span', { class: 'organization' }, organization),
        h('span', { class: 'who' }, h('span', { class: 'email' }, email), h('span', { class: 'badge plain' }, role)),
        this.#left,
        h('button', { type: 'button', class: 'quiet', onclick: () => void this.#signOut() }, 'Sign out')),
      h('nav', { class: 'places', 'aria-label': 'Console' }, h('ul', null,
        PLACES.filter(([, , admins]) => !admins || session.isAdmin()).map(([href, name]) => h('li', null, h('a', { href, onclick: () => {
          // No address changes, but what is shown may have.
          if (location.hash === href) void this.#route(true);
        } }, name))))));
    this.#mark();
  }

  /** Marks the place that is shown. */
  #mark() {
    const place = location.hash.split(/[?]/)[0] ?? '';
    for (const link of this.querySelectorAll('.places a')) {
      const href = link.getAttribute('href') ?? '';
      if (place === href || place.startsWith(`${href}/`)) {
        link.setAttribute('aria-current', 'page');
        const places = link.closest('.places');
        if (places) places.scrollLeft = /** @type {HTMLElement} */ (link).offsetLeft - 60; // on a phone they lie side by side
      } else link.removeAttribute('aria-current');
    }
  }

  async #signOut() {
    try {
      await call('POST', '/logout');
    } catch {
      // Without an answer the session may last until its end; the token is forgotten all the same.
      session.end('Signed out in this browser. The server did not answer, so the session may be valid until it expires.');
    }
    session.end('You are signed out.');
  }

  #tick() {
    if (!session.token()) return;
    const left = session.timeLeft();
    if (left === 0) {
      session.end('Your session has expired. Sign in again to carry on.');
      return;
    }
    this.#left.textContent = `Session ends ${clock(session.endsAt())}`;
    this.#left.title = `In ${duration(left)}`;
    const due = WARNINGS.filter((limit) => left <= limit).length;
    this.#warning.hidden = due === 0;
    if (due === 0) return;
    if (!this.#warning.hasChildNodes() || this.#said === 0) {
      this.#warning.replaceChildren(h('p', null, 'Your session ends at ', h('strong', null, clock(session.endsAt())), ', in ', h('strong', { class: 'count' }), '. What you have typed is lost then.'),
        h('button', { type: 'button', onclick: () => extendSession() }, 'Stay signed in'));
    }
    const remaining = this.#warning.querySelector('.count');
    if (remaining) remaining.textContent = duration(left);
    if (due > this.#said) announce(`Your session ends in ${duration(WARNINGS[due - 1] ?? left)}.`);
    this.#said = due;
  }

  /**
   * Shows the page that the address names.
   * @param {boolean} focus whether to move the focus to it
   */
  async #route(focus) {
    const [path = '', query = ''] = location.hash.slice(1).split('?');
    const signedIn = Boolean(session.token());
    const found = ROUTES.find(({ pattern }) => pattern.test(path));
    if (!found || (signedIn && found.who === 'nobody')) {
      if (signedIn) {
        location.replace(`#${HOME}`);
        return;
      }
    }
    this.#shown += 1;
    const shown = this.#shown;
    const open = found?.who === 'nobody';
    let element = 'ov-sign-in';
    if (found && (signedIn || open)) {
      await found.load();
      if (shown !== this.#shown) return;
      const permitted = found.who === 'writer' ? session.mayWrite() : found.who !== 'admin' || session.isAdmin();
      element = permitted ? found.element : 'ov-not-permitted';
    }
    const page = /** @type {Page & {reason?: string}} */ (document.createElement(element));
    page.params = (found?.pattern.exec(path) ?? []).slice(1).map((part) => part ?? '');
    page.query = new URLSearchParams(query);
    page.reason = this.#reason;
    this.#main.replaceChildren(page);
    this.#mark();
    scrollTo(0, 0);
    if (focus) this.#focus();
  }

  #focus() {
    const heading = this.#main.querySelector('h1');
    if (heading instanceof HTMLElement) heading.focus({ preventScroll: true });
  }
}

class NotPermitted extends Page {
  label() {
    return 'Not permitted';
  }

  async content() {
    return [h('p', { class: 'empty' }, 'Your role does not permit this. Ask an admin of your organization.')];
  }
}

customElements.define('ov-not-permitted', NotPermitted);
customElements.define('ov-app', App);
