import { oldestNode } from '../config/index.ts';

export { readVersion } from '../config/index.ts';

/**
 * Returns an error message if this Node is too old, otherwise null. npm only warns, and later failures would be
 * obscure.
 */
export function checkNodeVersion(running: string = process.versions.node): string | null {
  const needed = oldestNode();
  const [major = 0, minor = 0] = running.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return null;
  return `Posthorn needs Node ${needed} or later; this is ${running}.`;
}
