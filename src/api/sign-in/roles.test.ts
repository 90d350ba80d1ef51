import { describe, expect, it } from 'vitest';
import { type RoleRules, roleOfClaims } from './roles.ts';

const rules: RoleRules = {
  rolesClaim: 'groups',
  tenantClaim: 'org',
  adminRoles: ['ops'],
  tenantRoles: ['owner'],
  readRoles: ['support', 'owner'],
  operatorTenant: 'posthorn',
};

describe('the role of a person', () => {
  it.each([
    ['an admin role', { groups: ['x', 'ops'] }, { scope: 'admin', tenant: null }],
    ['an admin role as text', { groups: 'ops' }, { scope: 'admin', tenant: null }],
    ['a tenant role', { groups: ['owner'], org: 'acme' }, { scope: 'tenant', tenant: 'acme' }],
    ['a read role', { groups: ['support'], org: 'acme' }, { scope: 'read', tenant: 'acme' }],
    ['no role', { groups: ['x'], org: 'acme' }, null],
    ['no claims', {}, null],
    ['another claim', { roles: ['ops'] }, null],
    ['a part of a role', { groups: 'ops support' }, null],
    ['a role that is not a text', { groups: [{ ops: true }, 1, null] }, null],
    ['no tenant', { groups: ['owner'] }, null],
    ['an invalid tenant', { groups: ['owner'], org: '../acme' }, null],
    ['several tenants', { groups: ['owner'], org: ['acme', 'other'] }, null],
    ['the operator tenant', { groups: ['support'], org: 'posthorn' }, null],
  ])('with %s', (_what, claims, role) => {
    expect(roleOfClaims(claims, rules)).toEqual(role);
  });

  it('is for all tenants only if people have no tenant', () => {
    const claims = { groups: ['support'], org: 'acme' };
    expect(roleOfClaims(claims, { ...rules, tenantClaim: null })).toEqual({ scope: 'read', tenant: null });
    expect(roleOfClaims({ groups: ['owner'] }, { ...rules, tenantClaim: null, readRoles: [] })).toBeNull();
  });
});
