import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concernsOf, dayAhead, grouped, urgency } from '../../console/rules/concerns.js';

process.env.TZ = 'UTC';
const NOW = Date.parse('2026-11-28T12:00:00Z');
const at = (days) => new Date(NOW + days * 86_400_000).toISOString();

let number = 0;
const credential = (more) => {
  number += 1;
  return {
    id: `c${number}`,
    namespace: `n/${number}`,
    type: 's3',
    information: { bucket: `bucket-${number}` },
    version: 1,
    created_at: at(-1),
    updated_at: at(-1),
    health: { state: 'healthy', checked_at: at(0) },
    ...more,
  };
};
const failing = (reason) => credential({ health: { state: 'failing', reason, checked_at: at(0), since: at(-2) } });
const known = (more) => ({
  credentials: [],
  integrations: [],
  accounts: [],
  receivers: [],
  namespaces: [],
  usage: null,
  notices: [],
  holders: new Map(),
  writes: true,
  admin: true,
  days: 30,
  aside: new Map(),
  now: NOW,
  ...more,
});
const said = ({ text }) =>
  text.map((part) => (typeof part === 'string' ? part : (part.name ?? part.at ?? part.code ?? part.strong))).join('');
/** Each group with its count and rows. */
const shown = (more) =>
  grouped(concernsOf(known(more)), NOW).map(({ heading, count, rows }) => [heading, count, rows.map(said)]);

test('today comes before this week', () => {
  assert.deepEqual(
    [0.4, 0.6, 6.9, 7.1].map((days) => urgency(NOW + days * 86_400_000, NOW)),
    ['today', 'week', 'week', 'later'],
  );
  const credentials = [20, 3, 0.2, -1].map((days) => credential({ expires_at: at(days) }));
  assert.deepEqual(
    shown({ credentials }).map(([heading, count]) => [heading, count]),
    [
      ['Broken now', 1],
      ['Today', 1],
      ['This week', 1],
      ['Later', 1],
    ],
  );
});

test('counts are of things, not of rows', () => {
  const credentials = Array.from({ length: 9 }, () => credential({ expires_at: at(2) }));
  const [[heading, count, rows]] = shown({ credentials });
  assert.deepEqual([heading, count, rows.length, rows.at(-1)], ['This week', 9, 6, '4 more credentials.']);
});

test('one cause is one row', () => {
  const rows = shown({ credentials: [...Array.from({ length: 9 }, () => failing('dns')), failing('tls')] });
  assert.equal(rows.length, 1);
  assert.equal(rows[0][1], 10);
  assert.equal(
    rows[0][2][0],
    '9 credentials could not be checked (the host name does not resolve): this server may have no DNS.',
  );
  assert.match(rows[0][2][1], /could not be checked: the TLS connection failed\.$/);
  const [concern] = concernsOf(known({ credentials: [failing('dns'), failing('dns')] }));
  assert.deepEqual(
    concern.acts.map(({ name }) => name),
    ['Check again', 'List all'],
  );
});

test('a refused key is broken, a check that did not get through is not', () => {
  assert.deepEqual(
    shown({ credentials: [failing('unknown-key'), failing('dns')] }).map(([heading]) => heading),
    ['Broken now', 'This week'],
  );
});

test('credentials of one namespace are distinguished', () => {
  const one = { namespace: 'exports/ledger', expires_at: at(3) };
  const [[, , rows]] = shown({ credentials: [credential(one), credential({ ...one, type: 'gcs' })] });
  assert.match(rows[0], /^exports\/ledger \(S3 bucket, bucket-\d+\) expires/);
  assert.match(rows[1], /^exports\/ledger \(Google Cloud Storage, bucket-\d+\) expires/);
});

test('a rotation is finished only if the server names no holder', () => {
  const row = credential({ version: 2, previous_version: 1, updated_at: at(-2) });
  const holder = { integration: 'import', version: 1, current: false, activations: 1, held_until: at(0.5) };
  const text = (holders) => shown({ credentials: [row], holders: new Map([[row.id, holders]]) })[0][2][0];
  assert.match(text([holder]), /rotation not finished\. Jobs may use version 1 until/);
  assert.match(text([]), /No job can use version 1 any more: disable the old key\./);
  const back = { ...row, version: 1, previous_version: 2 };
  const held = { ...holder, version: 2 };
  const said = shown({ credentials: [back], holders: new Map([[back.id, [held]]]) })[0][2][0];
  assert.match(said, /rolled back to version 1\. Jobs may use version 2 until/);
  assert.doesNotMatch(said, /old/);
});

test('a frozen namespace is broken now', () => {
  const namespaces = [{ namespace: 'a', credentials: 1, frozen: true, frozen_at: at(-13) }];
  assert.deepEqual(shown({ namespaces })[0].slice(0, 2), ['Broken now', 1]);
});

test('unused credentials are one row', () => {
  const credentials = Array.from({ length: 12 }, () => credential({ created_at: at(-100) }));
  assert.deepEqual(shown({ credentials }), [['Later', 12, ['12 credentials have not been used in 90 days.']]]);
});

test('what is set aside is shown again if it gets worse or happens again', () => {
  const later = at(300);
  /** Sets everything aside, and returns the groups after a change. */
  const after = (before, change) => {
    const aside = new Map(concernsOf(known(before)).map(({ key }) => [key, later]));
    return shown({ ...before, ...change, aside }).map(([heading]) => heading);
  };
  const row = credential({ expires_at: at(2) });
  const receiver = { id: 'r', url: 'https://hooks', state: 'failing', last_delivered_at: at(-2) };
  const denial = {
    integration: 'i',
    namespace: 'n',
    action: 'activation.refused-token',
    denied: 1,
    last_denied_at: at(-0.2),
  };
  const use = { integration: 'i', namespace: 'n', last_activated_at: at(-1), activations: 1, silent: false };
  const usage = { uses: [], denials: [denial] };
  const integrations = [{ id: 'i', name: 'job', namespaces: ['n'], state: 'active' }];
  const denied = { integrations, usage };
  const cases = [
    [{ credentials: [row] }, {}, 'Set aside'],
    [{ credentials: [row] }, { credentials: [{ ...row, expires_at: at(1) }] }, 'This week'],
    [{ credentials: [row] }, { now: Date.parse(at(3)) }, 'Broken now'],
    [{ integrations: [{ id: 'i', name: 'job', expires_at: at(2) }] }, { now: Date.parse(at(3)) }, 'Broken now'],
    [{ credentials: [failing('dns')] }, { credentials: [failing('tls')] }, 'This week'],
    [{ receivers: [receiver] }, { receivers: [{ ...receiver, last_delivered_at: at(-1) }] }, 'Broken now'],
    [denied, { usage: { ...usage, denials: [{ ...denial, denied: 9, last_denied_at: at(0) }] } }, 'Set aside'],
    [denied, { usage: { ...usage, uses: [use] } }, 'Broken now'],
  ];
  for (const [before, change, heading] of cases) assert.deepEqual(after(before, change), [heading]);
});

test('what is set aside leaves its place to others, and the row for others cannot be set aside', () => {
  const credentials = Array.from({ length: 9 }, () => credential({ expires_at: at(2) }));
  const keys = concernsOf(known({ credentials })).map(({ key }) => key);
  assert.equal(keys.at(-1), '');
  const aside = new Map(keys.slice(0, 3).map((key) => [key, at(5)]));
  const [week, group] = shown({ credentials, aside });
  assert.deepEqual([week[1], week[2].length], [6, 6]);
  assert.deepEqual([group[0], group[1]], ['Set aside', 3]);
  assert.deepEqual([dayAhead(1, NOW), dayAhead(7, NOW)], ['2026-11-29T00:00:00Z', '2026-12-05T00:00:00Z']);
});
