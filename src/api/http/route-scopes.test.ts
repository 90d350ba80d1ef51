import { describe, expect, it } from 'vitest';
import { readDocument } from '../../../test/support/routes.ts';
import { routesWithScopes } from './route-scopes.ts';

describe('route scopes', () => {
  it('name every route that needs a key, and no other', async () => {
    const { paths } = await readDocument();
    const names = Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ operationId, security }) => (security.length > 0 ? operationId : [])),
    );
    // Metrics need a key only from elsewhere. Inboxes exist only with POSTHORN_INBOX.
    const others = ['getMetrics', ...[...routesWithScopes].filter((name) => /Inbox/.test(name))];
    expect([...routesWithScopes].sort()).toEqual([...new Set([...names, ...others])].sort());
  });
});
