import { expect, test } from 'vitest';
import { certificates } from '../../test/support/certificates.ts';
import { findCertificateError } from './client-certificate.ts';

const NOW = Date.UTC(2026, 0, 1);

test('DLV-7: a client key may be on an elliptic curve, or RSA with up to 4096 bits', () => {
  expect(findCertificateError(certificates.clientOne, NOW)).toBeNull();
  expect(findCertificateError(certificates.rsa, NOW)).toBeNull();
  expect(findCertificateError(certificates.clientLong, NOW)).toEqual({
    path: 'tls.key',
    message: 'is too long: an RSA key may have at most 4096 bits',
  });
});
