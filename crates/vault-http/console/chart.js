// Activations and denied attempts by day, as bars.

import { query } from './api.js';
import { h } from './dom.js';
import { count } from './forms.js';
import { startOfDay } from './usage.js';

/** The days of a chart. */
export const CHART_DAYS = 30;

/** @param {number} at */
const instant = (at) => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

/**
 * @param {import('./api.js').AuditEntry[]} used
 * @param {import('./api.js').AuditEntry[]} denied
 * @param {Record<string, string>} filter of the audit log, which a bar opens for its day
 */
export function usageChart(used, denied, filter) {
  const first = new Date();
  first.setHours(0, 0, 0, 0);
  first.setDate(first.getDate() - CHART_DAYS + 1);
  const bars = Array.from({ length: CHART_DAYS }, (_, index) => {
    const day = (/** @type {number} */ more) => new Date(first.getFullYear(), first.getMonth(), first.getDate() + index + more).getTime();
    return { start: day(0), end: day(1), used: 0, denied: 0 };
  });
  for (const [kind, entries] of /** @type {['used' | 'denied', typeof used][]} */ ([['used', used], ['denied', denied]])) {
    for (const { at, count: times = 1 } of entries) {
      const day = startOfDay(Date.parse(at));
      const bar = bars.find(({ start }) => start === day);
      if (bar) bar[kind] += times;
    }
  }
  const most = Math.max(1, ...bars.map((bar) => bar.used + bar.denied));
  const date = (/** @type {number} */ at) => new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
  const chart = h('div', { class: 'bars' }, bars.map(({ start, end, used: uses, denied: refusals }) => {
    const text = `${date(start)}: ${count(uses, 'activation')}${refusals ? `, ${refusals} denied` : ''}`;
    const part = (/** @type {number} */ number, /** @type {string} */ kind) => {
      const box = h('span', { class: kind });
      box.style.height = `${100 * number / most}%`;
      return number > 0 && box;
    };
    // A day without activity leads nowhere.
    if (!uses && !refusals) return h('span', { class: 'bar-of', title: text });
    return h('a', { class: 'bar-of', title: text, 'aria-label': text, href: `#/audit${query({ ...filter, ...(uses ? {} : { action: 'denied' }), since: instant(start), until: instant(end) })}` }, part(refusals, 'denied'), part(uses, 'used'));
  }));
  const middle = bars[Math.floor(CHART_DAYS / 2)];
  return h('div', { class: 'chart' }, h('p', { class: 'axis', 'aria-hidden': 'true' }, `${most.toLocaleString('en')} a day`), chart,
    h('p', { class: 'axis', 'aria-hidden': 'true' }, [bars[0], middle].map((bar) => h('span', null, bar ? date(bar.start) : '')), h('span', null, 'today')));
}
