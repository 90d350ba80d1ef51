import type { Endpoint } from '@posthorn/client';

/** Code of a receiver that verifies the signature of an endpoint. */
export function buildVerifySnippet(signature: Endpoint['signature']): string {
  const {
    profile,
    header = null,
    prefix = null,
  } = typeof signature === 'string' ? { profile: signature } : signature;
  const isStandard = profile === 'standard' || profile === 'standard-ed25519';
  const options = [
    'secret: process.env.WEBHOOK_SECRET',
    !isStandard && `profile: '${profile}'`,
    header !== null && `header: '${header}'`,
    prefix !== null && `prefix: '${prefix}'`,
  ].filter(Boolean);
  return `import { verifyWebhook, webhookOf } from '@posthorn/verify/express';

// Before app.use(express.json()): the signature covers the bytes of the body.
app.post('/webhooks', verifyWebhook({ ${options.join(', ')} }), (request, response) => {
  const { id, type, payload } = webhookOf(request);
  response.status(204).end();
});
`;
}
