/** A real OpenID Connect provider on this machine, which signs people in without asking them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

export interface TestProvider {
  readonly issuer: string;
  /** Who signs in next, with these claims besides `sub`. */
  signInAs(subject: string, claims: Record<string, unknown>): void;
  close(): Promise<void>;
}

export const CLIENT = { id: 'posthorn', secret: 'a secret of this test only' };

export async function startProvider(redirectUri: string): Promise<TestProvider> {
  const people = new Map<string, Record<string, unknown>>();
  let next = '';
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    ttl: {
      Interaction: 600,
      Grant: 600,
      Session: 600,
      AccessToken: 600,
      IdToken: 600,
      AuthorizationCode: 60,
    },
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    scopes: ['openid', 'email', 'groups'],
    claims: { openid: ['sub'], email: ['email'], groups: ['groups', 'org'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...people.get(id) }),
    }),
    // Nobody is asked for consent.
    async loadExistingGrant(context) {
      const { client, session } = context.oidc;
      const grant = new context.oidc.provider.Grant({
        clientId: client!.clientId,
        accountId: session!.accountId!,
      });
      grant.addOIDCScope('openid email groups');
      await grant.save();
      return grant;
    },
    renderError(context, out) {
      context.type = 'text';
      context.body = JSON.stringify(out);
    },
  });
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url!.startsWith('/interaction/')) return void answer(request, response);
    void provider.interactionFinished(request, response, { login: { accountId: next, remember: false } });
  });
  return {
    issuer,
    signInAs(subject, claims) {
      next = subject;
      people.set(subject, claims);
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
