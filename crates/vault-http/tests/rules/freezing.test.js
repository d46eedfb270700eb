import assert from 'node:assert/strict';
import { test } from 'node:test';
import { affected, some, word } from '../../console/rules/freezing.js';

const NOW = Date.parse('2026-11-28T12:00:00Z');

test('a freeze affects the jobs that used the namespaces in the last 7 days', () => {
  const use = (integration, namespace, day) => ({
    integration,
    namespace,
    last_activated_at: `2026-11-${day}T02:00:00Z`,
  });
  const uses = [use('1', 'a', 28), use('1', 'b', 27), use('2', 'b', 27), use('3', 'c', 28), use('4', 'a', 20)];
  const names = new Map([
    ['1', 'nightly import'],
    ['3', 'export'],
  ]);
  assert.deepEqual(
    affected(uses, ['a', 'b'], (id) => names.get(id), NOW),
    ['a deleted integration', 'nightly import'],
  );
});

test('a question names five and counts the others', () => {
  const names = Array.from({ length: 1000 }, (_, number) => `n${number}`);
  assert.equal(some(names), 'n0, n1, n2, n3, n4 and 995 more');
  assert.equal(some(names.slice(0, 6)), 'n0, n1, n2, n3, n4, n5');
});

test('more than ten namespaces are frozen only after the word is typed', () => {
  assert.deepEqual([1, 10, 11, 1000].map(word), ['', '', 'FREEZE', 'FREEZE']);
});
