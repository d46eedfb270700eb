// A job is connected to a credential: an integration is selected or created, and its lines are shown until the first run.

import { call } from './api.js';
import { announce, h } from './dom.js';
import { field, form } from './forms.js';
import { jobLines } from './jobs.js';
import { clock, openDialog } from './parts.js';
import { secretBox } from './copy.js';
import * as session from './session.js';

/** @typedef {import('./api.js').Integration} Integration */

/** How often a first run is looked for, in milliseconds. */
const POLL = 5000;
/** The choice of a new integration. */
const NEW = 'new';

/**
 * @param {import('./api.js').Credential} credential
 * @param {Integration[]} permitted the integrations that can use it
 */
export function connectJob({ id, namespace }, permitted) {
  const box = h('div', { class: 'page-body' });
  const status = h('p', { class: 'hint', role: 'status' }, 'Waiting for the first run…');
  const usable = permitted.filter(({ state }) => state === 'active');
  const dialog = openDialog(`Connect a job to ${namespace}`, (close, once) => {
    const shown = (/** @type {import('./jobs.js').Job} */ job, /** @type {string} */ token = '') =>
      box.replaceChildren(
        ...(token
          ? [
              h(
                'p',
                null,
                'Give the token to the owner of the job over a channel that you trust. It is shown only once.',
              ),
              secretBox(token, 'the token'),
            ]
          : []),
        jobLines(job, namespace),
      );
    const name = field({
      label: 'Name',
      pointer: '/name',
      required: true,
      placeholder: 'nightly import',
      maxlength: 64,
      hint: `A new integration that can use only ${namespace}.`,
    });
    const creation = form({
      fields: () => [name],
      content: [name.row],
      submit: 'Create and show the token',
      busy: 'Creating…',
      send: async () => {
        const { body } = await call('POST', '/integrations', { body: { name: name.read(), namespaces: [namespace] } });
        once();
        job.row.remove();
        shown(body, body.token);
      },
    });
    const job = field({
      label: 'Job',
      options: [
        ...usable.map(
          ({ id: one, name: text }) => /** @type {[string, string]} */ ([one, `${text}: can use it already`]),
        ),
        [NEW, 'New job'],
      ],
    });
    const choose = () => {
      const found = usable.find(({ id: one }) => one === job.control.value);
      if (found) {
        shown(found);
        return;
      }
      box.replaceChildren(creation);
      name.control.focus();
    };
    job.control.addEventListener('input', choose);
    job.row.hidden = usable.length === 0;
    if (session.isAdmin()) choose();
    else shown({ id: 'INTEGRATION_ID', name: namespace, namespaces: [namespace] });
    return [
      h(
        'div',
        { class: 'page-body' },
        session.isAdmin()
          ? job.row
          : h('p', { class: 'note' }, 'An admin creates an integration for the job and gives you its token.'),
        box,
        status,
        h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Done')),
      ),
    ];
  });
  dialog.classList.add('sheet');
  const started = Date.now();
  const poll = async () => {
    if (!dialog.open) return;
    try {
      const {
        body: [use],
      } = await call('GET', `/organization-vault/${id}/activations?limit=1`);
      if (use && Date.parse(use.at) >= started - 1000) {
        status.className = 'note good';
        status.textContent = `✓ ${clock(new Date(use.at))} ${use.integration} used it.`;
        announce(status.textContent);
        return;
      }
    } catch {
      // The next attempt may succeed.
    }
    setTimeout(() => void poll(), POLL);
  };
  void poll();
}
