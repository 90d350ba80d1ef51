/** Encodings of bytes, with functions that every runtime has. */

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export type Bytes = Uint8Array<ArrayBuffer>;

export const toBytes = (text: string): Bytes => encoder.encode(text) as Bytes;
export const toText = (bytes: Uint8Array): string => decoder.decode(bytes);

export function concat(...parts: Uint8Array[]): Bytes {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Decodes base64, with or without padding. Returns null if the text is not base64. */
export function fromBase64(text: string): Bytes | null {
  if (!BASE64.test(text) || text.replace(/=+$/, '').length % 4 === 1) return null;
  const binary = atob(text.replace(/=+$/, ''));
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

const HEX = /^(?:[0-9a-fA-F]{2})+$/;

/** Decodes hex. Returns null if the text is not hex. */
export function fromHex(text: string): Bytes | null {
  if (!HEX.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

export function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Compares in a time that depends on the lengths only, so that it reveals nothing about the content. */
export function equalInConstantTime(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i += 1) difference |= a[i]! ^ b[i]!;
  return difference === 0;
}
