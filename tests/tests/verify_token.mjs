// Verifies tokens with jose, from npm, starting from the issuer's URL only.
//
// Arguments: the directory of the packages, and the issuer. Connects through the proxy in HTTPS_PROXY, and trusts NODE_EXTRA_CA_CERTS.
// For each line `{"token", "expect", "forge"}` on standard input, prints `{"kid", "claims"}`, or `{"refused", "claim"}` with jose's code.
// The key set is read again for each line. `expect` replaces requirements of the token. `forge: {"algorithm", "key"}` signs the
// claims and key ID of the token again with a private key in PEM format. The secret of an HMAC is its public key.
import { createPrivateKey, createPublicKey } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import tls from 'node:tls';

const [packages, issuer] = process.argv.slice(2);
const { SignJWT, UnsecuredJWT, createRemoteJWKSet, decodeJwt, decodeProtectedHeader, errors, jwtVerify } =
  await import(createRequire(`${packages}/package.json`).resolve('jose'));

const proxy = new URL(process.env.HTTPS_PROXY);
class Tunnel extends https.Agent {
  createConnection({ host, port, servername }, done) {
    http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: `${host}:${port}` })
      .on('connect', (_, socket) => done(null, tls.connect({ socket, servername }))).on('error', done).end();
  }
}
const agent = new Tunnel();
const read = async (url) => {
  const response = await new Promise((done, failed) => https.get(url, { agent }, done).on('error', failed));
  return JSON.parse((await response.setEncoding('utf8').toArray()).join(''));
};

function forged(token, { algorithm, key }) {
  const claims = decodeJwt(token);
  if (algorithm === 'none') return new UnsecuredJWT(claims).encode();
  const secret = algorithm.startsWith('HS')
    ? Buffer.from(createPublicKey(key).export({ type: 'spki', format: 'pem' }))
    : createPrivateKey(key);
  return new SignJWT(claims).setProtectedHeader({ alg: algorithm, kid: decodeProtectedHeader(token).kid }).sign(secret);
}

for await (const line of createInterface({ input: process.stdin })) {
  const { token, expect, forge } = JSON.parse(line);
  const discovery = await read(`${issuer}/.well-known/openid-configuration`);
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri), { agent });
  const options = { issuer: discovery.issuer, algorithms: discovery.id_token_signing_alg_values_supported, ...expect };
  try {
    const { payload, protectedHeader } = await jwtVerify(forge ? await forged(token, forge) : token, keys, options);
    console.log(JSON.stringify({ kid: protectedHeader.kid, claims: payload }));
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    console.log(JSON.stringify({ refused: error.code, claim: error.claim }));
  }
}
