// Light or dark, and single-key shortcuts: as the system has it, or as the user chose. The browser keeps only these choices.

const PLACE = 'orgvault.theme';
/** @typedef {'system' | 'light' | 'dark'} Theme */
/** @type {[Theme, string][]} */
export const THEMES = [
  ['system', 'Match system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

/** The name under which the choice against single-key shortcuts is kept. */
const KEYS = 'orgvault.keys';

/** Whether single keys are shortcuts. */
export function singleKeys() {
  try {
    return localStorage.getItem(KEYS) !== 'off';
  } catch {
    return true;
  }
}

/** @param {boolean} on */
export function chooseKeys(on) {
  try {
    if (on) localStorage.removeItem(KEYS);
    else localStorage.setItem(KEYS, 'off');
  } catch {
    // Nothing can be kept.
  }
}

/** @returns {Theme} */
export function theme() {
  try {
    const kept = localStorage.getItem(PLACE);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

/** @param {string} chosen */
export function chooseTheme(chosen) {
  try {
    if (chosen === 'system') localStorage.removeItem(PLACE);
    else localStorage.setItem(PLACE, chosen);
  } catch {
    // Storage is unavailable: the choice lasts until the page is left.
  }
  show(chosen);
}

/** @param {string} chosen */
function show(chosen) {
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

show(theme());
