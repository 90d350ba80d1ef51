/** Valid and invalid certificates for receivers in tests. `certificates/generate.sh` creates them. */
import { readFileSync } from 'node:fs';

const read = (file: string): string =>
  readFileSync(new URL(`./certificates/${file}`, import.meta.url), 'utf8');
const pair = (name: string): { key: string; cert: string } => ({
  key: read(`${name}.key`),
  cert: read(`${name}.crt`),
});

export const certificates = {
  /** Give this to the client as its only certificate authority. */
  authority: read('authority.crt'),
  /** For receiver.test, localhost, 127.0.0.1 and ::1. */
  valid: pair('valid'),
  expired: pair('expired'),
  otherName: pair('other-name'),
  selfSigned: pair('self-signed'),
  /** Self-signed, with an RSA key. */
  rsa: pair('rsa'),
  /** The authority by which a receiver checks client certificates. */
  clientAuthority: read('client-authority.crt'),
  clientOne: pair('client-one'),
  clientTwo: pair('client-two'),
  clientExpired: pair('client-expired'),
  /** With an RSA key of 4104 bits. */
  clientLong: pair('client-long'),
};
