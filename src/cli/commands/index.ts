import type { Command } from '../command.ts';
import { archive } from './archive.ts';
import { capacity } from './capacity.ts';
import { catalogue } from './catalogue.ts';
import { dev } from './dev.ts';
import { doctor } from './doctor.ts';
import { expunged } from './expunged.ts';
import { kafka } from './kafka.ts';
import { keys } from './keys.ts';
import { migrate } from './migrate.ts';
import { relay } from './relay.ts';
import { rotateEncryptionKey } from './rotate-encryption-key.ts';
import { serve } from './serve.ts';

/** In the order in which `posthorn help` lists them. */
export const commands: readonly Command[] = [
  dev,
  serve,
  doctor,
  migrate,
  keys,
  catalogue,
  relay,
  kafka,
  archive,
  expunged,
  rotateEncryptionKey,
  capacity,
];
