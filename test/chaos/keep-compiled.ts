/**
 * Loaded into every process of a run: Node writes its compile cache (NODE_COMPILE_CACHE) only at a clean exit, and
 * these processes are usually killed. The cache halves the time of the next start.
 */
import { flushCompileCache } from 'node:module';

const AFTER_START_MS = 2000;
setTimeout(flushCompileCache, AFTER_START_MS).unref();
