import { oldestNode } from '../config/index.ts';

export { readVersion } from '../config/index.ts';

/** What to say if this Node is too old, or null. npm only warns of it, and what fails later explains nothing. */
export function complainAboutNode(running: string = process.versions.node): string | null {
  const needed = oldestNode();
  const [major = 0, minor = 0] = running.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return null;
  return `Posthorn needs Node ${needed} or later; this is ${running}.`;
}
