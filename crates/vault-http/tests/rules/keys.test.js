import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKey } from '../../console/rules/keys.js';

test('ends of key IDs and fingerprints are searched as keys, names are not', () => {
  for (const text of ['PK3E', 'AKIAIOSFODNN7EXAMPLE', '7c98650a4d3a', '0016']) assert.ok(isKey(text), text);
  for (const text of ['imp', 'imports', 'rotate', 'nightly import 1', '']) assert.ok(!isKey(text), text);
});
