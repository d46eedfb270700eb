// The question before namespaces are frozen: how many, and which jobs fail from then on.

import { loadUsage } from './chart.js';
import { h } from './dom.js';
import { count } from './forms.js';
import { loadAll } from './list.js';
import { confirm } from './parts.js';
import { AFFECTED_DAYS, affected, some, word } from '../rules/freezing.js';

/**
 * @param {string[]} namespaces
 * @param {() => Promise<void>} act
 */
export async function confirmFreeze(namespaces, act) {
  const jobs = await jobsOf(namespaces).catch(() => null);
  const many = namespaces.length > 1;
  const said = jobs?.length
    ? `${count(jobs.length, 'job')} used ${many ? 'them' : 'it'} in the last ${AFFECTED_DAYS} days and ${jobs.length === 1 ? 'fails from its' : 'fail from their'} next run on: ${some(jobs)}.`
    : `No job used ${many ? 'them' : 'it'} in the last ${AFFECTED_DAYS} days.`;
  confirm({
    heading: `Freeze ${many ? count(namespaces.length, 'namespace') : namespaces[0]}?`,
    submit: 'Freeze',
    busy: 'Freezing…',
    typed: word(namespaces.length),
    text: [
      jobs && h('p', { class: jobs.length ? 'note bad' : 'note' }, said),
      many && some(namespaces),
      `All credentials in ${many ? 'these namespaces' : 'this namespace'} are refused to jobs until ${many ? 'they are' : 'it is'} thawed.`,
    ],
    act,
  });
}

/** @param {string[]} namespaces */
async function jobsOf(namespaces) {
  const [usage, integrations] = await Promise.all([loadUsage({ days: AFFECTED_DAYS + 1 }), loadAll('/integrations')]);
  const names = new Map(
    /** @type {import('./api.js').Integration[]} */ (integrations.rows).map(({ id, name }) => [id, name]),
  );
  return affected(usage.uses, namespaces, (id) => names.get(id));
}
