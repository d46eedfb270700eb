// What a freeze of namespaces stops.

/** The days within which a job counts as affected. */
export const AFFECTED_DAYS = 7;
/** Names that a question contains; the others are counted. */
const NAMED = 5;
/** Namespaces that are frozen without typing the word. */
const WITHOUT_WORD = 10;

/**
 * The jobs that used any of the namespaces lately, by name.
 * @param {import('../parts/api.js').NamespaceUse[]} uses
 * @param {string[]} namespaces
 * @param {(id: string) => string | undefined} nameOf of an integration
 * @param {number} [now]
 */
export function affected(uses, namespaces, nameOf, now = Date.now()) {
  const frozen = new Set(namespaces);
  const since = now - AFFECTED_DAYS * 86_400_000;
  const found = uses.filter((use) => frozen.has(use.namespace) && Date.parse(use.last_activated_at) >= since);
  return [...new Set(found.map(({ integration }) => nameOf(integration) ?? 'a deleted integration'))].sort();
}

/**
 * Some of the names, and how many others there are: "a, b and 3 more".
 * @param {string[]} names
 */
export function some(names) {
  const more = names.length - NAMED;
  if (more > 1) return `${names.slice(0, NAMED).join(', ')} and ${more.toLocaleString('en')} more`;
  return names.join(', ');
}

/**
 * What has to be typed before this many namespaces are frozen.
 * @param {number} namespaces
 */
export function word(namespaces) {
  return namespaces > WITHOUT_WORD ? 'FREEZE' : '';
}
