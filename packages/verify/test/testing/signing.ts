/** Requests that Posthorn's real deliverer sent to a real receiver. */

import { createDeliverer, DEVELOPMENT_EGRESS } from '../../../../src/deliver/index.ts';
import type { Endpoint } from '../../../../src/domain/endpoint.ts';
import { anEndpoint, anEvent, attempt } from '../../../../test/support/attempts.ts';
import { type RecordedRequest, startReceiver } from '../../../../test/support/receiver.ts';

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const NEW_SECRET = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
export const PRIVATE_KEY =
  'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
export const PUBLIC_KEY = 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=';

export type Signing = Pick<Partial<Endpoint>, 'signature' | 'secrets'>;

/** The current secret first, then the previous ones that still sign. */
export const secrets = (...list: string[]): Pick<Endpoint, 'secrets'> => ({
  secrets: list.map((secret, index) => ({ secret, expiresAt: index === 0 ? null : Date.now() + 60_000 })),
});

/** Delivers an event and returns the request that the receiver got. */
export async function deliver(
  signing: Signing,
  data = '{"order":1,"text":"grüße 🎺"}',
): Promise<RecordedRequest> {
  const receiver = await startReceiver();
  const deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
  });
  try {
    const event = anEvent({ data: Buffer.from(data) });
    const outcome = await attempt(deliverer, anEndpoint(receiver.url, signing), { event });
    if (outcome.error !== null) throw new Error(outcome.error.message);
    return receiver.requests[0]!;
  } finally {
    await deliverer.close();
    await receiver.close();
  }
}
