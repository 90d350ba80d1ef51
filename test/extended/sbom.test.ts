/** `npm run sbom` lists what users install and what the console and the guide contain. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { shippedPackages } from '../../scripts/supply-chain.ts';
import { missingProgram, needs } from '../support/needs.ts';

test(
  'the bill of materials has every installed and every bundled package, with version and hash',
  needs(missingProgram('npm')),
  () => {
    const bom = JSON.parse(
      execFileSync('npm', ['run', '-s', 'sbom'], { encoding: 'utf8', maxBuffer: 2 ** 28 }),
    );
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: expect.stringMatching(/^1\./) });
    const components: { name: string; version: string; hashes?: unknown[]; purl: string }[] = bom.components;
    expect(new Set(components.map(({ name, version }) => `${name}@${version}`))).toEqual(shippedPackages());
    for (const { name, hashes, purl } of components) {
      expect(hashes, name).toHaveLength(1);
      expect(purl, name).toContain('pkg:npm/');
    }
    for (const tool of ['vitest', '@biomejs/biome', 'vite'])
      expect(components.map(({ name }) => name)).not.toContain(tool);
  },
);
