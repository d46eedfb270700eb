// What pages are made of.

import { isUnreachable, reasonText } from '../rules/reasons.js';
import { Problem } from './api.js';
import { announce, freshId, h, nodes, readdress } from './dom.js';
import { field, form } from './forms.js';
import { deadline, relative, until } from '../rules/times.js';

/** @typedef {import('./dom.js').Child} Child */

/** What the next page shows first. @type {[string, string] | null} */
let pending = null;

/** The bars that stand for a page while it is loaded. */
const SKELETON = 6;
/** How long a toast is shown, in milliseconds. It stays longer while it has the focus or the pointer. */
const TOAST = 8000;

/**
 * Shows a result above the page, without moving its content.
 * @param {string} text
 * @param {(() => Promise<void>) | null} [undo]
 */
function toast(text, undo = null) {
  const close = () => {
    if (box.matches(':hover, :focus-within')) setTimeout(close, TOAST);
    else box.remove();
  };
  const box = h(
    'div',
    { class: 'toast' },
    h('p', null, text),
    undo &&
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          onclick: () => {
            box.remove();
            void undo();
          },
        },
        'Undo',
      ),
    h('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', onclick: () => box.remove() }, '✕'),
  );
  for (const old of document.querySelectorAll('.toast')) old.remove();
  (document.querySelector('ov-app') ?? document.body).append(box);
  setTimeout(close, TOAST);
}

/**
 * Has the next page show a message.
 * @param {string} text
 * @param {string} [kind] as of a note
 */
export function flash(text, kind = 'good') {
  pending = [text, kind];
}

/**
 * A page: a heading, actions, and a body that is loaded. Derived elements define its content.
 */
export class Page extends HTMLElement {
  /** What stood in the address in place of ids. @type {string[]} */
  params = [];
  query = new URLSearchParams();
  /** Whether something was typed that is sent nowhere yet. */
  typed = false;
  #crumbs = h('nav', { class: 'crumbs', 'aria-label': 'Path', hidden: true });
  #heading = h('h1', { tabindex: '-1' });
  #actions = h('div', { class: 'actions' });
  #said = h('div', { class: 'said' });
  #body = h('div', { class: 'page-body' });
  #loads = 0;

  connectedCallback() {
    if (this.#heading.isConnected) return;
    this.append(
      this.#crumbs,
      h('header', { class: 'page-head' }, this.#heading, this.#actions),
      this.#said,
      this.#body,
    );
    if (pending) this.say(...pending);
    pending = null;
    watchTyping(this);
    this.heading(this.label());
    void this.refresh();
  }

  /** The heading until the page is loaded. */
  label() {
    return 'OrgVault';
  }

  /** Loads the page's content. @returns {Promise<Child[]>} */
  async content() {
    return [];
  }

  /** @param {string} [text] */
  heading(text = this.#heading.textContent ?? '') {
    this.#heading.textContent = text;
    document.title = `${text} · OrgVault`;
  }

  /**
   * The way to the page, above its heading.
   * @param {...Child} children
   */
  crumbs(...children) {
    this.#crumbs.replaceChildren(...nodes(children));
    this.#crumbs.hidden = false;
  }

  /** @param {...(Child | Child[])} children */
  actions(...children) {
    this.#actions.replaceChildren(...nodes(children));
  }

  /**
   * Shows a result or progress, which replaces the previous message.
   * @param {string} text
   * @param {string} [kind] `good`, `warn`, `bad` or empty
   * @param {(() => Promise<void>) | null} [undo]
   */
  say(text, kind = 'good', undo = null) {
    this.#said.replaceChildren(...(kind === 'good' ? [] : [h('p', { class: `note ${kind}` }, text)]));
    if (kind === 'good') toast(text, undo);
    announce(text);
  }

  /**
   * Shows a result and reloads the page.
   * @param {string} text
   * @param {(() => Promise<void>) | null} [undo]
   */
  async done(text, undo = null) {
    this.say(text, 'good', undo);
    await this.refresh();
  }

  /** Reloads the page. The last request is shown, and the focus is kept. */
  async refresh() {
    this.#loads += 1;
    const load = this.#loads;
    this.#body.setAttribute('aria-busy', 'true');
    if (!this.#body.hasChildNodes())
      this.#body.append(
        h(
          'div',
          { class: 'skeleton' },
          h('p', { class: 'hidden' }, 'Loading…'),
          Array.from({ length: SKELETON }, () => h('span')),
        ),
      );
    const focused =
      document.activeElement instanceof HTMLElement && this.contains(document.activeElement)
        ? document.activeElement
        : null;
    try {
      const content = await this.content();
      if (load === this.#loads) {
        this.#body.replaceChildren(...nodes(content));
        this.dispatchEvent(new Event('loaded'));
        if (focused && !focused.isConnected && (!document.activeElement || document.activeElement === document.body))
          (this.#like(focused) ?? this.#heading).focus({ preventScroll: true });
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (load === this.#loads) this.#body.replaceChildren(problemNote(error, error.errors), this.#retry());
    } finally {
      if (load === this.#loads) this.#body.removeAttribute('aria-busy');
    }
  }

  /**
   * The control that took the place of another one.
   * @param {HTMLElement} before
   */
  #like(before) {
    const name = (/** @type {HTMLElement} */ one) =>
      `${one.tagName} ${one.getAttribute('aria-label') ?? one.getAttribute('name') ?? one.textContent}`;
    return (
      /** @type {HTMLElement[]} */ ([...this.querySelectorAll('button, a, input, select')]).find(
        (one) => name(one) === name(before),
      ) ?? null
    );
  }

  /**
   * A parameter of the address that opens something, which is then removed from it, so that it is opened once.
   * @param {string} name
   */
  once(name) {
    const value = this.query.get(name) ?? '';
    this.query.delete(name);
    if (value) readdress([location.hash.split('?')[0], this.query].filter(String).join('?'));
    return value;
  }

  /** What the page is called. */
  get name() {
    return this.#heading.textContent ?? '';
  }

  /** Ways to continue: again, or without the filters of the address, which may be the cause. */
  #retry() {
    const [place] = location.hash.split('?');
    return h(
      'p',
      { class: 'buttons' },
      h('button', { type: 'button', onclick: () => void this.refresh() }, 'Try again'),
      [...this.query.keys()].length > 0 && h('a', { class: 'button', href: place }, 'Show all without filters'),
    );
  }
}

/**
 * Records in `typed` whether `element` contains unsent typed text. Filters are ignored.
 * @param {HTMLElement & {typed?: boolean}} element
 */
function watchTyping(element) {
  element.addEventListener('input', (event) => {
    const control = /** @type {HTMLElement} */ (event.target);
    if (control.closest('form') && !control.closest('[role="search"]')) element.typed = true;
  });
  element.addEventListener('keydown', (event) => {
    // A half-typed date is no input to the browser.
    if (/** @type {HTMLElement} */ (event.target).matches('[type="date"], [type="time"]') && /^\d$/.test(event.key))
      element.typed = true;
  });
  element.addEventListener('sent', () => {
    element.typed = false;
  });
  element.addEventListener('click', (event) => {
    if (/** @type {HTMLElement} */ (event.target).closest('[data-discard]')) element.typed = false;
  });
}

/** What some problems are called where the interface's own title is for programs. @type {Record<string, string>} */
const TITLES = {
  'precondition-failed': 'Changed in the meantime',
  'malformed-request': 'The server does not understand this',
  'refused-value': 'Something is not accepted',
  'not-found': 'This does not exist',
};

/** Problems whose explanation replaces the detail. */
const EXPLAINED = new Set(['precondition-failed', 'invalid-enrolment']);

/**
 * What went wrong, and what to do.
 * @param {Problem} problem
 * @param {import('./api.js').FieldError[]} [errors] those without a field
 * @param {string | Node | null} [more]
 */
export function problemNote(problem, errors = [], more = null) {
  return h(
    'div',
    { class: 'note bad', role: 'alert', tabindex: '-1' },
    h(
      'p',
      null,
      h('strong', null, `${titleOf(problem)}.`),
      ' ',
      problem.checks || errors.length || (more && EXPLAINED.has(problem.code)) ? null : problem.detail,
    ),
    errors.length > 0 &&
      h(
        'ul',
        null,
        errors.map(({ pointer, detail }) => h('li', null, h('code', null, pointer.slice(1)), ` ${detail}`)),
      ),
    problem.checks && checkReport(problem.checks),
    more && h('p', null, more),
    problem.requestId &&
      problem.status >= 500 &&
      h('p', { class: 'hint' }, `For the operator: request ${problem.requestId}`),
  );
}

/**
 * What a problem is called. A check that did not get through says nothing about the key.
 * @param {Problem} problem
 */
function titleOf({ code, title, checks = [] }) {
  const failed = checks.filter(({ result }) => result === 'failed');
  if (!failed.length) return TITLES[code] ?? title;
  return failed.every(isUnreachable) ? 'It could not be checked' : 'The storage provider does not accept this';
}

/** The checks in words. @type {Record<string, string>} */
const CHECKS = { authenticate: 'sign-in at the storage provider', trust: 'trust of the provider' };

/** @param {import('./api.js').Check[]} checks */
function checkReport(checks) {
  return h(
    'ul',
    { class: 'checks' },
    checks.map(({ check, result, bucket, reason, remedy }) =>
      h(
        'li',
        null,
        badge(result, { passed: 'good', failed: 'bad', warning: 'warn', skipped: 'plain' }[result]),
        h(
          'span',
          null,
          h('strong', null, CHECKS[check] ?? check),
          reason && `: ${reasonText(reason)}`,
          bucket && ` (bucket ${bucket})`,
          remedy && h('span', { class: 'hint block' }, remedy),
        ),
      ),
    ),
  );
}

/**
 * @param {string} text
 * @param {string} [kind] `good`, `warn`, `bad` or `plain`
 */
export function badge(text, kind = 'plain') {
  return h('span', { class: `badge ${kind}` }, text);
}

const TIMES = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const SECONDS = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const SECONDS_OF_DAY = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const HEADINGS = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });
const DAYS = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
/** What the pointer shows of every time. */
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** Texts that depend on the present time, by their names in `data-live`. */
const LIVE = { relative, deadline, until };

/**
 * A text that depends on the present time, and changes with it.
 * @param {keyof typeof LIVE} kind
 * @param {string} text the time
 * @param {string} [style]
 */
export function live(kind, text, style) {
  return h('span', { class: style, 'data-live': kind, 'data-at': text }, LIVE[kind](text));
}

/** Brings all texts of the page that depend on the present time up to date. */
export function tick() {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-live]'))) {
    const { live: kind, at = '' } = element.dataset;
    const text = LIVE[/** @type {keyof typeof LIVE} */ (kind)](at);
    if (element.textContent !== text) element.textContent = text;
  }
}

/**
 * @param {string} text
 * @param {Intl.DateTimeFormat} format
 * @param {boolean} [distance] whether its distance from now follows
 */
function stamp(text, format, distance = true) {
  const at = new Date(text);
  return h(
    'time',
    { datetime: text, title: WHOLE.format(at) },
    format.format(at),
    distance && [' ', live('relative', text, 'ago')],
  );
}

/** @param {string} text */
const missing = (text) => h('span', { class: 'muted' }, text);

/**
 * A time in this machine's zone, with how long ago that is.
 * @param {string | undefined} text
 * @param {string} [absent]
 */
export function time(text, absent = 'never') {
  return text ? stamp(text, TIMES) : missing(absent);
}

/**
 * A time to the second.
 * @param {string} text
 */
export function exactTime(text) {
  return stamp(text, SECONDS);
}

/**
 * The time of day, to the second.
 * @param {string} text
 */
export function timeOfDay(text) {
  return stamp(text, SECONDS_OF_DAY, false);
}

/**
 * The day of a time as a heading.
 * @param {string} text
 */
export function dayHeading(text) {
  const at = new Date(text);
  return `${at.toDateString() === new Date().toDateString() ? 'Today, ' : ''}${HEADINGS.format(at)}`;
}

/**
 * The day of a time, where there is no room for more.
 * @param {string | undefined} text
 * @param {string} absent
 */
export function day(text, absent) {
  return text ? stamp(text, DAYS, false) : missing(absent);
}

/** @param {Date} date */
export function clock(date) {
  if (date.toDateString() !== new Date().toDateString()) return TIMES.format(date);
  return new Intl.DateTimeFormat(undefined, { timeStyle: 'short' }).format(date);
}

/** @param {number} milliseconds */
export function duration(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds < 600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * A button that opens a menu of further actions.
 * @param {string} name of what they act on
 * @param {Child[]} items buttons
 * @param {[import('./dom.js').Attributes, Child]} [opened] the attributes and the content of the button
 */
export function menu(name, items, opened = [{ 'aria-label': `More actions for ${name}` }, '⋯']) {
  const id = freshId();
  const [attributes, text] = opened;
  const opener = h('button', { type: 'button', class: 'quiet', ...attributes, popovertarget: id }, text);
  // Above everything, so that no table cuts it off. It follows its button if the page scrolls.
  const place = () => {
    if (!opener.isConnected) removeEventListener('scroll', place);
    const { bottom, top, right } = opener.getBoundingClientRect();
    const below = bottom < innerHeight / 2;
    box.style.top = below ? `${bottom + 4}px` : 'auto';
    box.style.bottom = below ? 'auto' : `${innerHeight - top + 4}px`;
    box.style.right = `${document.documentElement.clientWidth - right}px`;
  };
  const box = h(
    'div',
    {
      id,
      class: 'menu',
      popover: 'auto',
      onbeforetoggle: place,
      ontoggle: (/** @type {ToggleEvent} */ event) => {
        if (event.newState === 'open') addEventListener('scroll', place, { passive: true });
        else removeEventListener('scroll', place);
      },
    },
    ...items,
  );
  // Closed before the action, so that the focus comes back to the button and not to a hidden item.
  box.addEventListener('click', () => box.hidePopover(), true);
  return [opener, box];
}

/**
 * Opens a dialog, which Escape closes; where something was typed, the second Escape. It is gone once it is closed.
 * @param {string} heading
 * @param {(close: () => void, once: () => void) => Child[]} content `once` states that from now on it shows one-time secrets, so that only its own button closes it
 * @param {boolean} [shownOnce] the same from the beginning
 * @param {string} [style] its class, without which it may be hidden, and a hidden dialog gets no focus
 */
export function openDialog(heading, content, shownOnce = false, style = '') {
  const id = freshId();
  const close = () => dialog.close();
  const opener = document.activeElement;
  let once = shownOnce;
  const warning = h('p', { class: 'note warn', role: 'status', hidden: true });
  /** @type {HTMLDialogElement & {typed?: boolean}} */
  const dialog = h(
    'dialog',
    {
      class: style || null,
      'aria-labelledby': id,
      closedby: 'none',
      onclose: () => {
        dialog.remove();
        // What opened it may be gone with what the dialog did.
        if (opener instanceof HTMLElement && opener.isConnected) return;
        const again = opener instanceof HTMLElement && opener.getAttribute('aria-label');
        const same = again
          ? [...document.querySelectorAll('button')].find((button) => button.getAttribute('aria-label') === again)
          : null;
        if (!document.activeElement || document.activeElement === document.body)
          (same ?? document.querySelector('h1'))?.focus({ preventScroll: true });
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== 'Escape' || event.defaultPrevented) return;
        event.preventDefault();
        if (once) announce('This is shown once. Keep it, then use the button that closes it.');
        else if (dialog.typed) {
          dialog.typed = false;
          warning.hidden = false;
          warning.textContent = 'You have typed something here. Press Escape again to discard it.';
        } else close();
      },
    },
    h('h2', { id }, heading),
    warning,
  );
  watchTyping(dialog);
  dialog.addEventListener('input', () => {
    warning.hidden = true;
  });
  dialog.append(
    ...nodes(
      content(close, () => {
        once = true;
      }),
    ),
  );
  (document.querySelector('ov-app') ?? document.body).append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * A part of a page that is loaded after the page is shown.
 * @param {() => Promise<(Child | Child[])[]>} load
 * @param {string} [waiting] shown until then
 * @param {'div' | 'span'} [tag]
 */
export function later(load, waiting = 'Loading…', tag = 'div') {
  const box = h(
    tag,
    { class: tag === 'div' ? 'page-body' : null, hidden: !waiting },
    h('span', { class: 'muted' }, waiting),
  );
  const show = (/** @type {(Child | Child[])[]} */ content) => {
    box.replaceChildren(...nodes(content));
    box.hidden = !box.hasChildNodes();
  };
  load().then(show, (error) => {
    if (!(error instanceof Problem)) throw error;
    show([problemNote(error, error.errors)]);
  });
  return box;
}

/** The dialogs that are open. */
export function openDialogs() {
  return /** @type {(HTMLDialogElement & {typed?: boolean})[]} */ ([...document.querySelectorAll('dialog[open]')]);
}

/**
 * Asks before `act` is done.
 * @param {{heading: string, text: Child[], submit: string, busy: string, danger?: boolean, typed?: string, act: () => Promise<void>}} options
 *   `typed`: what has to be typed first
 */
export function confirm({ heading, text, submit, busy, danger = true, typed = '', act }) {
  const name = typed
    ? field({
        label: `Type ${typed} to confirm`,
        mono: true,
        parse: (text) => {
          if (text.trim() !== typed) throw `Type ${typed}.`;
          return text;
        },
      })
    : null;
  name?.row.querySelector('.optional')?.remove();
  openDialog(heading, (close) => [
    form({
      fields: () => (name ? [name] : []),
      content: [
        ...text.filter(Boolean).map((part) => (part instanceof HTMLElement ? part : h('p', null, part))),
        name?.row,
      ],
      submit,
      busy,
      danger,
      send: async () => {
        await act();
        close();
      },
      buttons: [h('button', { type: 'button', autofocus: true, onclick: close }, 'Cancel')],
    }),
  ]);
}
