// A job is connected to a credential: an integration is selected or created, and its lines are shown until the first run.

import { call } from './api.js';
import { announce, button, h } from './dom.js';
import { field, form } from './forms.js';
import { replaceToken } from './integration-actions.js';
import { jobLines } from './jobs.js';
import { clock, live, openDialog } from './parts.js';
import { secretBox } from './copy.js';
import * as session from './session.js';

/**
 * @typedef {import('./api.js').Integration} Integration
 * @typedef {import('./api.js').Credential} Credential
 */

/** How often a run is looked for, in milliseconds. */
const POLL = 5000;
/** The choice of a new integration. */
const NEW = 'new';

/**
 * @param {Credential} credential
 * @param {Integration[]} permitted the integrations that can use it
 */
export function connectJob({ id, namespace }, permitted) {
  const usable = permitted.filter(({ state }) => state === 'active');
  const status = h('p', { class: 'hint', role: 'status' });
  const dialog = openDialog(`Connect a job to ${namespace}`, (close, once) => [
    h(
      'div',
      { class: 'page-body' },
      ...(session.isAdmin()
        ? choice(namespace, usable, once)
        : [
            h('p', { class: 'note' }, 'An admin creates an integration for the job and gives you its token.'),
            jobLines({ id: 'INTEGRATION_ID', name: namespace, namespaces: [namespace] }, namespace),
          ]),
      status,
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')),
    ),
  ]);
  dialog.classList.add('sheet');
  void awaitRun(id, dialog, status, Date.now());
}

/**
 * The choice of an integration that can use the namespace, or of a new one, with the lines for its job.
 * @param {string} namespace
 * @param {Integration[]} usable
 * @param {() => void} once called when a token is shown, which is shown only once
 */
function choice(namespace, usable, once) {
  const box = h('div', { class: 'page-body' });
  const job = field({
    label: 'Job',
    options: [
      ...usable.map(({ id, name }) => /** @type {[string, string]} */ ([id, `${name}: can use it already`])),
      [NEW, 'New job'],
    ],
  });
  const creation = newJob(namespace, (made) => {
    once();
    job.row.remove();
    box.replaceChildren(
      h('p', null, 'Give the token to the owner of the job over a channel that you trust. It is shown only once.'),
      secretBox(made.token, 'the token'),
      jobLines(made, namespace),
    );
  });
  const choose = () => {
    const found = usable.find(({ id }) => id === job.control.value);
    if (found) box.replaceChildren(knownToken(found), jobLines(found, namespace));
    else {
      box.replaceChildren(creation);
      creation.querySelector('input')?.focus();
    }
  };
  job.control.addEventListener('input', choose);
  job.row.hidden = usable.length === 0;
  choose();
  return [job.row, box];
}

/**
 * Where the token of an existing integration is.
 * @param {Integration} integration
 */
function knownToken(integration) {
  return h(
    'p',
    { class: 'note' },
    `The token of ${integration.name} was shown once, when it was created. Its jobs have it. If it is lost: `,
    button('Replace the token', () => replaceToken(integration, () => {}), { class: 'quiet' }),
  );
}

/**
 * @param {string} namespace
 * @param {(made: import('./jobs.js').Job & {token: string}) => void} done
 */
function newJob(namespace, done) {
  const name = field({
    label: 'Name',
    pointer: '/name',
    required: true,
    placeholder: 'nightly import',
    maxlength: 64,
    hint: `A new integration that can use only ${namespace}.`,
  });
  return form({
    fields: () => [name],
    content: [name.row],
    submit: 'Create and show the token',
    busy: 'Creating…',
    send: async () => {
      const { body } = await call('POST', '/integrations', { body: { name: name.read(), namespaces: [namespace] } });
      done(body);
    },
  });
}

/**
 * Waits for a run of any job, while the dialog is open.
 * @param {string} id of the credential
 * @param {HTMLDialogElement} dialog
 * @param {HTMLElement} status
 * @param {number} started
 */
async function awaitRun(id, dialog, status, started) {
  if (!dialog.open) return;
  try {
    const { body } = await call('GET', `/organization-vault/${id}/activations?limit=1`);
    /** @type {import('./api.js').Use | undefined} */
    const use = body[0];
    if (use && Date.parse(use.at) >= started - 1000) {
      status.className = 'note good';
      status.textContent = `✓ ${clock(new Date(use.at))} ${use.integration} used it.`;
      announce(status.textContent);
      return;
    }
    status.replaceChildren(
      ...(use ? ['Last run ', live('relative', use.at), '. Waiting for the next…'] : ['Waiting for the first run…']),
    );
  } catch {
    // The next attempt may succeed.
  }
  setTimeout(() => void awaitRun(id, dialog, status, started), POLL);
}
