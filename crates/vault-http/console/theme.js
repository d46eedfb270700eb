// Light or dark: as the system has it, or as somebody chose. The choice is all that the console keeps in the browser.

const PLACE = 'orgvault.theme';
/** @typedef {'system' | 'light' | 'dark'} Theme */
/** @type {[Theme, string][]} */
export const THEMES = [['system', 'Match system'], ['light', 'Light'], ['dark', 'Dark']];

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
    // Nothing can be kept: the choice holds until the page is left.
  }
  show(chosen);
}

/** @param {string} chosen */
function show(chosen) {
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

show(theme());
