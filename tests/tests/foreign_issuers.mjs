// Two issuers of tokens that are not ours: oauth2-mock-server and oidc-provider, from npm.
//
// Prints the issuers' URLs as a line of JSON. Then, for each line `{"kind", "audience", "subject", "algorithm"}` on standard input, prints a
// token. The subject of a token of oidc-provider is its client's id, `etl-client`.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.argv[2]}/package.json`);
const load = async (name) => import(require.resolve(name));
const { OAuth2Server } = await load('oauth2-mock-server');
const { default: Provider } = await load('oidc-provider');

const mock = new OAuth2Server();
const keys = {};
for (const algorithm of ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']) {
  keys[algorithm] = (await mock.issuer.keys.generate(algorithm)).kid;
}
await mock.start(0, '127.0.0.1');
mock.issuer.url = `http://127.0.0.1:${mock.address().port}`;

const server = createServer((request, response) => handle(request, response));
let handle = (_, response) => response.end();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${server.address().port}`;
const client = { client_id: 'etl-client', client_secret: 'etl-secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const provider = new Provider(url, {
  clients: [client],
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({ scope: '', audience: resource, accessTokenTTL: 300, accessTokenFormat: 'jwt' }),
    },
  },
});
handle = provider.callback();
console.log(JSON.stringify({ mock: mock.issuer.url, provider: url }));

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, audience, subject, algorithm } = JSON.parse(line);
  if (kind === 'mock') {
    const claims = (_, payload) => Object.assign(payload, { aud: audience, sub: subject });
    console.log(await mock.issuer.buildToken({ kid: keys[algorithm], expiresIn: 300, scopesOrTransform: claims }));
  } else {
    const body = new URLSearchParams({ grant_type: 'client_credentials', resource: audience });
    const authorization = `Basic ${btoa('etl-client:etl-secret')}`;
    const answer = await fetch(`${url}/token`, { method: 'POST', body, headers: { authorization } });
    const { access_token: token, ...rest } = await answer.json();
    console.log(token ?? JSON.stringify(rest));
  }
}
process.exit(0);
