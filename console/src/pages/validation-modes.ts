/** How payloads of an event type are checked, as the options of a form. '' stands for null. */
export const VALIDATION_MODES = [
  ['', 'as set for the tenant'],
  ['off', 'off: nothing is checked'],
  ['warn', 'warn: invalid events are delivered and flagged'],
  ['strict', 'strict: invalid events are refused'],
] as const;

export type ValidationChoice = (typeof VALIDATION_MODES)[number][0];
