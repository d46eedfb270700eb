import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobs, moved, users, waiting } from '../../console/rules/holders.js';

const holder = (integration, version, current, activations, until) => ({
  integration,
  version,
  current,
  activations,
  last_activated_at: `2026-11-2${version}T02:00:00Z`,
  ...(until ? { held_until: `2026-11-29T${until}:00Z` } : {}),
});

test('after a replacement, jobs wait for the old version', () => {
  const holders = [
    holder('import', 1, false, 30, '14:00'),
    holder('import', 2, true, 1, '15:00'),
    holder('export', 1, false, 3),
    holder('report', 1, false, 1, '18:00'),
  ];
  assert.deepEqual(waiting(holders), [
    { job: 'report', version: 1, until: '2026-11-29T18:00:00Z' },
    { job: 'import', version: 1, until: '2026-11-29T14:00:00Z' },
  ]);
  assert.deepEqual(
    jobs(holders).map(({ job, moved, waits }) => [job, moved, waits?.until]),
    [
      ['import', true, '2026-11-29T14:00:00Z'],
      ['export', false, undefined],
      ['report', false, '2026-11-29T18:00:00Z'],
    ],
  );
  assert.deepEqual(moved(holders), ['import']);
});

test('after a roll back, jobs wait for the newer version', () => {
  const holders = [holder('import', 1, true, 30), holder('import', 2, false, 1, '15:00')];
  assert.deepEqual(waiting(holders), [{ job: 'import', version: 2, until: '2026-11-29T15:00:00Z' }]);
});

test('uses of all versions are counted for each job', () => {
  const holders = [holder('import', 1, false, 30), holder('import', 2, true, 2), holder('export', 1, true, 1)];
  assert.deepEqual(users(holders), [
    { job: 'import', runs: 32, last: '2026-11-22T02:00:00Z' },
    { job: 'export', runs: 1, last: '2026-11-21T02:00:00Z' },
  ]);
});
