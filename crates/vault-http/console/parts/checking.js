// A check of a saved credential with its storage provider: requests it and waits for the result.

import { Problem, call } from './api.js';
import { healthText } from '../rules/health.js';
import { isUnreachable } from '../rules/reasons.js';

/** @typedef {import('./api.js').Version} Version */

/**
 * Checks a credential, and returns the result as a sentence.
 * @param {string} id
 */
export async function checkOne(id) {
  const path = `/organization-vault/${id}`;
  const found = async () => /** @type {Version[]} */ ((await call('GET', `${path}/versions`)).body);
  const before = await found();
  const number = (before.find(({ state }) => state === 'staged') ?? before[0])?.version;
  const health = (/** @type {Version[]} */ versions) => versions.find(({ version }) => version === number)?.health;
  await call('POST', `${path}/check`, { body: { version: number } });
  for (let poll = 0; poll < POLLS; poll += 1) {
    await new Promise((resolve) => {
      setTimeout(resolve, POLL);
    });
    const now = health(await found());
    if (now && now.checked_at !== health(before)?.checked_at) return healthText(now);
  }
  return 'No result yet. The list shows it later.';
}

/** How often and how many times a requested check is looked for, in milliseconds. */
const POLL = 1000;
const POLLS = 30;

/**
 * Checks a version and shows the result on the page.
 * @param {import('./parts.js').Page} page
 * @param {string} id
 * @param {number} [version] the staged one, else the current one
 * @returns {Promise<boolean>} whether the storage provider accepts it
 */
export async function check(page, id, version) {
  const path = `/organization-vault/${id}`;
  try {
    const { body: before } = await call('GET', `${path}/versions`);
    const number =
      version ?? before.find((/** @type {Version} */ { state }) => state === 'staged')?.version ?? before[0].version;
    const checkedAt = (/** @type {Version[]} */ versions) =>
      versions.find((one) => one.version === number)?.health?.checked_at;
    await call('POST', `${path}/check`, { body: { version: number } });
    page.say(`Checking version ${number} with its storage provider…`, '');
    for (let poll = 0; poll < POLLS && page.isConnected; poll += 1) {
      await new Promise((resolve) => {
        setTimeout(resolve, POLL);
      });
      const { body: versions } = await call('GET', `${path}/versions`);
      if (checkedAt(versions) !== checkedAt(before)) {
        const health = versions.find((/** @type {Version} */ one) => one.version === number).health;
        const good = health.state === 'healthy';
        page.say(`Version ${number}: ${healthText(health)}`, good ? 'good' : isUnreachable(health) ? 'warn' : 'bad');
        await page.refresh();
        return good;
      }
    }
    page.say('No result yet. Reload this page later: the version then shows it.', 'warn');
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    page.say(
      error.code === 'no-checker'
        ? 'Checks need an activation listener, and none is running. Ask the operator.'
        : error.detail,
      'bad',
    );
  }
  return false;
}
