import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byDay, rhythm } from '../../console/rules/usage.js';

test('days are those of the zone of the browser', () => {
  for (const [zone, since, expected] of [
    // The day on which summer time ends has 25 hours.
    ['Europe/Berlin', '2026-10-23T22:00:00Z', '24/2 25/0 24/0'],
    ['Asia/Kolkata', '2026-10-23T18:30:00Z', '24/2 24/0 24/0 1/0'],
  ]) {
    process.env.TZ = zone;
    const days = [...byDay({ since, activations: Array(73).fill(1), denied: [2] }).values()];
    assert.equal(days.map(({ used, denied }) => `${used}/${denied}`).join(' '), expected, zone);
  }
});

test('a rhythm is shown in the zone of the browser', () => {
  for (const [zone, regular, expected] of [
    ['UTC', { every_days: 1, usual_time: '02:00' }, 'daily 02:00'],
    ['Asia/Kolkata', { every_days: 7, usual_time: '02:00' }, 'weekly 07:30'],
    ['Europe/Berlin', { every_days: 2 }, 'every 2 days'],
    ['UTC', {}, '1,234× in 30 days'],
  ]) {
    process.env.TZ = zone;
    assert.equal(rhythm({ activations: 1234, ...regular }, 30, Date.parse('2026-11-26T12:00:00Z')), expected, zone);
  }
});
