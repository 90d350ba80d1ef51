import { tenantFields } from '../../manage/tenants.ts';
import type { TenantRecord } from '../../postgres/queries/tenants.ts';
import type { Shown } from '../openapi/describe.ts';
import type { TenantSchema } from './schema.ts';

export const showTenant = (tenant: TenantRecord): Shown<typeof TenantSchema> => ({
  id: tenant.id,
  ...tenantFields(tenant),
  created_at: tenant.created_at,
  updated_at: tenant.updated_at,
});
