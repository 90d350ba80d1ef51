import { expect, test } from 'vitest';
import { checkSignature, type S3Account, type SignedRequest } from './support/s3-signature.ts';

/** The examples of Amazon's description. */
const account: S3Account = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const at = new Date('2013-05-24T00:00:00Z');
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

function example(
  method: string,
  target: string,
  signed: string,
  signature: string,
  headers: Record<string, string> = {},
): SignedRequest {
  return {
    method,
    target,
    headers: {
      host: 'examplebucket.s3.amazonaws.com',
      'x-amz-date': '20130524T000000Z',
      'x-amz-content-sha256': EMPTY,
      ...headers,
      authorization: `AWS4-HMAC-SHA256 Credential=${account.accessKeyId}/20130524/us-east-1/s3/aws4_request,SignedHeaders=${signed},Signature=${signature}`,
    },
  };
}
const plain = 'host;x-amz-content-sha256;x-amz-date';
const examples = [
  example(
    'GET',
    '/test.txt',
    'host;range;x-amz-content-sha256;x-amz-date',
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    { range: 'bytes=0-9' },
  ),
  example(
    'PUT',
    '/test$file.text',
    'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    {
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
    },
  ),
  example('GET', '/?lifecycle', plain, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
  example(
    'GET',
    '/?max-keys=2&prefix=J',
    plain,
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ),
];

test.each(examples)('the signature of Amazon’s example $method $target is right', (request) => {
  expect(checkSignature(request, account, at)).toBeNull();
});

test('a wrong secret, region, key, time, header or path is refused', () => {
  const [request] = examples as [SignedRequest];
  const check = (changed: Partial<SignedRequest>, other: Partial<S3Account> = {}, now = at) =>
    checkSignature({ ...request, ...changed }, { ...account, ...other }, now);
  expect(check({}, { secretAccessKey: 'other' })).toBe('SignatureDoesNotMatch');
  expect(check({}, { region: 'eu-west-1' })).toBe('AuthorizationHeaderMalformed');
  expect(check({}, { accessKeyId: 'other' })).toBe('InvalidAccessKeyId');
  expect(check({}, {}, new Date('2013-05-24T00:16:00Z'))).toBe('RequestTimeTooSkewed');
  expect(check({ target: '/test2.txt' })).toBe('SignatureDoesNotMatch');
  expect(check({ method: 'PUT' })).toBe('SignatureDoesNotMatch');
  expect(check({ headers: { ...request.headers, range: 'bytes=0-8' } })).toBe('SignatureDoesNotMatch');
  expect(check({ headers: { ...request.headers, 'x-amz-acl': 'public-read' } })).toBe('AccessDenied');
  expect(check({ headers: {} })).toBe('AccessDenied');
});
