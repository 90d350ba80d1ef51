#!/usr/bin/env node
/**
 * The command `posthorn`. In a checkout it runs the sources, so it is never out of date; in an installed package it runs
 * what was compiled. Plain JavaScript that an old Node understands, because it has to say that the Node is too old.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = path.join(root, 'src/cli/main.ts');
const isCheckout = existsSync(source);
const main = isCheckout ? source : path.join(root, 'dist/cli/main.js');
const needed = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).engines.node.replace(
  '>=',
  '',
);
/** Tells the pinned Node which process started it. Not a setting. */
const LAUNCHER_VARIABLE = 'POSTHORN_LAUNCHER_PID';
const WATCH_LAUNCHER_MS = 500;
/** The process must be listening by then: writing the compile cache should not delay a start. */
const WRITE_COMPILE_CACHE_AFTER_MS = 3000;

if (isTooOld(process.versions.node)) {
  const pinned = findPinnedNode();
  if (pinned === null) refuse();
  else runWith(pinned);
} else {
  endWithLauncher();
  keepCompiledCode();
  if (isCheckout && startsServer()) await Promise.all([buildConsole(), buildGuide()]);
  await import(pathToFileURL(main).href);
}

function isTooOld(version) {
  const [major, minor] = version.split('.').map(Number);
  const [neededMajor, neededMinor] = needed.split('.').map(Number);
  return major < neededMajor || (major === neededMajor && minor < neededMinor);
}

/** The npm package `node`: a development dependency of the checkout, and a user may install it beside Posthorn. */
function findPinnedNode() {
  try {
    const require = nodeModule.createRequire(import.meta.url);
    const folder = path.dirname(require.resolve('node/package.json'));
    const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const binary = path.join(folder, 'bin/node');
    return !isTooOld(version) && existsSync(binary) ? binary : null;
  } catch {
    return null;
  }
}

function refuse() {
  process.stderr.write(`Posthorn needs Node ${needed} or later; this is ${process.versions.node}.
Install a newer Node (https://nodejs.org), or let npm bring one along:
  npx -p node@24 -p posthorn posthorn ${process.argv.slice(2).join(' ') || 'dev'}
or use a container image that has one, such as node:24.\n`);
  process.exitCode = 1;
}

function runWith(node) {
  const env = { ...process.env, [LAUNCHER_VARIABLE]: String(process.pid) };
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit', env });
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  // A terminal sends Ctrl-C to both processes. A second SIGINT would cut the graceful stop short.
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT');
  });
  child.on('error', (error) => {
    process.stderr.write(`${node} cannot be started: ${error.message}\n`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** A launcher that is killed with SIGKILL cannot end this process, so it ends itself. */
function endWithLauncher() {
  const launcher = process.env[LAUNCHER_VARIABLE];
  // Processes that this one starts have another parent.
  delete process.env[LAUNCHER_VARIABLE];
  if (launcher === undefined) return;
  const watch = setInterval(() => {
    if (process.ppid === Number(launcher)) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, WATCH_LAUNCHER_MS);
  watch.unref();
}

/**
 * Compiling the modules takes half of a start. Node keeps the result inside the package, where no other user can write;
 * where this user cannot write either, it does without.
 */
function keepCompiledCode() {
  nodeModule.enableCompileCache(path.join(root, 'node_modules/.cache/posthorn'));
  // Node writes the cache when a process ends by itself, which a killed server never does.
  setTimeout(nodeModule.flushCompileCache, WRITE_COMPILE_CACHE_AFTER_MS).unref();
}

/** False in the children of `serve --processes`: the parent has built the console. */
function startsServer() {
  return ['dev', 'serve'].includes(process.argv[2]) && process.env.NODE_UNIQUE_ID === undefined;
}

/** Without the development dependencies it cannot be built; /docs/guide then says so. */
async function buildGuide() {
  const { isGuideOutdated } = await import('../scripts/guide/is-outdated.ts');
  if (!(await isGuideOutdated())) return;
  try {
    await (await import('../scripts/build-guide.ts')).buildGuide();
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  }
}

/** Without the development dependencies it cannot be built; the page at /console then says so. */
async function buildConsole() {
  const { isConsoleOutdated } = await import('../scripts/build-console.ts');
  if (!(await isConsoleOutdated())) return;
  process.stderr.write('Building the console…\n');
  const script = path.join(root, 'scripts/build-console.ts');
  const build = spawn(process.execPath, [script], { stdio: ['ignore', 'ignore', 'inherit'] });
  await new Promise((resolve) => build.on('exit', resolve).on('error', resolve));
}
