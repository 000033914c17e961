// A certified OpenID Connect provider on the loopback, for tests of persons' tokens. What it is to
// be comes as JSON: port, keys (private JWKs), audience, and seconds for which a token is good.
import Provider from 'oidc-provider';

const { port, keys, audience, seconds } = JSON.parse(process.argv[2]);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: 'dashboard',
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    id_token_signed_response_alg: 'ES256',
    redirect_uris: [
      'http://127.0.0.1/callback',
      'http://127.0.0.1/console/sign-in/callback',
      'http://localhost/console/sign-in/callback',
    ],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }],
  cookies: { keys: ['of a test'] },
  jwks: { keys },
  issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => ({
        scope: 'use',
        accessTokenFormat: 'jwt',
        accessTokenTTL: seconds,
        audience: resource === 'https://other.example.org' ? resource : audience,
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
});

provider.listen(port, '127.0.0.1');
