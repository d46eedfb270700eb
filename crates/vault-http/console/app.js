// The console's frame: who is signed in, where one can go, and which page is shown.

import { Problem, call } from './parts/api.js';
import { announce, button, go, h } from './parts/dom.js';
import { Page, clock, duration, flash, menu, openDialogs, problemNote, tick } from './parts/parts.js';
import * as session from './parts/session.js';
import { extendSession, signInAgain } from './pages/sign-in.js';
import { THEMES, chooseTheme, theme } from './parts/theme.js';
import { ZONE } from './rules/times.js';

/**
 * @typedef {object} Route
 * @property {RegExp} pattern
 * @property {string} element
 * @property {() => Promise<unknown>} load
 * @property {'anonymous' | 'anybody' | 'writer' | 'admin'} [who]
 */

/** @type {Route[]} */
const ROUTES = [
  { pattern: /^\/enrol(?:\/(.+))?$/, element: 'ov-enrol', load: () => import('./pages/enrol.js'), who: 'anonymous' },
  { pattern: /^\/overview$/, element: 'ov-overview', load: () => import('./pages/overview.js') },
  { pattern: /^\/credentials$/, element: 'ov-credentials', load: () => import('./pages/credentials.js') },
  {
    pattern: /^\/credentials\/new$/,
    element: 'ov-credential-form',
    load: () => import('./pages/credential-form.js'),
    who: 'writer',
  },
  { pattern: /^\/credentials\/([^/]+)$/, element: 'ov-credential', load: () => import('./pages/credential.js') },
  {
    pattern: /^\/credentials\/([^/]+)\/(replace|match)$/,
    element: 'ov-credential-form',
    load: () => import('./pages/credential-form.js'),
    who: 'writer',
  },
  {
    pattern: /^\/credentials\/([^/]+)\/rotate$/,
    element: 'ov-rotation',
    load: () => import('./pages/rotation.js'),
    who: 'writer',
  },
  {
    pattern: /^\/credentials\/([^/]+)\/trust$/,
    element: 'ov-provider-trust',
    load: () => import('./pages/provider-trust.js'),
  },
  { pattern: /^\/leaked$/, element: 'ov-leaked', load: () => import('./pages/leaked.js'), who: 'writer' },
  { pattern: /^\/account$/, element: 'ov-account', load: () => import('./pages/account.js') },
  { pattern: /^\/accounts$/, element: 'ov-accounts', load: () => import('./pages/accounts.js'), who: 'admin' },
  {
    pattern: /^\/integrations$/,
    element: 'ov-integrations',
    load: () => import('./pages/integrations.js'),
    who: 'admin',
  },
  {
    pattern: /^\/integrations\/([^/]+)$/,
    element: 'ov-integration',
    load: () => import('./pages/integration.js'),
    who: 'admin',
  },
  { pattern: /^\/namespaces$/, element: 'ov-namespaces', load: () => import('./pages/namespaces.js'), who: 'admin' },
  { pattern: /^\/receivers$/, element: 'ov-receivers', load: () => import('./pages/receivers.js'), who: 'admin' },
  { pattern: /^\/audit$/, element: 'ov-audit', load: () => import('./pages/audit.js'), who: 'admin' },
];

/** The pages of single objects. */
const OBJECT = /^#\/(credentials|integrations)\/[0-9a-f-]{36}$/;
const HOME = '/overview';
/** How many pages with typed text are kept while others are shown. */
const DRAFTS = 5;
/** For how long a notice is marked next to the name of its page, in milliseconds. */
const FRESH = 7 * 86_400_000;
/** When the coming end of the session is said, in milliseconds before it. */
const WARNINGS = [300_000, 60_000];

/** @type {[string, string, boolean][]} Address, name, and whether it is for admins only. */
const PLACES = [
  ['#/overview', 'Overview', false],
  ['#/credentials', 'Credentials', false],
  ['#/integrations', 'Integrations', true],
  ['#/namespaces', 'Namespaces', true],
  ['#/accounts', 'Accounts', true],
  ['#/receivers', 'Notifications', true],
  ['#/audit', 'Audit', true],
  ['#/account', 'Your account', false],
];

class App extends HTMLElement {
  #main = h('main', { id: 'main' });
  #head = h('p', { class: 'print-only print-head' });
  #top = h('div', { class: 'top' });
  #warning = h('div', { class: 'session-warning', hidden: true });
  #kept = h('nav', { class: 'drafts', 'aria-label': 'To be continued', hidden: true });
  #left = h('span', { class: 'session-left' });
  #said = 0;
  /** Whether keys are listened for. */
  #listens = false;
  /** Objects whose pages were shown, the latest first: address and name. @type {Map<string, string>} */
  #recent = new Map();
  /** The minute that relative times were written in. */
  #minute = 0;
  #reason = '';
  #shown = 0;
  /** Where the page stands that is shown. */
  #address = '';
  /** How far each page was scrolled when it was left, by its address. @type {Map<string, number>} */
  #positions = new Map();
  /** Pages that hold something typed, by their addresses. @type {Map<string, Page>} */
  #drafts = new Map();
  /** Namespaces whose old keys no job can use any more, by the addresses of their rotations. @type {Map<string, string>} */
  #safe = new Map();

  connectedCallback() {
    this.replaceChildren(
      h(
        'a',
        {
          class: 'skip',
          href: '#main',
          onclick: (/** @type {Event} */ event) => {
            event.preventDefault();
            this.#focus();
          },
        },
        'Skip to the content',
      ),
      this.#top,
      this.#warning,
      h('div', { class: 'page' }, this.#head, this.#kept, this.#main),
      h('div', { id: 'announcements', class: 'hidden', role: 'status', 'aria-live': 'polite' }),
    );
    history.scrollRestoration = 'manual';
    addEventListener('hashchange', () => void this.#route(true));
    addEventListener('readdressed', () => {
      this.#address = location.hash;
    });
    addEventListener('rotation-safe', (event) => {
      const { address, namespace } = /** @type {CustomEvent} */ (event).detail;
      this.#safe.set(address, namespace);
      this.#showKept();
      announce(`${namespace}: no job can use the old key any more.`);
    });
    addEventListener('beforeprint', () => this.#sheet());
    for (const event of ['started', 'extended', 'resumed', 'updated'])
      session.events.addEventListener(event, () => this.#began(event));
    session.events.addEventListener('ended', (event) => this.#ended(/** @type {CustomEvent} */ (event).detail));
    addEventListener('pagehide', () => session.leave());
    // A page that comes back as it was has its session still.
    addEventListener('pageshow', ({ persisted }) => {
      if (persisted) session.takeOver();
    });
    addEventListener('beforeunload', (event) => {
      if (this.#hasTyped()) event.preventDefault();
    });
    addEventListener('keydown', (event) => this.#shortcut(event));
    setInterval(() => this.#tick(), 1000);
    void this.#start();
  }

  /** Shows the first page: with the session that a reload left, or that another tab has. */
  async #start() {
    const kept = session.takeOver();
    if (kept && (await this.#resume(kept))) return;
    this.#frame();
    void this.#route(false);
    const shared = await session.requestShared();
    const page = this.#main.firstElementChild;
    if (shared && !session.token() && !(page instanceof Page && page.typed)) await this.#resume(shared);
  }

  /**
   * Continues a session. Returns whether it is valid.
   * @param {session.Kept} kept
   */
  async #resume({ token, endsAt }) {
    try {
      const { body: account } = await call('GET', '/account', { token });
      session.begin(token, (endsAt - Date.now()) / 1000, account);
      return true;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.#reason = error.status === 401 ? 'Your session has ended. Sign in again to carry on.' : error.detail;
      return false;
    }
  }

  /** @param {string} event */
  #began(event) {
    this.#frame();
    if (event === 'updated') return;
    this.#said = 0;
    this.#reason = '';
    this.#tick();
    document.body.classList.remove('locked');
    for (const dialog of openDialogs()) if (dialog.classList.contains('locked')) dialog.close(); // another tab may have signed in
    if (event === 'started') void this.#route(true);
    const page = this.#main.firstElementChild;
    if (event !== 'resumed' || !(page instanceof Page)) return;
    page.heading();
    // Typed text stays. A page that failed without a session is loaded.
    if (!page.typed && !openDialogs().some(({ classList }) => !classList.contains('locked'))) void page.refresh();
  }

  /** @param {string} reason */
  #ended(reason) {
    const page = this.#main.firstElementChild;
    if (session.wasInterrupted() && page instanceof Page) {
      document.body.classList.add('locked');
      document.title = 'Sign in again · OrgVault';
      signInAgain(reason);
      return;
    }
    this.#reason = reason;
    this.#drafts.clear();
    this.#safe.clear();
    this.#positions.clear();
    this.#recent.clear();
    // The next person starts at the beginning.
    if (!location.hash.startsWith('#/enrol')) history.replaceState(null, '', `#${HOME}`);
    document.body.classList.remove('locked');
    for (const dialog of this.querySelectorAll('dialog')) dialog.remove();
    this.#main.replaceChildren();
    this.#frame();
    void this.#route(true);
  }

  #hasTyped() {
    const page = this.#main.firstElementChild;
    return this.#drafts.size > 0 || (page instanceof Page && page.typed) || openDialogs().some(({ typed }) => typed);
  }

  /** @param {KeyboardEvent} event */
  #shortcut(event) {
    const control = event.ctrlKey || event.metaKey;
    const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea, select');
    const wanted =
      (control && event.key.toLowerCase() === 'k') || (event.key === '/' && !control && !event.altKey && !typing);
    if (!wanted || !session.token() || openDialogs().length) return;
    event.preventDefault();
    this.#find();
  }

  #find() {
    const places = PLACES.filter(([, , admins]) => !admins || session.isAdmin()).map(([href, name]) => ({
      href,
      name,
    }));
    void import('./parts/find.js').then(({ find }) =>
      find(places, [...this.#recent].reverse(), () => void this.#signOut()),
    );
  }

  /** Lists the pages to return to: those that hold something typed and are not shown, and rotations that can be finished. */
  #showKept() {
    const drop = (
      /** @type {Map<string, unknown>} */ kept,
      /** @type {string} */ address,
      /** @type {string} */ verb,
      /** @type {string} */ name,
    ) =>
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-label': `${verb} ${name}`,
          onclick: () => {
            kept.delete(address);
            this.#showKept();
            this.#focus();
          },
        },
        verb,
      );
    this.#kept.replaceChildren(
      ...[...this.#drafts].map(([address, page]) =>
        h(
          'p',
          { class: 'note warn' },
          'Not saved yet: ',
          h('a', { href: address }, page.name),
          ' ',
          drop(this.#drafts, address, 'Discard', page.name),
        ),
      ),
      ...[...this.#safe].map(([address, namespace]) =>
        h(
          'p',
          { class: 'note good' },
          h(
            'span',
            null,
            h('strong', { translate: 'no' }, namespace),
            ': no job can use the old key any more. You can disable it.',
          ),
          h('a', { href: address }, 'Continue rotation'),
          ' ',
          drop(this.#safe, address, 'Dismiss', namespace),
        ),
      ),
    );
    this.#kept.hidden = !this.#kept.hasChildNodes();
  }

  /** The frame of the page. */
  #frame() {
    const brand = h(
      'a',
      { class: 'brand', href: `#${HOME}` },
      h('span', { class: 'mark', 'aria-hidden': 'true' }),
      'OrgVault',
    );
    document.body.classList.toggle('signed-in', Boolean(session.token()));
    if (!session.token()) {
      this.#top.replaceChildren(h('header', { class: 'bar' }, brand));
      this.#warning.hidden = true;
      return;
    }
    this.#top.replaceChildren(
      h(
        'header',
        { class: 'bar' },
        brand,
        h('span', { class: 'organization' }, session.account().organization),
        h(
          'button',
          {
            type: 'button',
            class: 'quiet find-button',
            'aria-label': 'Find',
            'aria-keyshortcuts': 'Control+K /',
            onclick: () => this.#find(),
          },
          'Find',
          h('kbd', { 'aria-hidden': 'true' }, '/'),
        ),
        h('span', { class: 'who' }, ...this.#accountMenu()),
      ),
      this.#places(),
    );
    if (!this.#listens) void import('./parts/keys.js').then(({ listen }) => listen());
    this.#listens = true;
    this.#mark();
  }

  /** What the user can do about the session and the appearance. */
  #accountMenu() {
    const { email, role } = session.account();
    const choose = (/** @type {import('./parts/theme.js').Theme} */ name) => {
      chooseTheme(name);
      this.#frame();
      /** @type {HTMLElement | null} */ (this.querySelector('.account'))?.focus();
    };
    return menu(
      email,
      [
        h('p', { class: 'menu-head' }, h('span', { class: 'email' }, email), h('span', { class: 'badge plain' }, role)),
        this.#left,
        button('Your account', () => go('#/account')),
        ...THEMES.map(([name, text]) =>
          button(`Theme: ${text}`, () => choose(name), { 'aria-pressed': String(theme() === name) }),
        ),
        button('Sign out', () => this.#signOut()),
      ],
      [
        { class: 'account quiet', 'aria-label': `${email}, account menu`, title: email },
        h('span', { class: 'email' }, email),
      ],
    );
  }

  /** The places that the user can go to. */
  #places() {
    const places = PLACES.filter(([, , admins]) => !admins || session.isAdmin());
    const again = (/** @type {string} */ href) => {
      // The address is the same, but the data may have changed.
      if (location.hash === href) void this.#route(true);
    };
    const help = () => import('./parts/keys.js').then(({ showKeys }) => showKeys());
    return h(
      'nav',
      { class: 'places', 'aria-label': 'Console' },
      h(
        'ul',
        null,
        places.map(([href, name]) =>
          h('li', null, h('a', { href, onclick: () => again(href) }, name, href === '#/account' && this.#notices())),
        ),
        h('li', null, button('Keys and help', help, { class: 'help' })),
      ),
    );
  }

  /** How many notices the own account has that are new. */
  #notices() {
    const fresh = session.account().notices.filter(({ at }) => !at || Date.now() - Date.parse(at) < FRESH).length;
    return (
      fresh > 0 && [
        ' ',
        h('span', { class: 'badge warn' }, fresh, h('span', { class: 'hidden' }, fresh === 1 ? ' notice' : ' notices')),
      ]
    );
  }

  /** Writes whose data a printed page shows, since when, and with what filters. */
  #sheet() {
    const filters = [...this.#main.querySelectorAll('.filters .field')].flatMap((row) => {
      const control = row.querySelector('input, select');
      const value =
        control instanceof HTMLSelectElement
          ? control.value && control.selectedOptions[0]?.textContent
          : control instanceof HTMLInputElement
            ? control.value
            : '';
      return value ? [`${row.querySelector('label')?.firstChild?.textContent}: ${value}`] : [];
    });
    this.#head.textContent = session.token()
      ? [
          `${session.account().organization} at ${location.host}, ${new Date().toLocaleString()} (${ZONE})`,
          ...filters,
        ].join('. ')
      : '';
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
      session.end(
        'Signed out in this browser. The server did not answer, so the session may be valid until it expires.',
      );
    }
    session.end('You are signed out.');
  }

  #tick() {
    const minute = Math.floor(Date.now() / 60_000);
    if (minute !== this.#minute) tick();
    this.#minute = minute;
    if (!session.token()) return;
    const left = session.timeLeft();
    if (left === 0) {
      session.end('Your session has expired.', true);
      return;
    }
    this.#left.textContent = `Session ends ${clock(session.endsAt())}`;
    this.#left.title = `In ${duration(left)}`;
    const due = WARNINGS.filter((limit) => left <= limit).length;
    this.#warning.hidden = due === 0;
    if (due === 0) return;
    if (!this.#warning.hasChildNodes() || this.#said === 0) {
      this.#warning.replaceChildren(
        h(
          'p',
          null,
          'Your session ends at ',
          h('strong', null, clock(session.endsAt())),
          ', in ',
          h('strong', { class: 'count' }),
          '. What you have typed stays.',
        ),
        h('button', { type: 'button', onclick: () => extendSession() }, 'Stay signed in'),
      );
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
    const here = this.#main.firstElementChild;
    const before = this.#address;
    if (here instanceof Page && before !== location.hash) {
      this.#positions.set(before, scrollY);
      const [object = ''] = before.split('?');
      if (OBJECT.test(object)) {
        this.#recent.delete(object);
        this.#recent.set(object, here.name);
      }
    }
    if (here instanceof Page && here.typed && this.#address !== location.hash) {
      this.#drafts.delete(this.#address);
      this.#drafts.set(this.#address, here);
      const [oldest] = this.#drafts.keys();
      if (this.#drafts.size > DRAFTS && oldest !== undefined) this.#drafts.delete(oldest);
    }
    if (!found || (signedIn && found.who === 'anonymous')) {
      if (signedIn) {
        if (!found && path.length > 1 && path !== '/sign-in') flash(`There is no page at ${path}.`, 'warn');
        location.replace(`#${HOME}`);
        return;
      }
    }
    this.#shown += 1;
    const shown = this.#shown;
    const open = found?.who === 'anonymous';
    let element = 'ov-sign-in';
    if (found && (signedIn || open)) {
      try {
        await found.load();
      } catch {
        const problem = new Problem(0, {
          title: 'This page cannot be loaded',
          detail: 'The server did not answer. Check your connection and try again.',
        });
        this.#main.replaceChildren(
          problemNote(problem),
          h('p', null, h('button', { type: 'button', onclick: () => location.reload() }, 'Try again')),
        );
        this.#address = '';
        return;
      }
      if (shown !== this.#shown) return;
      const permitted = found.who === 'writer' ? session.mayWrite() : found.who !== 'admin' || session.isAdmin();
      element = permitted ? found.element : 'ov-not-permitted';
    }
    // Dialogs and messages belong to the page that is left.
    for (const dialog of openDialogs()) dialog.remove();
    for (const toast of this.querySelectorAll('.toast')) toast.remove();
    const draft = signedIn ? this.#drafts.get(location.hash) : undefined;
    this.#address = location.hash;
    if (draft) {
      this.#drafts.delete(location.hash);
      this.#main.replaceChildren(draft);
      draft.heading();
      announce('What you typed is still here.');
      this.#shownPage(focus);
      return;
    }
    const page = /** @type {Page & {reason?: string}} */ (document.createElement(element));
    page.params = (found?.pattern.exec(path) ?? []).slice(1).map((part) => part ?? '');
    page.query = new URLSearchParams(query);
    page.reason = this.#reason;
    this.#main.replaceChildren(page);
    this.#shownPage(focus);
    // An entry of the history that was shown before has a state: the browser went back or forward to it.
    if (history.state?.shown) page.addEventListener('loaded', () => this.#goBack(before), { once: true });
    else history.replaceState({ shown: true }, '');
  }

  /**
   * Shows a page that was shown before as it was left: scrolled to the same place, with the focus on the link that was followed.
   * @param {string} from the address that the browser came from
   */
  #goBack(from) {
    scrollTo(0, this.#positions.get(location.hash) ?? 0);
    const [path] = from.split('?');
    const followed = [...this.#main.querySelectorAll('a')].find((link) => link.getAttribute('href') === path);
    if (followed && document.activeElement?.tagName === 'H1') followed.focus({ preventScroll: true });
  }

  /** @param {boolean} focus */
  #shownPage(focus) {
    this.#safe.delete(location.hash);
    this.#showKept();
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
    return [
      h('p', { class: 'empty' }, 'Your role does not permit this. Ask an admin of your organization.'),
      h('p', { class: 'buttons' }, h('a', { class: 'button', href: `#${HOME}` }, 'Overview')),
    ];
  }
}

customElements.define('ov-not-permitted', NotPermitted);
customElements.define('ov-app', App);
