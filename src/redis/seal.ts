/**
 * Seals messages that travel through Redis, which others may read and write: payloads are data of customers, and nobody
 * without the encryption key of the deployment may send messages.
 *
 *   version 1 │ key id 6 │ sender 16 │ counter 6 │ sent at 6 │ tag 16 │ ciphertext        (bytes)
 *
 * AES-256-GCM. Each process has a key of its own, derived from the encryption key and the id of the process, and counts its
 * messages: so no nonce is used twice, without the limit that random nonces have. The head and the name of the channel are
 * authenticated too. A message is refused on another channel, a second time, and when it is old.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';

export interface SealOptions {
  /** Identifies this process. A process that starts again has another id. */
  readonly id: Uuid;
  /** The keys of the deployment by their ids (12 hexadecimal digits), the current one first. */
  readonly keys: ReadonlyMap<string, Buffer>;
  readonly clock: Pick<Clock, 'now'>;
}

export interface OpenedMessage {
  readonly from: Uuid;
  readonly message: Buffer;
}

export class SealError extends Error {
  override name = 'SealError';
}

const VERSION = 1;
const KEY_ID_AT = 1;
const SENDER_AT = 7;
const COUNTER_AT = 23;
const SENT_AT = 29;
const HEAD_BYTES = 35;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
/** Counters and times. */
const NUMBER_BYTES = 6;
const MAX_AGE_MS = 10_000;
/** More than the processes of any deployment. */
const MAX_SENDERS = 1_000;

/** What this process knows about the sender of authentic messages. */
interface Sender {
  readonly key: Buffer;
  counter: number;
}

export class Seal {
  readonly #options: SealOptions;
  readonly #head: Buffer;
  readonly #key: Buffer;
  /** By key id and sender. */
  readonly #senders = new Map<string, Sender>();
  #counter = 0;

  constructor(options: SealOptions) {
    this.#options = options;
    const [keyId, key] = [...options.keys][0]!;
    const sender = Buffer.from(options.id.replaceAll('-', ''), 'hex');
    this.#head = Buffer.concat([Buffer.from([VERSION]), Buffer.from(keyId, 'hex'), sender]);
    this.#key = deriveKey(key, sender);
  }

  seal(message: Buffer, channel: string): Buffer {
    this.#counter += 1;
    const head = Buffer.alloc(HEAD_BYTES);
    this.#head.copy(head);
    head.writeUIntBE(this.#counter, COUNTER_AT, NUMBER_BYTES);
    head.writeUIntBE(Math.floor(this.#options.clock.now()), SENT_AT, NUMBER_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonceOf(head)).setAAD(contextOf(head, channel));
    const body = [cipher.update(message), cipher.final()];
    return Buffer.concat([head, cipher.getAuthTag(), ...body]);
  }

  /** Throws `SealError` if the message is not authentic, not meant for this channel, repeated or old. */
  open(sealed: Buffer, channel: string): OpenedMessage {
    if (sealed.length < HEAD_BYTES + TAG_BYTES || sealed[0] !== VERSION)
      throw new SealError('A message has a format that this version of Posthorn does not know.');
    const head = sealed.subarray(0, HEAD_BYTES);
    const name = head.toString('hex', KEY_ID_AT, COUNTER_AT);
    const sender = this.#senders.get(name) ?? this.#newSender(head);
    const message = decrypt(sealed, sender.key, contextOf(head, channel));
    const counter = head.readUIntBE(COUNTER_AT, NUMBER_BYTES);
    if (counter <= sender.counter) throw new SealError('A message was repeated.');
    if (this.#options.clock.now() - head.readUIntBE(SENT_AT, NUMBER_BYTES) > MAX_AGE_MS)
      throw new SealError('A message is too old.');
    sender.counter = counter;
    this.#remember(name, sender);
    return { from: toUuid(head.toString('hex', SENDER_AT, COUNTER_AT)), message };
  }

  #newSender(head: Buffer): Sender {
    const keyId = head.toString('hex', KEY_ID_AT, SENDER_AT);
    const key = this.#options.keys.get(keyId);
    if (key === undefined) throw new SealError(`A message is sealed with the unknown key ${keyId}.`);
    return { key: deriveKey(key, head.subarray(SENDER_AT, COUNTER_AT)), counter: 0 };
  }

  /** Forgets the sender that has been silent for the longest time, if there are too many. */
  #remember(name: string, sender: Sender): void {
    this.#senders.delete(name);
    this.#senders.set(name, sender);
    if (this.#senders.size > MAX_SENDERS) this.#senders.delete(this.#senders.keys().next().value!);
  }
}

function decrypt(sealed: Buffer, key: Buffer, context: Buffer): Buffer {
  const bodyAt = HEAD_BYTES + TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(sealed), { authTagLength: TAG_BYTES })
    .setAAD(context)
    .setAuthTag(sealed.subarray(HEAD_BYTES, bodyAt));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(bodyAt)), decipher.final()]);
  } catch (cause) {
    throw new SealError('A message is not authentic.', { cause });
  }
}

/** A separate key, so that a weakness of this use does not expose the key that seals secrets. */
function deriveKey(key: Buffer, sender: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', key, sender, 'posthorn messages through redis', 32));
}

function nonceOf(head: Buffer): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  head.copy(nonce, NONCE_BYTES - NUMBER_BYTES, COUNTER_AT, COUNTER_AT + NUMBER_BYTES);
  return nonce;
}

const contextOf = (head: Buffer, channel: string): Buffer => Buffer.concat([head, Buffer.from(channel)]);

const toUuid = (hex: string): Uuid =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
