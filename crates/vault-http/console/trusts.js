// Workloads that may act for an integration: which of an issuer's tokens it trusts.

import { call } from './api.js';
import { h } from './dom.js';
import { field, form } from './forms.js';
import { copyButton, openDialog, time } from './parts.js';

/** @typedef {import('./api.js').Integration} Integration */
/** @typedef {{id: string, issuer: string, claims: Record<string, string | number | boolean>, max_lifetime: number}} Trust */
/** @typedef {{name: string, issuer: string, required_claims: string[], fetched_at: string, last_error?: string}} Issuer */

/**
 * What an integration's tokens must have as `aud`.
 * @param {string} id
 */
export const audienceOf = (id) => `urn:orgvault:integration:${id}`;

/** @param {string} text */
const optional = (text) => text.trim() || undefined;

/** The kinds of surroundings, what people know of them, and the claims that say it. */
const KINDS = {
  github: {
    text: 'GitHub Actions',
    fields: () => ({
      repository: field({ label: 'Repository', required: true, mono: true, placeholder: 'acme/etl', parse: optional }),
      branch: field({ label: 'Branch', mono: true, placeholder: 'main', parse: optional, hint: 'Left out: every branch, and pull requests of the repository too.' }),
      environment: field({ label: 'Environment', mono: true, placeholder: 'production', parse: optional, hint: 'If the job names an environment, its token has that in place of the branch.' }),
      id: field({ label: 'Repository id', mono: true, parse: optional, hint: 'gh api repos/OWNER/NAME --jq .id. It stays when a repository is renamed, and is not given twice.' }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ repository, branch, environment, id }) => ({
      '/sub': environment ? `repo:${repository}:environment:${environment}` : branch ? `repo:${repository}:ref:refs/heads/${branch}` : `repo:${repository}:*`,
      ...(id && { '/repository_id': id }),
    }),
  },
  gitlab: {
    text: 'GitLab CI',
    fields: () => ({
      project: field({ label: 'Project', required: true, mono: true, placeholder: 'acme/etl', parse: optional }),
      branch: field({ label: 'Branch', mono: true, placeholder: 'main', parse: optional, hint: 'Left out: every branch and tag of the project.' }),
      id: field({ label: 'Project id', mono: true, parse: optional, hint: 'On the project’s page. It stays when a project is renamed.' }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ project, branch, id }) => ({
      '/sub': branch ? `project_path:${project}:ref_type:branch:ref:${branch}` : `project_path:${project}:*`,
      ...(id && { '/project_id': id }),
    }),
  },
  kubernetes: {
    text: 'Kubernetes',
    fields: () => ({
      namespace: field({ label: 'Namespace in the cluster', required: true, mono: true, placeholder: 'etl', parse: optional }),
      account: field({ label: 'Service account', required: true, mono: true, placeholder: 'nightly', parse: optional }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ namespace, account }) => ({ '/sub': `system:serviceaccount:${namespace}:${account}` }),
  },
  other: {
    text: 'Something else',
    fields: () => ({
      subject: field({ label: 'Subject', required: true, mono: true, placeholder: 'spiffe://acme.example/ns/etl/*', parse: optional, hint: 'What the token has as sub; or its beginning and * after a : or /.' }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ subject }) => ({ '/sub': subject }),
  },
};

/** @typedef {keyof typeof KINDS} Kind */

/** @param {Issuer} issuer @returns {Kind} */
const kindOf = ({ name, issuer }) => issuer.includes('githubusercontent') || name.includes('github') ? 'github'
  : issuer.includes('gitlab') || name.includes('gitlab') ? 'gitlab' : issuer.includes('kube') || name.includes('kube') ? 'kubernetes' : 'other';

/** @param {Trust['claims']} claims */
const claimList = (claims) => h('ul', { class: 'plain' }, Object.entries(claims).map(([pointer, value]) =>
  h('li', null, h('code', null, pointer), ' is ', h('code', { class: 'long' }, JSON.stringify(value)))));

/**
 * Shows which workloads may act for an integration, and lets an admin change that.
 * @param {Integration} integration
 */
export function showTrusts({ integration_id: id, name }) {
  const body = h('div', { class: 'page-body' });
  const path = `/integrations/${id}/trusts`;
  const dialog = openDialog(`Workloads of ${name}`, (close) => [body,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close'))]);
  dialog.classList.add('wide');
  /** @param {string} [said] */
  const show = async (said = '') => {
    const [{ body: trusts }, { body: issuers }] = await Promise.all([call('GET', path), call('GET', '/issuers')]);
    body.replaceChildren(
      h('p', null, 'A job that has an identity token of its surroundings needs no stored token. Its token must be made for this audience:'),
      h('p', { class: 'with-button' }, h('code', { class: 'long' }, audienceOf(id)), copyButton(audienceOf(id), 'the audience')),
      said ? h('p', { class: 'note good', role: 'status' }, said) : '',
      h('h3', null, 'Trusted'), trustList(trusts), h('h3', null, 'Trust another workload'), ...addition(issuers));
  };
  /** @param {Trust[]} trusts */
  const trustList = (trusts) => trusts.length ? h('ul', { class: 'rows' }, trusts.map((trust) => h('li', null,
    h('strong', null, trust.issuer), claimList(trust.claims), h('button', {
      type: 'button', class: 'quiet danger', 'aria-label': `Stop trusting ${trust.issuer} ${String(trust.claims['/sub'])}`,
      onclick: async () => {
        await call('DELETE', `${path}/${trust.id}`);
        await show('Removed. Its workloads can do nothing more.');
      },
    }, 'Stop trusting')))) : h('p', { class: 'muted' }, 'None: only the integration’s token opens its namespaces.');
  /** @param {Issuer[]} issuers @returns {Node[]} */
  const addition = (issuers) => {
    const [first] = issuers;
    if (!first) {
      return [h('p', { class: 'note warn' }, 'This vault knows no issuer of identity tokens. An operator adds one: ',
        h('code', null, 'orgvault issuer add github --issuer https://token.actions.githubusercontent.com'))];
    }
    const issuer = field({ label: 'Issuer', options: issuers.map(({ name: value, issuer: url }) => [value, `${value} (${url})`]), value: first.name });
    const kind = field({ label: 'Where the job runs', options: Object.entries(KINDS).map(([value, { text }]) => [value, text]), value: kindOf(first) });
    const asked = h('div', { class: 'page-body' });
    const note = h('p', { class: 'hint' });
    /** @type {Record<string, import('./forms.js').Field>} */
    let fields = {};
    const chosen = () => issuers.find(({ name: value }) => value === issuer.control.value) ?? first;
    const ask = () => {
      fields = KINDS[/** @type {Kind} */ (kind.control.value)].fields();
      for (const pointer of chosen().required_claims) {
        if (!['/sub', '/repository_id', '/project_id'].includes(pointer)) fields[pointer] = field({ label: `Claim ${pointer}`, required: true, mono: true, parse: optional });
      }
      asked.replaceChildren(...Object.values(fields).map(({ row }) => row));
      const { fetched_at: at, last_error: error } = chosen();
      note.replaceChildren('Its keys were fetched ', time(at), error ? `; the last try failed: ${error}` : '', '.');
    };
    issuer.control.addEventListener('change', () => {
      kind.control.value = kindOf(chosen());
      ask();
    });
    kind.control.addEventListener('change', ask);
    ask();
    return [form({
      fields: () => [issuer, kind, ...Object.values(fields)], content: [h('div', { class: 'pair' }, issuer.row, kind.row), note, asked],
      submit: 'Trust it', busy: 'One moment…',
      send: async () => {
        const values = Object.fromEntries(Object.entries(fields).map(([key, one]) => [key, one.read()]));
        const further = Object.fromEntries(Object.entries(values).filter(([key]) => key.startsWith('/')));
        const claims = { ...KINDS[/** @type {Kind} */ (kind.control.value)].claims(values), ...further };
        await call('POST', path, { body: { issuer: issuer.control.value, claims } });
        await show('Trusted. Its jobs need no stored token from now on.');
      },
    })];
  };
  void show();
}
