// Compares what the console reads in each text of `vectors.json` with the entries there.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { recognize } from '../../crates/vault-http/console/paste.js';

const vectors = JSON.parse(readFileSync(new URL('../../crates/vault-cli/src/import/vectors.json', import.meta.url), 'utf8'));
assert.ok(vectors.length > 50);
for (const { about, text, entries } of vectors) {
  const found = recognize(text).map((entry) => 'refused' in entry ? { name: entry.name, refused: [entry.refused.field, entry.refused.reason] } : {
    name: entry.name,
    type: entry.type,
    values: entry.values,
    ...(entry.leftOut.length ? { left_out: entry.leftOut } : {}),
    ...(entry.needs ? { needs: [entry.needs.field, entry.needs.reason] } : {}),
    ...(entry.expiresAt ? { expires_at: entry.expiresAt } : {}),
  });
  assert.deepEqual(found, entries, about);
}
