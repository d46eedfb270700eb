import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadline, linkExpiry, readTime, writeTime } from '../../console/rules/times.js';

const EVENING = '2026-11-26T21:31:00Z';

test('relative times compare calendar days of the zone', () => {
  for (const [zone, now, time, expected] of [
    ['Europe/Berlin', EVENING, '2026-11-28T03:00:00Z', 'in 2 days (Sat 28 Nov)'],
    ['Europe/Berlin', EVENING, '2026-11-29T21:31:00Z', 'in 3 days (Sun 29 Nov)'],
    ['Europe/Berlin', EVENING, '2026-11-27T09:30:40Z', 'in 12 hours (Fri 10:30)'],
    ['Europe/Berlin', EVENING, '2026-11-25T20:31:00Z', 'yesterday (Wed 25 Nov)'],
    ['America/Los_Angeles', '2026-11-27T05:31:00Z', '2026-11-28T07:59:00Z', 'tomorrow (Fri 27 Nov)'],
    ['America/Los_Angeles', '2026-11-27T05:31:00Z', '2026-11-28T08:01:00Z', 'in 2 days (Sat 28 Nov)'],
    // Across the end of summer time and of the year.
    ['Europe/Berlin', '2026-10-24T20:00:00Z', '2026-10-26T20:00:00Z', 'in 2 days (Mon 26 Oct)'],
    ['UTC', '2026-12-30T12:00:00Z', '2027-01-01T11:00:00Z', 'in 2 days (1 Jan 2027)'],
  ]) {
    process.env.TZ = zone;
    assert.equal(deadline(time, Date.parse(now), 'en-GB'), expected, `${zone} ${time}`);
  }
});

test('a signed link says when it expires', () => {
  for (const [query, expected] of [
    ['X-Amz-Date=20261126T120000Z&X-Amz-Expires=3600&X-Amz-Signature=a', '2026-11-26T13:00:00Z'],
    ['X-Goog-Date=20261126T120000Z&X-Goog-Expires=60&X-Goog-Signature=a', '2026-11-26T12:01:00Z'],
    ['Expires=1795000000&Signature=a', '2026-11-18T11:06:40Z'],
    ['sv=1&se=2026-12-01T00%3A00%3A00Z&sig=a', '2026-12-01T00:00:00Z'],
    ['se=2026-12-01&X-Amz-Date=2026', undefined],
  ]) {
    assert.equal(linkExpiry(`https://files.example/a?${query}`), expected, query);
  }
});

test('a date without a time is the end of that day, and is formatted as a date again', () => {
  process.env.TZ = 'Europe/Berlin';
  const end = readTime('2026-11-28');
  assert.equal(end, '2026-11-28T22:59:59Z');
  assert.equal(writeTime(end), '2026-11-28');
});
