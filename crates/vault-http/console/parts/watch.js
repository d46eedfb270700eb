// Rotations that wait for jobs: the console reports when no job can use the old key any more, whichever page is shown.

import { call } from './api.js';
import { go } from './dom.js';
import * as session from './session.js';
import { waiting as waitingJobs } from '../rules/holders.js';

/** How often the holders of a credential are read, in milliseconds. */
const EVERY = 30_000;

/** Credentials whose rotations wait: their namespaces and new versions, by ID. @type {Map<string, {namespace: string, version: number}>} */
const waiting = new Map();
/** The timer of the next poll, or 0. */
let timer = 0;

/**
 * Starts to watch the rotation of a credential. Dispatches `rotation-safe` to the window when the old key can be disabled.
 * @param {import('./api.js').Credential} credential
 */
export function watch({ id, namespace, version }) {
  waiting.set(id, { namespace, version });
  timer ||= setTimeout(() => void poll(), EVERY);
}

/**
 * Stops it, because its page shows the state or the rotation has ended.
 * @param {string} id
 */
export function unwatch(id) {
  waiting.delete(id);
}

session.events.addEventListener('ended', () => {
  if (!session.wasInterrupted()) waiting.clear();
});

async function poll() {
  // A session that was interrupted may be resumed.
  if (session.token())
    await Promise.all([...waiting].map(([id, { namespace, version }]) => look(id, namespace, version).catch(() => {})));
  timer = waiting.size ? setTimeout(() => void poll(), EVERY) : 0;
}

/**
 * @param {string} id
 * @param {string} namespace
 * @param {number} version
 */
async function look(id, namespace, version) {
  const path = `/organization-vault/${id}`;
  const [{ body: credential }, { body: holders }] = await Promise.all([
    call('GET', path),
    call('GET', `${path}/holders`),
  ]);
  if (!waiting.has(id)) return;
  // Rolled back, or finished by another user.
  if (credential.version !== version || !credential.previous_version) waiting.delete(id);
  else if (!waitingJobs(holders).length) {
    waiting.delete(id);
    const address = `#/credentials/${id}/rotate`;
    dispatchEvent(new CustomEvent('rotation-safe', { detail: { address, namespace } }));
    if (!mayNotify()) return;
    const shown = new Notification('OrgVault', {
      body: `${namespace}: no job can use the old key any more. You can disable it.`,
      tag: id,
    });
    shown.addEventListener('click', () => {
      focus();
      go(address);
    });
  }
}

/** Whether the browser shows notifications of the console. */
export function mayNotify() {
  return 'Notification' in globalThis && Notification.permission === 'granted';
}

/** Whether the user can still decide about notifications. */
export function canRequest() {
  return 'Notification' in globalThis && Notification.permission === 'default';
}
