// A check of a saved credential at its storage provider, asked for and waited for.

import { Problem, call } from './api.js';
import { REMEDIES } from './remedies.js';

/** @typedef {import('./api.js').Version} Version */

/** How often and how many times a requested check is looked for, in milliseconds. */
const POLL = 1000;
const POLLS = 30;

/**
 * Checks a version and says on the page what came of it.
 * @param {import('./parts.js').Page} page
 * @param {string} id
 * @param {number} [version] the staged one, else the current one
 * @returns {Promise<boolean>} whether the storage provider accepts it
 */
export async function check(page, id, version) {
  const path = `/organization-vault/${id}`;
  try {
    const { body: before } = await call('GET', `${path}/versions`);
    const number = version ?? before.find((/** @type {Version} */ { state }) => state === 'staged')?.version ?? before[0].version;
    const checkedAt = (/** @type {Version[]} */ versions) => versions.find((one) => one.version === number)?.health?.checked_at;
    await call('POST', `${path}/check`, { body: { version: number } });
    page.say(`Checking version ${number} with its storage provider…`, '');
    for (let poll = 0; poll < POLLS && page.isConnected; poll += 1) {
      await new Promise((resolve) => { setTimeout(resolve, POLL); });
      const { body: versions } = await call('GET', `${path}/versions`);
      if (checkedAt(versions) !== checkedAt(before)) {
        const health = versions.find((/** @type {Version} */ one) => one.version === number).health;
        const good = health.state === 'healthy';
        page.say(good ? `Version ${number}: the storage provider accepts it.` : `Version ${number} fails (${health.reason ?? 'no reason given'}). ${REMEDIES[health.reason] ?? 'The storage provider does not accept it.'}`, good ? 'good' : 'bad');
        await page.refresh();
        return good;
      }
    }
    page.say('No result yet. Reload this page later: the result appears beside the version.', 'warn');
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    page.say(error.status === 400 ? 'This server does not check credentials on request. Ask the operator to start it with --recheck-every or --verify-on-save.'
      : error.code === 'no-checker' ? 'Checks need an activation listener, and none is running. Ask the operator.' : error.detail, 'bad');
  }
  return false;
}
