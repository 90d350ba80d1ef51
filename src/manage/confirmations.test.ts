import { expect, it } from 'vitest';
import { hashOf } from './confirmations.ts';

it.each([
  'mailto:Ann@host.example',
  'mailto:ann%2Bx@host.example',
  'mailto:ann+a+b@host.example',
  'mailto:ann%2b%2Bx@host.example',
])('counts %s as the same mailbox', (url) => expect(hashOf(url)).toEqual(hashOf('mailto:ann@host.example')));

it.each(['mailto:anna@host.example', 'mailto:ann@host2.example', 'mailto:%2Bann@host.example'])(
  'counts %s as another mailbox',
  (url) => expect(hashOf(url)).not.toEqual(hashOf('mailto:ann@host.example')),
);
