// The session. Its token is in this module's memory. While the page is reloaded, and only then, it is in the tab's own
// storage: the page that is left puts it there, and the next page takes it out. Open tabs of the console share it.

/** @typedef {import('./api.js').OwnAccount} OwnAccount */
/** @typedef {{token: string, endsAt: number}} Kept */

/** The name under which a page that is reloaded leaves its session. */
const PLACE = 'orgvault.reload';
/** Connects the open tabs of the console. The browser delivers its messages only to pages of the same origin. */
const tabs = new BroadcastChannel('orgvault.session');
/** Maximum time for a response of another tab, in milliseconds. */
const ANSWER = 150;

/** How long a reload may take, in milliseconds. Older state is from a closed tab. */
const RELOAD = 60_000;

/** @type {{token: string, endsAt: number, account: OwnAccount} | null} */
let current = null;

/**
 * Dispatches `started`; `resumed`, if it is the account whose session ended before; `extended`; and `ended` with the reason
 * for people in `detail`.
 */
export const events = new EventTarget();

/** The account of an expired session, which can be resumed in place. @type {OwnAccount | null} */
let interrupted = null;

/**
 * @param {string} token
 * @param {number} seconds how long it is valid
 * @param {OwnAccount} account
 */
export function begin(token, seconds, account) {
  adopt(token, Date.now() + seconds * 1000, account);
  share();
}

/** Sends the session to the other tabs. */
function share() {
  tabs.postMessage({ session: current });
}

/**
 * @param {string} token
 * @param {number} endsAt
 * @param {OwnAccount} account
 */
function adopt(token, endsAt, account) {
  const event = current ? 'extended' : interrupted?.id === account.id ? 'resumed' : 'started';
  current = { token, endsAt, account };
  interrupted = null;
  events.dispatchEvent(new Event(event));
}

tabs.addEventListener('message', ({ data }) => {
  if (data.wanted && current) share();
  const mine = (current?.account ?? interrupted)?.id;
  // A tab never changes to another account. A tab without a session requests it when it is opened.
  if (data.session && mine === data.session.account.id && data.session.token !== current?.token)
    adopt(data.session.token, data.session.endsAt, data.session.account);
  if (data.ended && current?.token === data.ended) finish('You signed out in another tab.', false);
});

/**
 * Requests the session of another tab.
 * @returns {Promise<Kept | null>}
 */
export function requestShared() {
  return new Promise((resolve) => {
    const answered = (/** @type {MessageEvent} */ { data }) => {
      if (data.session) done(data.session);
    };
    const done = (/** @type {Kept | null} */ found) => {
      tabs.removeEventListener('message', answered);
      resolve(found);
    };
    tabs.addEventListener('message', answered);
    tabs.postMessage({ wanted: true });
    setTimeout(() => done(null), ANSWER);
  });
}

/**
 * Forgets the token.
 * @param {string} reason
 * @param {boolean} [expired] whether it expired
 */
export function end(reason, expired = false) {
  if (!expired && current) tabs.postMessage({ ended: current.token });
  finish(reason, expired);
}

/**
 * @param {string} reason
 * @param {boolean} expired
 */
function finish(reason, expired) {
  if (!current && (expired || !interrupted)) return;
  interrupted = expired ? (current?.account ?? null) : null;
  current = null;
  events.dispatchEvent(new CustomEvent('ended', { detail: reason }));
}

/** The account of an expired session. */
export function wasInterrupted() {
  return interrupted;
}

/** Leaves the session to the page that comes after this one in the same tab. */
export function leave() {
  if (!current) return;
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ token: current.token, endsAt: current.endsAt, left: Date.now() }));
  } catch {
    // The browser stores nothing for this page: a reload signs out.
  }
}

/**
 * Takes over what the page before left in this tab, if that was just now.
 * @returns {Kept | null}
 */
export function takeOver() {
  try {
    const text = sessionStorage.getItem(PLACE);
    sessionStorage.removeItem(PLACE);
    const { token, endsAt, left } = JSON.parse(text ?? '{}');
    const now = Date.now();
    return typeof token === 'string' && endsAt > now && left <= now && now - left < RELOAD ? { token, endsAt } : null;
  } catch {
    return null;
  }
}

/** The token, if a user is signed in. */
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

/** The account of the current or expired session. */
export function account() {
  const account = current?.account ?? interrupted;
  if (!account) throw new Error('no user is signed in');
  return account;
}

/** @param {OwnAccount} account */
export function update(account) {
  if (!current) return;
  current.account = account;
  events.dispatchEvent(new Event('updated'));
}

/** Whether the account may save, change and delete credentials. */
export function mayWrite() {
  const role = (current?.account ?? interrupted)?.role;
  return role === 'admin' || role === 'editor';
}

/** Whether the account may manage the organization. */
export function isAdmin() {
  return (current?.account ?? interrupted)?.role === 'admin';
}

/** What the server is set up for. */
export function server() {
  return (current?.account ?? interrupted)?.server ?? { verify: true, mail: false };
}
