// The reader of /openapi.json: every operation with what it takes and returns, on one page.

import './parts/theme.js';
import { h } from './parts/dom.js';

/** @typedef {Record<string, any>} Json */

const METHODS = ['get', 'post', 'patch', 'put', 'delete'];

/** @param {string} reference */
const nameOf = (reference) => reference.slice(reference.lastIndexOf('/') + 1);
/** @param {string} name */
const schemaLink = (name) => h('a', { href: `#schema-${name}` }, h('code', null, name));

/**
 * Text with `code` in it.
 * @param {string} text
 */
const prose = (text) => text.split('`').map((part, index) => (index % 2 ? h('code', null, part) : part));

/**
 * What a schema is, in a few words, with links to the schemas that it is made of.
 * @param {Json} schema
 * @returns {(Node | string)[]}
 */
function kind(schema) {
  if (schema.$ref) return [schemaLink(nameOf(schema.$ref))];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices)
    return choices.flatMap((/** @type {Json} */ choice, /** @type {number} */ index) => [
      index ? ' or ' : '',
      ...kind(choice),
    ]);
  if ('const' in schema) return [h('code', null, JSON.stringify(schema.const))];
  if (schema.enum)
    return schema.enum.flatMap((/** @type {unknown} */ value, /** @type {number} */ index) => [
      index ? ' or ' : '',
      h('code', null, JSON.stringify(value)),
    ]);
  if (schema.type === 'array') return ['list of ', ...kind(schema.items ?? {})];
  const type = Array.isArray(schema.type) ? schema.type.join(' or ') : (schema.type ?? 'anything');
  const form =
    schema.format && !schema.format.startsWith('int') && !schema.format.startsWith('uint') ? ` (${schema.format})` : '';
  return [type + form];
}

/** @param {Json} schema */
function bounds(schema) {
  const { minLength, maxLength, minimum, maximum, maxItems, maxProperties, pattern } = schema;
  /** @type {(Node | string)[]} */
  const found = [];
  const say = (/** @type {(Node | string)[]} */ ...parts) => found.push(...(found.length ? ['; '] : []), ...parts);
  if (maxLength !== undefined) say(`${minLength ?? 0} to ${maxLength.toLocaleString('en')} characters`);
  if (minimum !== undefined)
    say(maximum === undefined ? `from ${minimum}` : `${minimum} to ${maximum.toLocaleString('en')}`);
  if (maxItems !== undefined) say(`at most ${maxItems}`);
  if (maxProperties !== undefined) say(`at most ${maxProperties} members`);
  if (pattern) say('as ', h('code', null, pattern));
  if (schema.default !== undefined) say('default ', h('code', null, JSON.stringify(schema.default)));
  return found;
}

/**
 * The rows of a table of fields or parameters.
 * @param {[string, Json, boolean, string?][]} rows name, schema, whether it is required, and where it stands
 */
function table(rows) {
  return h(
    'div',
    { class: 'table-wrap' },
    h(
      'table',
      null,
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          ['Name', 'Type', 'Meaning'].map((name) => h('th', { scope: 'col' }, name)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map(([name, schema, required, place]) =>
          h(
            'tr',
            null,
            h(
              'th',
              { scope: 'row' },
              h('code', null, name),
              ' ',
              required ? null : h('span', { class: 'optional' }, 'optional'),
              place ? h('span', { class: 'hint block' }, place) : null,
            ),
            h('td', null, kind(schema)),
            h(
              'td',
              null,
              prose(schema.description ?? ''),
              bounds(schema).length ? h('span', { class: 'hint block' }, bounds(schema)) : null,
            ),
          ),
        ),
      ),
    ),
  );
}

/**
 * The members of a schema, and of each of its choices.
 * @param {Json} schema
 * @returns {Node[]}
 */
function members(schema) {
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices)
    return choices.flatMap((/** @type {Json} */ choice) =>
      choice.properties ? [h('h4', null, choice.title ?? 'One of'), ...members(choice)] : [],
    );
  const rows = Object.entries(schema.properties ?? {});
  if (!rows.length) return [];
  const required = new Set(schema.required ?? []);
  return [table(rows.map(([name, field]) => [name, field, required.has(name)]))];
}

/** @param {unknown} value */
const example = (value) =>
  h('pre', { tabindex: 0, 'aria-label': 'Example' }, h('code', null, JSON.stringify(value, null, 2)));

/**
 * @param {string} path
 * @param {string} method
 * @param {Json} operation
 * @param {Json} document
 */
function operationCard(path, method, operation, document) {
  const places = /** @type {Record<string, string>} */ ({ header: 'header', query: 'query', path: 'path' });
  const body = operation.requestBody?.content['application/json'];
  const schema = body?.schema.$ref ? document.components.schemas[nameOf(body.schema.$ref)] : body?.schema;
  const responses = Object.entries(operation.responses).map(([status, response]) => {
    const found = response.$ref ? document.components.responses[nameOf(response.$ref)] : response;
    const answer = found.content?.['application/json'];
    return h(
      'tr',
      null,
      h('th', { scope: 'row' }, status),
      h('td', null, prose(found.description), answer ? [': ', ...kind(answer.schema)] : null),
    );
  });
  const security = Object.keys(operation.security[0] ?? {})[0];
  const token =
    security === 'accessToken'
      ? 'an access token'
      : security
        ? 'an integration token, on the activation listener'
        : 'no token';
  return h(
    'section',
    { class: 'card operation', id: operation.operationId, 'aria-labelledby': `${operation.operationId}-title` },
    h('h3', { id: `${operation.operationId}-title` }, operation.summary),
    h('p', { class: 'route' }, h('span', { class: 'badge plain' }, method.toUpperCase()), ' ', h('code', null, path)),
    h('p', { class: 'hint' }, `Needs ${token}. `, prose(operation.description ?? '')),
    operation.parameters
      ? [
          h('h4', null, 'Parameters'),
          table(
            operation.parameters.map((/** @type {Json} */ one) => [
              one.name,
              { ...one.schema, description: one.description },
              Boolean(one.required),
              places[one.in],
            ]),
          ),
        ]
      : null,
    body
      ? [
          h('h4', null, 'Body ', body.schema.$ref ? schemaLink(nameOf(body.schema.$ref)) : null),
          ...members(schema),
          example(body.example),
        ]
      : null,
    h('h4', null, 'Responses'),
    h('div', { class: 'table-wrap' }, h('table', null, h('tbody', null, responses))),
  );
}

class Docs extends HTMLElement {
  async connectedCallback() {
    const main = h('main', { id: 'main' });
    this.replaceChildren(
      h(
        'header',
        { class: 'bar' },
        h('span', { class: 'brand' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'OrgVault'),
        h('span', { class: 'organization' }, 'HTTP API'),
        h(
          'span',
          { class: 'who' },
          h('a', { href: '/openapi.json' }, 'openapi.json'),
          h('a', { href: '/' }, 'Console'),
        ),
      ),
      main,
    );
    let document;
    try {
      const response = await fetch('/openapi.json');
      if (!response.ok) throw new Error(String(response.status));
      document = await response.json();
    } catch {
      main.replaceChildren(h('p', { class: 'note bad' }, 'The description could not be loaded. Reload the page.'));
      return;
    }
    this.#show(main, document);
    // The place that the address names is there only now.
    if (location.hash) window.document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  /**
   * @param {HTMLElement} main
   * @param {Json} document
   */
  #show(main, document) {
    /** @type {Map<string, Node[]>} */
    const byTag = new Map(document.tags.map((/** @type {{name: string}} */ { name }) => [name, []]));
    /** @type {Map<string, Node[]>} */
    const links = new Map(document.tags.map((/** @type {{name: string}} */ { name }) => [name, []]));
    for (const [path, item] of Object.entries(/** @type {Json} */ (document.paths))) {
      for (const method of METHODS.filter((method) => item[method])) {
        const operation = item[method];
        const [tag] = operation.tags;
        byTag.get(tag)?.push(operationCard(path, method, operation, document));
        links.get(tag)?.push(h('li', null, h('a', { href: `#${operation.operationId}` }, operation.summary)));
      }
    }
    const schemas = Object.entries(/** @type {Json} */ (document.components.schemas));
    main.replaceChildren(
      h('div', { class: 'page-head' }, h('h1', null, 'HTTP API')),
      h(
        'div',
        { class: 'page-body' },
        h('p', null, document.info.description, ` Version ${document.info.version}.`),
        h(
          'nav',
          { class: 'card contents', 'aria-label': 'Operations' },
          [...links].map(([tag, items]) => h('div', null, h('h2', null, tag), h('ul', null, items))),
        ),
        [...byTag].flatMap(([tag, cards]) => [h('h2', { class: 'group' }, tag), ...cards]),
        h('h2', { class: 'group' }, 'Schemas'),
        schemas.map(([name, schema]) =>
          h(
            'section',
            { class: 'card', id: `schema-${name}` },
            h('h3', { class: 'mono' }, name),
            schema.description ? h('p', null, prose(schema.description)) : null,
            schema.properties || schema.oneOf ? members(schema) : h('p', null, kind(schema), ' ', bounds(schema)),
            schema.examples ? example(schema.examples[0]) : null,
          ),
        ),
      ),
    );
  }
}

customElements.define('ov-docs', Docs);
