// The commands and files that connect a job, filled in for each environment.

import { call } from './api.js';
import { matches } from '../rules/denied.js';
import { freshId, h } from './dom.js';
import { checkbox, field, segments } from './forms.js';
import { copyButton } from './copy.js';
import * as session from './session.js';
import { audienceOf } from './trusts.js';

/** @typedef {{id: string, name: string, namespaces: string[]}} Job */

/** Stands for the address that this server does not know. */
const NO_ADDRESS = 'ACTIVATION_URL';

/**
 * What a shell takes as one word.
 * @param {string} text
 */
const quoted = (text) => (/^[A-Za-z0-9_./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** @typedef {{name: string, file: string, namespace: string, url: string, socket: boolean, audience: string}} Filled */

/**
 * Key, name, the lines of the job, and the lines that are run once before. The lines of a job that signs in with its own
 * identity have the key of the platform and `-identity`, and no name.
 * @type {[string, string, (filled: Filled) => string, ((filled: Filled) => string)?][]}
 */
const PLATFORMS = [
  [
    'shell',
    'Shell',
    ({ file, namespace, url }) => `# Can the credentials be used?
orgvault activate --check --activation-url ${quoted(url)} --token-file ${file} --namespace ${quoted(namespace)}
# Run the job.
orgvault exec --activation-url ${quoted(url)} --token-file ${file} --namespace ${quoted(namespace)} -- COMMAND`,
    // Pasted alone, so that no later line is read as the token. POSIX sh has no read -s.
    ({ file }) =>
      `(umask 077; trap 'stty echo; exit 1' INT; stty -echo; printf 'Token: '; IFS= read -r token; stty echo; echo; printf '%s\\n' "$token" > ${file})`,
  ],
  [
    'kubernetes',
    'Kubernetes',
    ({
      name,
      namespace,
      url,
      socket,
    }) => `# Once: kubectl create secret generic ${name}-orgvault --from-file=token=/dev/stdin   (paste the token, then Ctrl-D)
apiVersion: batch/v1
kind: CronJob
metadata:
  name: ${name}
spec:
  schedule: "0 2 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          securityContext: {runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001}
          initContainers:
            # A secret's files can be read by its group; orgvault wants a file that only its user can read.
            - name: token
              image: IMAGE_WITH_ORGVAULT
              command: ["install", "-m", "0600", "/secret/token", "/orgvault/token"]
              volumeMounts: [{name: secret, mountPath: /secret}, {name: token, mountPath: /orgvault}]
          containers:
            - name: job
              image: IMAGE_WITH_ORGVAULT
              command: ["orgvault", "exec", "--namespace", "${namespace}", "--", "COMMAND"]
              env:
                - {name: ORGVAULT_ACTIVATION_URL, value: "${url}"}
                - {name: ORGVAULT_INTEGRATION_TOKEN_FILE, value: /orgvault/token}
              volumeMounts: [{name: token, mountPath: /orgvault}]
          volumes:
            - {name: secret, secret: {secretName: ${name}-orgvault}}
            - {name: token, emptyDir: {medium: Memory}}${socket ? "\n# The address is a socket of the server's machine: give the server an address that pods reach (--activation-listen HOST:PORT with TLS)." : ''}`,
  ],
  [
    'github',
    'GitHub',
    ({
      name,
      namespace,
      url,
    }) => `# Once: gh secret set ORGVAULT_TOKEN   (paste the token). The runner must reach ${url}.
name: ${name}
on: {schedule: [{cron: "0 2 * * *"}]}
jobs:
  run:
    runs-on: self-hosted
    env:
      ORGVAULT_ACTIVATION_URL: ${url}
      ORGVAULT_INTEGRATION_TOKEN_FILE: \${{ runner.temp }}/orgvault-token
    steps:
      - run: (umask 077; printf '%s\\n' "$TOKEN" > "$ORGVAULT_INTEGRATION_TOKEN_FILE")
        env: {TOKEN: "\${{ secrets.ORGVAULT_TOKEN }}"}
      - run: orgvault exec --namespace ${quoted(namespace)} -- COMMAND
      - if: always()
        run: rm -f "$ORGVAULT_INTEGRATION_TOKEN_FILE"`,
  ],
  [
    'gitlab',
    'GitLab',
    ({
      name,
      namespace,
      url,
    }) => `# Once: a masked, protected CI/CD variable ORGVAULT_TOKEN of type Variable. The runner must reach ${url}.
${name}:
  variables:
    ORGVAULT_ACTIVATION_URL: "${url}"
    ORGVAULT_INTEGRATION_TOKEN_FILE: $CI_BUILDS_DIR/orgvault-token-$CI_JOB_ID
  script:
    - (umask 077; printf '%s\\n' "$ORGVAULT_TOKEN" > "$ORGVAULT_INTEGRATION_TOKEN_FILE"); unset ORGVAULT_TOKEN
    - orgvault exec --namespace ${quoted(namespace)} -- COMMAND
  after_script:
    - rm -f "$ORGVAULT_INTEGRATION_TOKEN_FILE"`,
  ],
  [
    'github-identity',
    '',
    ({
      name,
      namespace,
      url,
      audience,
    }) => `# Trust the repository under Trusted workloads first. The runner must reach ${url}.
name: ${name}
on: {schedule: [{cron: "0 2 * * *"}]}
permissions: {id-token: write}
jobs:
  run:
    runs-on: self-hosted
    env:
      ORGVAULT_ACTIVATION_URL: ${url}
      ORGVAULT_INTEGRATION_ID: ${audience.split(':').pop()}
    steps:
      - run: orgvault exec --namespace ${quoted(namespace)} -- COMMAND`,
  ],
  [
    'gitlab-identity',
    '',
    ({
      name,
      namespace,
      url,
      audience,
    }) => `# Trust the project under Trusted workloads first. The runner must reach ${url}.
${name}:
  id_tokens:
    ORGVAULT_IDENTITY_TOKEN: {aud: "${audience}"}
  variables:
    ORGVAULT_ACTIVATION_URL: "${url}"
  script:
    - orgvault exec --namespace ${quoted(namespace)} -- COMMAND`,
  ],
  [
    'kubernetes-identity',
    '',
    ({ name, namespace, url, audience, socket }) => `# Trust the service account under Trusted workloads first.
apiVersion: batch/v1
kind: CronJob
metadata:
  name: ${name}
spec:
  schedule: "0 2 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          serviceAccountName: ${name}
          containers:
            - name: job
              image: IMAGE_WITH_ORGVAULT
              command: ["orgvault", "exec", "--namespace", "${namespace}", "--", "COMMAND"]
              env:
                - {name: ORGVAULT_ACTIVATION_URL, value: "${url}"}
                - {name: ORGVAULT_IDENTITY_TOKEN_FILE, value: /var/run/orgvault/token}
              volumeMounts: [{name: identity, mountPath: /var/run/orgvault}]
          volumes:
            - name: identity
              projected:
                sources: [{serviceAccountToken: {path: token, expirationSeconds: 600, audience: "${audience}"}}]${socket ? "\n# The address is a socket of the server's machine: give the server an address that pods reach (--activation-listen HOST:PORT with TLS)." : ''}`,
  ],
  [
    'airflow',
    'Airflow',
    ({
      name,
      file,
      namespace,
      url,
    }) => `# Once, on each worker, as its user: put the token into ~/${file} with mode 0600.
from airflow.providers.standard.operators.bash import BashOperator

BashOperator(
    task_id="${name.replaceAll('-', '_')}",
    bash_command="orgvault exec --token-file ~/${file} --namespace ${quoted(namespace)} -- COMMAND",
    env={"ORGVAULT_ACTIVATION_URL": "${url}"},
    append_env=True,
)`,
  ],
  [
    'python',
    'Python',
    ({ file, namespace, url }) => `# Once, as the job's user: put the token into ${file} with mode 0600.
# job.py reads the variables that its libraries read anyway (boto3: AWS_ACCESS_KEY_ID …).
import subprocess

subprocess.run(
    ["orgvault", "exec", "--activation-url", "${url}",
     "--token-file", "${file}", "--namespace", "${namespace}",
     "--", "python3", "job.py"],
    check=True,
)`,
  ],
];

/**
 * Lines to paste, with comments set apart and a button that copies them.
 * @param {string} heading
 * @param {string} text
 */
function lines(heading, text) {
  const parts = text
    .split('\n')
    .flatMap((line, index) => [index ? '\n' : '', /^\s*#/.test(line) ? h('span', { class: 'muted' }, line) : line]);
  return h(
    'div',
    { class: 'step' },
    heading && h('p', null, h('strong', null, heading)),
    h(
      'div',
      { class: 'copied' },
      h('pre', { class: 'lines', tabindex: '0', 'aria-label': heading || 'Lines to paste' }, h('code', null, parts)),
      copyButton(text, heading.startsWith('1') ? 'the first step' : 'the lines'),
    ),
  );
}

/**
 * The commands for a job, with a choice of its platform.
 * @param {Job} job
 * @param {string} [fixed] the namespace, if it is not to be chosen
 */
export function jobLines(job, fixed = '') {
  const { activation_url: known } = session.server();
  const where = segments(
    'Where the job runs',
    PLATFORMS.flatMap(([key, text]) => (text ? [/** @type {[string, string]} */ ([key, text])] : [])),
    () => show(),
  );
  const identity = checkbox('The job signs in with its own identity', {
    hint: 'No token to store. Trust the workload under Trusted workloads of the integration first.',
  });
  const { namespace, names, below } = namespaceField(job, fixed, () => show());
  const url = field({
    label: 'Address of the activation listener',
    mono: true,
    value: known ?? '',
    required: true,
    hint: known ? null : 'Ask the operator: unix:/path/to/socket, or https://host:port/v1.',
  });
  const box = h('div', { class: 'page-body' });
  const show = () => {
    const own = PLATFORMS.find(([key]) => key === `${where.value()}-identity`);
    identity.row.hidden = !own;
    const platform = own && identity.control.checked ? own : PLATFORMS.find(([key]) => key === where.value());
    const filled = filledIn(job, url.control.value.trim() || NO_ADDRESS, namespace.control.value.trim() || below);
    box.replaceChildren(...steps(platform, filled));
  };
  for (const { control } of [identity, namespace, url]) control.addEventListener('input', show);
  show();
  return h(
    'div',
    { class: 'page-body' },
    !known &&
      h(
        'p',
        { class: 'note warn' },
        'This server has no activation listener in its settings, so jobs cannot use credentials through it. An operator turns it on with --activation-listen. If another process serves it, enter its address.',
      ),
    where.row,
    !fixed && h('div', { class: 'pair' }, namespace.row, url.row),
    names,
    fixed && !known ? url.row : null,
    identity.row,
    box,
  );
}

/**
 * The field of the namespace. A pattern stands for the namespaces below it: the job names one of them.
 * @param {Job} job
 * @param {string} fixed
 * @param {() => void} show
 */
function namespaceField({ namespaces }, fixed, show) {
  const exact = namespaces.filter((pattern) => !pattern.endsWith('*'));
  const below = namespaces.find((pattern) => pattern.endsWith('*'));
  const names = h('datalist', { id: freshId() });
  const namespace = field({
    label: 'Namespace',
    mono: true,
    value: fixed || exact[0] || '',
    required: true,
    list: names.id,
  });
  if (below && !fixed && session.isAdmin()) {
    void call('GET', '/namespaces?limit=1000').then(
      ({ body }) => {
        const found = body
          .map((/** @type {import('./api.js').Namespace} */ { namespace: one }) => one)
          .filter((/** @type {string} */ one) => matches(namespaces, one));
        names.replaceChildren(...found.map((/** @type {string} */ value) => h('option', { value })));
        if (!namespace.control.value && found.length) namespace.write(found[0]);
        show();
      },
      () => {},
    ); // without them the name is typed
  }
  return { namespace, names, below: `${(below ?? '').replace(/\*$/, '')}NAMESPACE` };
}

/**
 * What the lines of a platform are filled with.
 * @param {Job} job
 * @param {string} url
 * @param {string} namespace
 */
function filledIn({ id, name }, url, namespace) {
  const slug = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  const called = slug || 'job';
  return {
    name: called,
    file: `${called}.token`,
    namespace,
    url,
    socket: url.startsWith('unix:'),
    audience: audienceOf(id),
  };
}

/**
 * @param {(typeof PLATFORMS)[number] | undefined} platform
 * @param {ReturnType<typeof filledIn>} filled
 */
function steps(platform, filled) {
  const [, , text, once] = platform ?? [];
  const job = text?.(filled) ?? '';
  if (!once) return [lines('', job)];
  return [lines('1. Store the token, once, as the job’s user', once(filled)), lines('2. In your job', job)];
}
