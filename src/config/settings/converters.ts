import { bytes, duration, integer, text } from '../kinds.ts';
import { GIB, MIB, MINUTE, SECOND } from './units.ts';

export const converters = {
  configFile: text({
    env: 'POSTHORN_CONFIG',
    flag: 'config',
    default: null,
    about:
      'The file with the converters between versions of event types: `posthorn.config.ts`, or `.js`, `.mjs`. Read once at start. If unset: no event is converted. See [pins and converters](pins.md).',
  }),
  converterTimeoutMs: duration({
    default: SECOND,
    min: 10,
    max: MINUTE,
    about: 'Time limit of one conversion. A converter that takes longer fails with `conversion_failed`.',
  }),
  converterMemoryBytes: bytes({
    default: 64 * MIB,
    min: 16 * MIB,
    max: 4 * GIB,
    about: 'Memory limit of one converter process, beyond what Node itself takes.',
  }),
  converterThreads: integer({
    internal: true,
    default: 2,
    min: 1,
    max: 64,
    about:
      'Processes that run converters, per server process. One tenant uses at most all but one of them, so that its hanging converter does not hold up other tenants.',
  }),
};
