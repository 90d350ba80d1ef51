/**
 * Frees what is no longer used. Each row group leaves several megabytes of garbage, most of it in buffers that V8's heap does not
 * contain, so V8 would let hundreds of megabytes pile up before it collects them.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | null = null;

export function freeMemory(): void {
  if (collect === null) {
    // `gc` exists only with this flag. Users do not have to start Node with it: it may be set later, for a new context.
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
