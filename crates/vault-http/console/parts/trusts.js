// Workloads that may act for an integration: which of an issuer's tokens it trusts.

import { call } from './api.js';
import { button, h } from './dom.js';
import { field, form } from './forms.js';
import { confirm, time } from './parts.js';
import { copyButton } from './copy.js';

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

/**
 * A branch by its name, or any ref by its full name.
 * @param {string} text
 */
const reference = (text) => (text.startsWith('refs/') ? text : `refs/heads/${text}`);

/**
 * The subject of a GitHub Actions token. A job with an environment has that instead of its ref, with colons escaped.
 * @param {string} repository
 * @param {string | undefined} branch
 * @param {string | undefined} environment
 */
const githubSubject = (repository, branch, environment) =>
  environment
    ? `repo:${repository}:environment:${environment.replaceAll(':', '%3A')}`
    : `repo:${repository}:${branch ? `ref:${reference(branch)}` : '*'}`;

/** @param {string | undefined} branch @param {string | undefined} environment */
const githubRef = (branch, environment) => (branch && environment ? { '/ref': reference(branch) } : {});

/**
 * The fields of a GitHub repository. Those named by a pointer are claims.
 * @param {(pointer: string) => boolean} required
 */
const githubFields = (required) => ({
  repository: field({ label: 'Repository', required: true, mono: true, placeholder: 'acme/etl', parse: optional }),
  '/repository_owner_id': field({
    label: 'Owner id',
    required: required('/repository_owner_id'),
    mono: true,
    parse: optional,
    hint: 'gh api repos/OWNER/NAME --jq .owner.id. Ids stay when names change, and are never reused.',
  }),
  '/repository_id': field({
    label: 'Repository id',
    required: required('/repository_id'),
    mono: true,
    parse: optional,
    hint: 'gh api repos/OWNER/NAME --jq .id',
  }),
  ...branchFields('Or a full ref, such as refs/tags/v1.', 'Every branch, and pull requests'),
  environment: field({
    label: 'Environment',
    mono: true,
    placeholder: 'production',
    parse: optional,
    hint: 'Required if the job uses an environment.',
  }),
});

/**
 * The branch of trusted jobs. All branches are trusted only if that is chosen.
 * @param {string} hint
 * @param {string} all
 */
function branchFields(hint, all) {
  const from = field({
    label: 'Runs from',
    options: [
      ['one', 'One branch or tag'],
      ['all', all],
    ],
    value: 'one',
  });
  const branch = field({
    label: 'Branch',
    mono: true,
    required: true,
    placeholder: 'main',
    parse: (text) => (from.control.value === 'all' ? '' : optional(text)),
    hint,
  });
  from.control.addEventListener('input', () => {
    branch.row.hidden = from.control.value === 'all';
  });
  return { from, branch };
}

/** Where jobs run: the fields of each platform and the claims that they result in. Fields named by a pointer are claims. */
const KINDS = {
  github: {
    text: 'GitHub Actions',
    fields: () => githubFields(() => true),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ repository = '', branch, environment, '/repository_owner_id': owner, '/repository_id': id }) => ({
      '/sub': githubSubject(`${repository.replace('/', `@${owner}/`)}@${id}`, branch, environment),
      ...githubRef(branch, environment),
    }),
  },
  githubNames: {
    text: 'GitHub Actions, repository without ids in its subject (before July 2026)',
    fields: githubFields,
    /** @param {Record<string, string | undefined>} values */
    claims: ({ repository = '', branch, environment }) => ({
      '/sub': githubSubject(repository, branch, environment),
      ...githubRef(branch, environment),
    }),
  },
  gitlab: {
    text: 'GitLab CI',
    /** @param {(pointer: string) => boolean} required */
    fields: (required) => ({
      project: field({ label: 'Project', required: true, mono: true, placeholder: 'acme/etl', parse: optional }),
      ...branchFields('Or refs/tags/TAG.', 'Every branch and tag'),
      '/project_id': field({
        label: 'Project id',
        required: required('/project_id'),
        mono: true,
        parse: optional,
        hint: 'On the project’s page. It stays when a project is renamed.',
      }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ project, branch }) => ({
      '/sub': !branch
        ? `project_path:${project}:*`
        : branch.startsWith('refs/tags/')
          ? `project_path:${project}:ref_type:tag:ref:${branch.slice(10)}`
          : `project_path:${project}:ref_type:branch:ref:${branch}`,
    }),
  },
  kubernetes: {
    text: 'Kubernetes',
    fields: () => ({
      namespace: field({
        label: 'Namespace in the cluster',
        required: true,
        mono: true,
        placeholder: 'etl',
        parse: optional,
      }),
      account: field({ label: 'Service account', required: true, mono: true, placeholder: 'nightly', parse: optional }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ namespace, account }) => ({ '/sub': `system:serviceaccount:${namespace}:${account}` }),
  },
  other: {
    text: 'Something else',
    fields: () => ({
      subject: field({
        label: 'Subject',
        required: true,
        mono: true,
        placeholder: 'spiffe://acme.example/ns/etl/*',
        parse: optional,
        hint: 'What the token has as sub; or its beginning and * after a : or /.',
      }),
    }),
    /** @param {Record<string, string | undefined>} values */
    claims: ({ subject }) => ({ '/sub': subject }),
  },
};

/** @typedef {keyof typeof KINDS} Kind */

/** @param {Issuer} issuer @returns {Kind} */
const kindOf = ({ name, issuer }) =>
  issuer.includes('githubusercontent') || name.includes('github')
    ? 'github'
    : issuer.includes('gitlab') || name.includes('gitlab')
      ? 'gitlab'
      : issuer.includes('kube') || name.includes('kube')
        ? 'kubernetes'
        : 'other';

/** @param {Trust['claims']} claims */
const claimList = (claims) =>
  h(
    'ul',
    { class: 'plain' },
    Object.entries(claims).map(([pointer, value]) =>
      h('li', null, h('code', null, pointer), ' is ', h('code', { class: 'long' }, JSON.stringify(value))),
    ),
  );

/**
 * The workloads that may use an integration, and a form that adds one.
 * @param {Integration} integration
 */
export function trusts({ id, name }) {
  const body = h('div', { class: 'page-body' });
  const path = `/integrations/${id}/trusts`;
  /** @param {string} [said] */
  const show = async (said = '') => {
    const [{ body: trusts }, { body: issuers }] = await Promise.all([call('GET', path), call('GET', '/issuers')]);
    body.replaceChildren(
      h(
        'p',
        null,
        'Jobs on GitHub, GitLab or Kubernetes can sign in with their own identity. No token to store. Their identity token must have this audience:',
      ),
      h(
        'p',
        { class: 'with-button' },
        h('code', { class: 'long' }, audienceOf(id)),
        copyButton(audienceOf(id), 'the audience'),
      ),
      said ? h('p', { class: 'note good', role: 'status' }, said) : '',
      h('h2', null, 'Trusted'),
      trustList(trusts, name, async (trust) => {
        await call('DELETE', `${path}/${trust.id}`);
        await show('Removed. These jobs are denied from now on.');
      }),
      h('h2', null, 'Trust another workload'),
      addition(issuers, async (issuer, claims) => {
        await call('POST', path, { body: { issuer, claims } });
        await show('Trusted. Its jobs need no stored token.');
      }),
    );
  };
  void show();
  return body;
}

/**
 * @param {Trust[]} trusts
 * @param {string} name of the integration
 * @param {(trust: Trust) => Promise<void>} remove
 */
function trustList(trusts, name, remove) {
  if (!trusts.length)
    return h('p', { class: 'muted' }, 'None. Only jobs with a token of the integration can use its namespaces.');
  const ask = (/** @type {Trust} */ trust) =>
    confirm({
      heading: `Stop trusting this workload of ${trust.issuer}?`,
      submit: 'Stop trusting',
      busy: 'One moment…',
      text: [claimList(trust.claims), `Its jobs are denied immediately, unless they have a token of ${name}.`],
      act: () => remove(trust),
    });
  return h(
    'ul',
    { class: 'rows' },
    trusts.map((trust) => {
      const label = `Stop trusting ${trust.issuer} ${String(trust.claims['/sub'])}`;
      return h(
        'li',
        null,
        h('strong', null, trust.issuer),
        claimList(trust.claims),
        button('Stop trusting', () => ask(trust), { class: 'quiet danger', 'aria-label': label }),
      );
    }),
  );
}

/**
 * The form that adds a workload.
 * @param {Issuer[]} issuers
 * @param {(issuer: string, claims: Record<string, unknown>) => Promise<void>} add
 */
function addition(issuers, add) {
  const [first] = issuers;
  if (!first) {
    return h(
      'p',
      { class: 'note warn' },
      'No issuer of identity tokens is registered. An operator adds one: ',
      h('code', null, 'orgvault issuer add github --issuer https://token.actions.githubusercontent.com'),
    );
  }
  const issuer = field({
    label: 'Issuer',
    options: issuers.map(({ name: value, issuer: url }) => [value, `${value} (${url})`]),
    value: first.name,
  });
  const kind = field({
    label: 'Where the job runs',
    options: Object.entries(KINDS).map(([value, { text }]) => [value, text]),
    value: kindOf(first),
  });
  const asked = h('div', { class: 'page-body' });
  const note = h('p', { class: 'hint' });
  /** @type {Record<string, import('./forms.js').Field>} */
  let fields = {};
  const chosen = () => issuers.find(({ name: value }) => value === issuer.control.value) ?? first;
  const chosenKind = () => KINDS[/** @type {Kind} */ (kind.control.value)];
  const ask = () => {
    fields = claimFields(chosenKind(), chosen().required_claims);
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
  return form({
    fields: () => [issuer, kind, ...Object.values(fields)],
    content: [h('div', { class: 'pair' }, issuer.row, kind.row), note, asked],
    submit: 'Trust it',
    busy: 'One moment…',
    send: async () => {
      const values = Object.fromEntries(Object.entries(fields).map(([key, one]) => [key, one.read()]));
      const further = Object.fromEntries(Object.entries(values).filter(([key, value]) => key.startsWith('/') && value));
      await add(issuer.control.value, { ...chosenKind().claims(values), ...further });
    },
  });
}

/**
 * The fields of a kind of workload, and of the further claims that its issuer requires.
 * @param {(typeof KINDS)[Kind]} kind
 * @param {string[]} required
 */
function claimFields(kind, required) {
  /** @type {Record<string, import('./forms.js').Field>} */
  const fields = kind.fields((pointer) => required.includes(pointer));
  for (const pointer of required) {
    if (pointer !== '/sub' && !(pointer in fields))
      fields[pointer] = field({ label: `Claim ${pointer}`, required: true, mono: true, parse: optional });
  }
  return fields;
}
