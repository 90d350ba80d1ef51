import { duration, text, texts, url } from '../kinds.ts';
import { DAY, HOUR, MINUTE } from './units.ts';

export const signIn = {
  oidcIssuer: url({
    default: null,
    schemes: ['https', 'http'],
    about:
      'OpenID Connect provider for signing in to the console (docs/operate/sign-in.md). If unset, people sign in with API keys only.',
  }),
  oidcClientId: text({
    default: null,
    maxLength: 256,
    about: 'The id of Posthorn at the OpenID Connect provider.',
  }),
  oidcClientSecret: text({
    default: null,
    secret: true,
    maxLength: 1024,
    about: 'The secret of Posthorn at the provider. If unset, Posthorn is a public client (PKCE alone).',
  }),
  oidcScope: text({
    default: 'openid email profile',
    maxLength: 512,
    about: 'Scopes to ask the provider for.',
  }),
  oidcRolesClaim: text({
    default: 'groups',
    maxLength: 128,
    about: 'The claim with the roles or groups of a person: a text or a list of texts.',
  }),
  oidcAdminRoles: texts({
    default: [],
    about: 'Values of the roles claim that give everything an admin key may do.',
  }),
  oidcTenantRoles: texts({
    default: [],
    about:
      'Values of the roles claim that give everything a tenant key may do, for the tenant in POSTHORN_OIDC_TENANT_CLAIM.',
  }),
  oidcReadRoles: texts({
    default: [],
    about:
      'Values of the roles claim that give everything a read key may do: for the tenant in POSTHORN_OIDC_TENANT_CLAIM, or for all tenants if that is unset.',
  }),
  oidcTenantClaim: text({
    default: null,
    maxLength: 128,
    about: 'The claim with the tenant of a person.',
  }),
  sessionMs: duration({
    default: 8 * HOUR,
    min: MINUTE,
    max: 30 * DAY,
    about: 'How long somebody stays signed in. Roles are read when they sign in.',
  }),
};
