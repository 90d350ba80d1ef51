/**
 * SQL for the version of the endpoints that a statement may trust: $1, the version that events were matched against, if no
 * endpoint of these tenants has changed since then, else the current version. A tenant that changes its endpoints all the
 * time must not make the batches of others outdated.
 *
 * The usual case, that nothing has changed at all, costs one comparison. A version that the database does not know belongs
 * to another history: the database was restored, and the endpoints may differ although none has a higher version. The order
 * by version makes the planner use the index, which has only the endpoints that have changed since $1.
 */
export const trustedVersion = (tenants: string): string => `
      case when v.version = $1::bigint then v.version
           when exists (select from posthorn.endpoint_versions h where h.version = $1::bigint)
                and (select e.version from posthorn.endpoints e
                      where e.version > $1::bigint and e.tenant = any (${tenants}) order by e.version limit 1) is null
           then $1::bigint
           else v.version end`;
