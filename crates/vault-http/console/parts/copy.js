// Texts to copy.

import { announce, h } from './dom.js';

/** How long a button shows that it copied, in milliseconds. */
const COPIED = 2000;

/**
 * A button that copies a text.
 * @param {string} text
 * @param {string} what it is
 * @param {string} [name] label of the button
 */
export function copyButton(text, what, name = 'Copy') {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'quiet copy',
      'aria-label': `Copy ${what}`,
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(text);
          button.textContent = name === 'Copy' ? 'Copied' : '✓';
          announce(`Copied ${what}.`);
          setTimeout(() => {
            button.textContent = name;
          }, COPIED);
        } catch {
          button.textContent = 'Select and copy it';
          announce(`The browser does not permit copying. Select ${what} and copy it.`);
        }
      },
    },
    name,
  );
  return button;
}

/**
 * Something that is shown once, to be copied.
 * @param {string} text
 * @param {string} what
 */
export function secretBox(text, what) {
  return h('div', { class: 'secret' }, h('code', null, text), copyButton(text, what));
}
