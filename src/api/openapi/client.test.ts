import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { Posthorn } from '../../../packages/client/src/index.ts';
import { clientCode, methodName } from '../../../scripts/client-code.ts';
import { readDocument } from '../../../test/support/routes.ts';
import type { OpenApiDocument } from './document.ts';

let document: OpenApiDocument;
beforeAll(async () => {
  document = await readDocument();
});

describe('the client', () => {
  it('is up to date (if not: npm run client:generate)', () => {
    const file = new URL('../../../packages/client/src/generated.ts', import.meta.url);
    // Compared with ===, because a failure should show the command and not a long difference.
    expect(readFileSync(file, 'utf8') === clientCode(document), 'run: npm run client:generate').toBe(true);
  });

  it('has a method for every operation, and no two of the same name', () => {
    const posthorn = new Posthorn({ url: '', key: '' }) as unknown as Record<string, Record<string, unknown>>;
    const names = Object.values(document.paths)
      .flatMap((methods) => Object.values(methods))
      // The client has no method for streams.
      .filter(({ responses }) => !JSON.stringify(responses).includes('text/event-stream'))
      .map(({ operationId, tags: [tag = ''] }) => {
        const words = tag.split(' ').map((word) => word[0]!.toUpperCase() + word.slice(1));
        const resource = words.join('').replace(/^./, (letter) => letter.toLowerCase());
        return [resource, methodName(operationId, tag)] as const;
      });
    for (const [resource, method] of names)
      expect(posthorn[resource]?.[method], `${resource}.${method}`).toBeTypeOf('function');
    expect(new Set(names.map((name) => name.join('.'))).size).toBe(names.length);
    expect(names.length).toBeGreaterThan(40);
  });
});
