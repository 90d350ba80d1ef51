/** `npm run sbom` lists what users install and what the console contains. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { bundledPackages, productionDependencies } from '../../scripts/supply-chain.ts';
import { missingProgram, needs } from '../support/needs.ts';

test(
  'the bill of materials has every installed and every bundled package, with version and hash',
  needs(missingProgram('npm')),
  () => {
    const bom = JSON.parse(
      execFileSync('npm', ['run', '-s', 'sbom'], { encoding: 'utf8', maxBuffer: 2 ** 28 }),
    );
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: expect.stringMatching(/^1\./) });
    const components = new Map<string, { version: string; hashes?: unknown[]; purl: string }>(
      bom.components.map((each: { name: string; group?: string }) => [
        each.group === undefined || each.name.startsWith('@') ? each.name : `${each.group}/${each.name}`,
        each,
      ]),
    );
    for (const name of [...bundledPackages(), ...productionDependencies().map((each) => each.name)]) {
      expect(components.get(name), name).toMatchObject({
        version: expect.any(String),
        hashes: [expect.anything()],
      });
      expect(components.get(name)!.purl).toContain('pkg:npm/');
    }
    for (const tool of ['vitest', '@biomejs/biome', 'vite']) expect(components.has(tool), tool).toBe(false);
  },
);
