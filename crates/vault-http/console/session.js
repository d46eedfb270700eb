// The session: its token is in this module's memory and nowhere else, so closing or reloading the page ends it here.

/** @typedef {import('./api.js').OwnAccount} OwnAccount */
/** @type {{token: string, endsAt: number, account: OwnAccount} | null} */
let current = null;

/** Dispatches `begun`, `extended`, and `ended` with the reason for people in `detail`. */
export const events = new EventTarget();

/**
 * @param {string} token
 * @param {number} seconds how long it is valid
 * @param {OwnAccount} account
 */
export function begin(token, seconds, account) {
  const event = current ? 'extended' : 'begun';
  current = { token, endsAt: Date.now() + seconds * 1000, account };
  events.dispatchEvent(new Event(event));
}

/**
 * Forgets the token.
 * @param {string} reason
 */
export function end(reason) {
  if (!current) return;
  current = null;
  events.dispatchEvent(new CustomEvent('ended', { detail: reason }));
}

/** The token, if somebody is signed in. */
export function token() {
  return current?.token;
}

/** Milliseconds until the session ends; 0 without one. */
export function timeLeft() {
  return current ? Math.max(0, current.endsAt - Date.now()) : 0;
}

/** When the session ends, by this machine's clock. */
export function endsAt() {
  return new Date(current?.endsAt ?? 0);
}

/** Whose session it is. */
export function account() {
  if (!current) throw new Error('nobody is signed in');
  return current.account;
}

/** @param {OwnAccount} account */
export function update(account) {
  if (current) current.account = account;
}

/** Whether the account may save, change and delete credentials. */
export function mayWrite() {
  return current?.account.role === 'admin' || current?.account.role === 'editor';
}

/** Whether the account may manage the organization. */
export function isAdmin() {
  return current?.account.role === 'admin';
}
