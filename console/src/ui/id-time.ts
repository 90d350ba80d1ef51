const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** When an object with this id (`evt_…`) was made: its first 50 bits are two zeros and the milliseconds since 1970. */
export function readIdTime(id: string): Date {
  const [, text = ''] = id.split('_');
  return new Date([...text.slice(0, 10)].reduce((sum, digit) => sum * 32 + DIGITS.indexOf(digit), 0));
}
