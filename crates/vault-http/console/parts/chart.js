// Activations and denied attempts by day, as bars.

import { call, query } from './api.js';
import { h } from './dom.js';
import { count } from './forms.js';
import { byDay } from '../rules/usage.js';

/** The days of a chart. */
export const CHART_DAYS = 30;

/** @param {number} at */
const instant = (at) => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');

/**
 * The activations and denied attempts of the last days, of one or of all integrations.
 * @param {{days?: number, integration?: string}} [of]
 * @returns {Promise<import('./api.js').NamespaceUsage>}
 */
export async function loadUsage({ days = CHART_DAYS, integration } = {}) {
  const today = new Date();
  const first = new Date(today.getFullYear(), today.getMonth(), today.getDate() - days + 1);
  return (await call('GET', `/namespaces/usage${query({ since: instant(first.getTime()), integration })}`)).body;
}

/**
 * @param {import('./api.js').NamespaceUsage} usage
 * @param {Record<string, string>} filter of the audit log, which a bar opens for its day
 */
export function usageChart(usage, filter) {
  const first = new Date();
  first.setHours(0, 0, 0, 0);
  first.setDate(first.getDate() - CHART_DAYS + 1);
  const counted = byDay(usage);
  const bars = Array.from({ length: CHART_DAYS }, (_, index) => {
    const day = (/** @type {number} */ more) =>
      new Date(first.getFullYear(), first.getMonth(), first.getDate() + index + more).getTime();
    return { start: day(0), end: day(1), ...(counted.get(day(0)) ?? { used: 0, denied: 0 }) };
  });
  const most = Math.max(1, ...bars.map((bar) => bar.used + bar.denied));
  const date = (/** @type {number} */ at) =>
    new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
  const chart = h(
    'div',
    { class: 'bars' },
    bars.map(({ start, end, used: uses, denied: refusals }) => {
      const text = `${date(start)}: ${count(uses, 'activation')}${refusals ? `, ${refusals} denied` : ''}`;
      const part = (/** @type {number} */ number, /** @type {string} */ kind) => {
        const box = h('span', { class: kind });
        box.style.height = `${(100 * number) / most}%`;
        return number > 0 && box;
      };
      // A day without activity leads nowhere.
      if (!uses && !refusals) return h('span', { class: 'bar-of', title: text });
      return h(
        'a',
        {
          class: 'bar-of',
          title: text,
          'aria-label': text,
          href: `#/audit${query({ ...filter, ...(uses ? {} : { action: 'denied' }), since: instant(start), until: instant(end) })}`,
        },
        part(refusals, 'denied'),
        part(uses, 'used'),
      );
    }),
  );
  const middle = bars[Math.floor(CHART_DAYS / 2)];
  return h(
    'div',
    { class: 'chart' },
    h('p', { class: 'axis', 'aria-hidden': 'true' }, `${most.toLocaleString('en')} a day`),
    chart,
    h(
      'p',
      { class: 'axis', 'aria-hidden': 'true' },
      [bars[0], middle].map((bar) => h('span', null, bar ? date(bar.start) : '')),
      h('span', null, 'today'),
    ),
  );
}
