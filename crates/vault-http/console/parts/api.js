// The HTTP API: one function that calls it, and the form of what it returns.

import * as session from './session.js';

/**
 * @typedef {{state: 'unchecked' | 'healthy' | 'failing' | 'expiring' | 'expired', reason?: string, checked_at?: string, since?: string}} Health
 * @typedef {{id: string, type: CredentialType, namespace: string, information?: Record<string, any>, version: number,
 *   created_at: string, updated_at: string, labels?: Record<string, string>, vend: 'any' | 'short', health: Health,
 *   description?: string, expires_at?: string, last_activated_at?: string, staged_version?: number, previous_version?: number, previous_version_until?: string, damaged?: boolean}} Credential
 * @typedef {'s3' | 'azure_identity' | 'gcs' | 'direct-link' | 's3-federated' | 'azure-federated' | 'gcs-federated'} CredentialType
 * @typedef {{issuer: string, subject: string, audience: string, steps: {title: string, language: string, text: string}[]}} ProviderTrust
 * @typedef {{version: number, state: 'current' | 'staged' | 'previous', information?: Record<string, any>, created_at: string,
 *   expires_at?: string, health?: Health, damaged?: boolean}} Version
 * @typedef {{integration: string, at: string, expires_at: string, ended_at?: string, version: number, form: string, purpose?: string, workload?: string}} Use
 * @typedef {{integration: string, version: number, current: boolean, activations: number, last_activated_at: string, held_until?: string}} Holder
 * @typedef {{id: string, namespace: string, type: CredentialType, version: number, state: 'current' | 'staged' | 'previous', matched: 'data' | 'fingerprint' | 'key-id'}} FoundKey
 * @typedef {{line: number, field?: string, reason: string}} ReadViolation
 * @typedef {{name: string, type?: CredentialType, data?: Record<string, any>, expires_at?: string, left_out?: string[], needs?: ReadViolation, refused?: ReadViolation}} ReadEntry
 * @typedef {'admin' | 'editor' | 'viewer'} Role
 * @typedef {{code: string, at?: string, detail: string, account?: string}} Notice
 * @typedef {{id: string, email: string, role: Role, organization: string, passcode_enrolled_at: string,
 *   recovery_codes_left: number, notices: Notice[], server: Server}} OwnAccount
 * @typedef {{verify: boolean, mail: boolean, activation_url?: string, federation_issuer?: string}} Server
 * @typedef {{id: string, created_at: string, expires_at: string, last_used_at: string, network: string, client?: string,
 *   current: boolean}} Session
 * @typedef {{id: string, email: string, role: Role, state: 'active' | 'disabled' | 'invited' | 're-enrolling',
 *   created_at: string, last_login_at?: string, locked: boolean, locked_since?: string, failed_logins?: number, invitation_expires_at?: string}} Account
 * @typedef {{id: string, name: string, namespaces: string[], managed_by?: string, state: 'active' | 'disabled' | 'expired', created_at: string,
 *   expires_at?: string, last_used_at?: string, previous_token_until?: string}} Integration
 * @typedef {{id: string, activations: number, last_activated_at?: string, denied: number, last_denied_at?: string}} IntegrationUsage
 * @typedef {{integration: string, namespace: string, activations: number, last_activated_at: string, every_days?: number, usual_time?: string, silent: boolean}} NamespaceUse
 * @typedef {{since: string, activations: number[], denied: number[], uses: NamespaceUse[],
 *   denials: {integration: string, namespace?: string, action: string, denied: number, last_denied_at: string}[]}} NamespaceUsage
 * @typedef {{email: string, organization: string, invited_by?: string, expires_at: string}} Invitation
 * @typedef {{id: string, kind: 'webhook' | 'email', url?: string, to?: string, events: string[], state: 'active' | 'failing' | 'disabled', created_at: string,
 *   last_delivered_at?: string, last_error?: string}} Receiver
 * @typedef {{id: string, type: string, timestamp: string, state: 'waiting' | 'delivered' | 'failed', attempts: number, last_attempt_at?: string,
 *   next_attempt_at?: string, last_error?: string}} Delivery
 * @typedef {{namespace: string, credentials: number, frozen: boolean, frozen_at?: string}} Namespace
 * @typedef {{id: string, at: string, actor: string, action: string, subject: string, count?: number, account?: string,
 *   integration?: string, session?: string, namespace?: string, purpose?: string, network?: string, request_id?: string,
 *   changes?: {field: string, from?: string, to?: string}[],
 *   credentials?: {id: string, version: number, form: string}[]}} AuditEntry
 * @typedef {{secret: string, uri: string}} Totp
 * @typedef {{check: string, result: 'passed' | 'failed' | 'warning' | 'skipped', bucket?: string, reason?: string, remedy?: string}} Check
 * @typedef {{pointer: string, code: string, detail: string}} FieldError
 */

const base = document.querySelector('meta[name="orgvault-base-path"]')?.getAttribute('content') ?? '/v1';

/** How long a response may take, in milliseconds. */
const TIMEOUT = 60_000;

/** A refusal of the server, or its silence. */
export class Problem extends Error {
  /**
   * @param {number} status 0 if there was no answer
   * @param {Record<string, any>} document
   */
  constructor(status, document) {
    super(document.detail);
    this.status = status;
    /** @type {string} */
    this.code = document.code ?? 'unknown';
    /** @type {string} */
    this.title = document.title ?? 'The request failed';
    /** @type {string} */
    this.detail = document.detail ?? `The server answered with status ${status}.`;
    /** @type {FieldError[]} */
    this.errors = document.errors ?? [];
    /** @type {Check[] | undefined} */
    this.checks = document.checks;
    /** @type {string | undefined} */
    this.requestId = document.request_id;
  }
}

/**
 * @typedef {object} Answer
 * @property {any} body
 * @property {string | null} etag
 * @property {string | null} next the path of the next page
 */

/**
 * Sends a request below the base path.
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, headers?: Record<string, string>, open?: boolean, token?: string, keepalive?: boolean}} [options] `open`: without the token
 * @returns {Promise<Answer>}
 */
export async function call(method, path, { body, headers = {}, open = false, token, keepalive = false } = {}) {
  const sent = new Headers(headers);
  const authorization = token ?? (open ? undefined : session.token());
  if (authorization) sent.set('Authorization', `Bearer ${authorization}`);
  if (body !== undefined) sent.set('Content-Type', 'application/json');
  let response;
  let text;
  try {
    response = await fetch(base + path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      keepalive,
      signal: AbortSignal.timeout(TIMEOUT),
    });
    text = await response.text();
  } catch {
    throw new Problem(0, {
      code: 'unreachable',
      title: 'The server did not answer',
      detail: `Check your connection and try again.${method === 'GET' ? '' : ' The server may have made the change.'}`,
    });
  }
  /** @type {any} */
  let parsed = null;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    if (response.ok) throw new Problem(response.status, { detail: 'The answer is not from an OrgVault server.' });
  }
  if (!response.ok) {
    const problem = new Problem(response.status, parsed ?? {});
    if (problem.code === 'invalid-token' && authorization && authorization === session.token()) {
      session.end('Your session has ended. Sign in again to carry on.', true);
    }
    throw problem;
  }
  return { body: parsed, etag: response.headers.get('ETag'), next: nextPage(response.headers.get('Link')) };
}

/** @param {string | null} link */
function nextPage(link) {
  const found = /^<([^>]+)>; rel="next"$/.exec(link ?? '');
  return found?.[1]?.startsWith(`${base}/`) ? found[1].slice(base.length) : null;
}

/**
 * A path of `segments`, each escaped.
 * @param {...(string | number)} segments
 */
export function path(...segments) {
  return `/${segments.map((segment) => encodeURIComponent(String(segment))).join('/')}`;
}

/**
 * `values` as a query, without empty ones.
 * @param {Record<string, string | string[] | undefined | null>} values
 */
export function query(values) {
  const pairs = Object.entries(values).flatMap(([name, value]) =>
    [value ?? '']
      .flat()
      .filter(Boolean)
      .map((one) => [name, one]),
  );
  const text = new URLSearchParams(pairs).toString();
  return text ? `?${text}` : '';
}

/** Keeps an `Idempotency-Key` as long as the same body is sent, so that a repetition after a lost answer has one effect. */
export class Idempotency {
  #body = '';
  #key = '';

  /**
   * @param {unknown} body
   * @returns {Record<string, string>}
   */
  header(body) {
    const text = JSON.stringify(body);
    if (text !== this.#body) {
      this.#body = text;
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      this.#key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    }
    return { 'Idempotency-Key': this.#key };
  }
}
