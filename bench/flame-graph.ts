/**
 * Draws profiles of the processor as a flame graph: the width of a box is the share of time that a function and the
 * functions it called took. Time without work is left out. The processes are beside each other.
 *
 *   node bench/flame-graph.ts out.svg "2 clients at once" accept=api.cpuprofile deliver=worker.cpuprofile
 */
import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

/** What V8 writes. Times are microseconds. */
export interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

interface Frame {
  readonly name: string;
  readonly group: Group;
  us: number;
  readonly callees: Map<string, Frame>;
}

type Group = 'posthorn' | 'packages' | 'node';

const WIDTH = 1200;
const ROW = 17;
const TITLE_HEIGHT = 34;
/** Boxes that are narrower than this many pixels are left out. */
const NARROWEST = 1.5;
const CHARACTER = 6.6;
const COLOURS: Record<Group, string> = { posthorn: '#f2b04a', packages: '#8fb8de', node: '#c9c9c4' };
const NOT_WORK = new Set(['(idle)', '(program)']);

const projectUrl = pathToFileURL(`${process.cwd()}/`).href;

/** Returns the file of a function, from the root of the project or from `node_modules`. Empty: V8 itself. */
function placeOf(url: string): string {
  return url.replace(/^.*\/node_modules\//, '').replace(projectUrl, '');
}

const emptyFrame = (name: string, group: Group = 'node'): Frame => ({
  name,
  group,
  us: 0,
  callees: new Map(),
});

function frameOf(functionName: string, url: string): Frame {
  const isPackage = url.includes('/node_modules/');
  const group: Group = isPackage ? 'packages' : url.startsWith('file:') ? 'posthorn' : 'node';
  const place = placeOf(url);
  const name = functionName === '' ? '(anonymous)' : functionName;
  return emptyFrame(place === '' ? name : `${name} ${place}`, group);
}

/** Calls `visit` for every function that ran on top of the stack: its stack, innermost first, and its own time. */
export function visitStacks(
  { nodes, samples, timeDeltas }: Profile,
  visit: (stack: readonly { functionName: string; place: string }[], us: number) => void,
): void {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ownUs = sumSamples(samples, timeDeltas);
  const walk = (node: ProfileNode, callers: readonly { functionName: string; place: string }[]): void => {
    const { functionName, url } = node.callFrame;
    const stack = [{ functionName, place: placeOf(url) }, ...callers];
    const us = ownUs.get(node.id) ?? 0;
    if (us > 0 && !NOT_WORK.has(functionName)) visit(stack, us);
    for (const child of node.children ?? []) walk(byId.get(child)!, stack);
  };
  walk(nodes[0]!, []);
}

function sumSamples(samples: readonly number[], timeDeltas: readonly number[]): Map<number, number> {
  const ownUs = new Map<number, number>();
  for (const [index, id] of samples.entries()) ownUs.set(id, (ownUs.get(id) ?? 0) + (timeDeltas[index] ?? 0));
  return ownUs;
}

/** Merges the calls of the same function by the same caller. */
function buildTree(name: string, { nodes, samples, timeDeltas }: Profile): Frame {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ownUs = sumSamples(samples, timeDeltas);
  const addInto = (frame: Frame, id: number): number => {
    const node = byId.get(id)!;
    let us = ownUs.get(id) ?? 0;
    for (const childId of node.children ?? []) {
      const { functionName, url } = byId.get(childId)!.callFrame;
      if (NOT_WORK.has(functionName)) continue;
      const made = frameOf(functionName, url);
      const callee = frame.callees.get(made.name) ?? made;
      frame.callees.set(made.name, callee);
      us += addInto(callee, childId);
    }
    frame.us += us;
    return us;
  };
  const root = emptyFrame(name);
  addInto(root, nodes[0]!.id);
  return root;
}

/** Returns an SVG with a part for each process. */
export function drawFlameGraph(title: string, processes: ReadonlyMap<string, Profile>): string {
  const trees = [...processes].map(([name, profile]) => buildTree(name, profile));
  const totalUs = trees.reduce((sum, { us }) => sum + us, 0);
  const boxes: string[] = [];
  let deepest = 0;
  const draw = (frame: Frame, x: number, depth: number): void => {
    const width = (frame.us / totalUs) * WIDTH;
    if (width < NARROWEST) return;
    deepest = Math.max(deepest, depth);
    const y = TITLE_HEIGHT + depth * ROW;
    const share = ((100 * frame.us) / totalUs).toFixed(1);
    const room = Math.floor((width - 6) / CHARACTER);
    const label = room < 4 ? '' : frame.name.slice(0, room);
    boxes.push(
      `<g><title>${escapeXml(frame.name)}: ${share} %</title>` +
        `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${COLOURS[frame.group]}"/>` +
        (label === '' ? '' : `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escapeXml(label)}</text>`) +
        '</g>',
    );
    drawAll(frame.callees.values(), x, depth + 1);
  };
  const drawAll = (frames: Iterable<Frame>, x: number, depth: number): void => {
    let left = x;
    for (const frame of [...frames].sort((a, b) => b.us - a.us)) {
      draw(frame, left, depth);
      left += (frame.us / totalUs) * WIDTH;
    }
  };
  drawAll(trees, 0, 0);
  const height = TITLE_HEIGHT + (deepest + 1) * ROW + 6;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">\n` +
    `<title>${escapeXml(title)}</title>\n` +
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>\n` +
    `<text x="4" y="20" font-size="14">${escapeXml(title)}. Orange: Posthorn, blue: packages, grey: Node.</text>\n` +
    `${boxes.join('\n')}\n</svg>\n`
  );
}

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

if (import.meta.main) {
  const [svgPath, title, ...sources] = process.argv.slice(2);
  if (svgPath === undefined || title === undefined || sources.length === 0) {
    console.error('Usage: node bench/flame-graph.ts <file.svg> <title> <name>=<file.cpuprofile> …');
    process.exit(1);
  }
  const profiles = new Map<string, Profile>();
  for (const source of sources) {
    const [name = '', file = ''] = source.split('=');
    profiles.set(name, JSON.parse(await readFile(file, 'utf8')));
  }
  await writeFile(svgPath, drawFlameGraph(title, profiles));
}
