// Elements made by functions. Text is only ever text: nothing in the console parses markup.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

/**
 * An element. Functions among the attributes are listeners (`onclick`); `true` is an empty attribute; `false`, `null`
 * and `undefined` leave one out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  if (tag === 'code') element.translate = false; // ids and names of fields stay what they are
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * A button that sends no form.
 * @param {string} text
 * @param {() => unknown} act
 * @param {Record<string, any>} [attributes]
 */
export function button(text, act, attributes = {}) {
  return h('button', { type: 'button', ...attributes, onclick: () => void act() }, text);
}

/**
 * A name or an address. Where it is too long for its place, its lines end between its parts.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function parted(text) {
  const parts = text.split(/(?<=[@./_:-])(?=[^@./_:-])/);
  return h(
    'span',
    { class: 'parted' },
    parts.flatMap((part, number) => (number ? [h('wbr'), part] : [part])),
  );
}

/**
 * The present ones of `children`.
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
export function nodes(children) {
  return children.flat().flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    return [child instanceof Node ? child : String(child)];
  });
}

let numbers = 0;

/** An id that no other element has. */
export function freshId() {
  numbers += 1;
  return `ov-${numbers}`;
}

/**
 * Announces `text` to screen readers, without moving the focus.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById('announcements');
  if (region) region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/**
 * Changes the address of the page that is shown, without a new entry of the history.
 * @param {string} hash
 */
export function readdress(hash) {
  if (hash === location.hash) return;
  history.replaceState(history.state, '', hash);
  dispatchEvent(new Event('readdressed'));
}

/**
 * Follows a link within the console.
 * @param {string} hash
 */
export function go(hash) {
  location.hash = hash;
}
