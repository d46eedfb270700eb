// What may be a key.

/**
 * Whether a text may be a key ID, the end of one, a fingerprint, or a whole key: one word of at least four characters that no
 * name contains.
 * @param {string} text
 */
export function isKey(text) {
  return /^[\w+/=.~@-]{4,}$/.test(text) && (/\d/.test(text) || /^[A-Z+/=_-]+$/.test(text) || text.length > 24);
}
