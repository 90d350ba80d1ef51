/** The argument that makes the executable a converter process. */
export const CONVERTER_ROLE = 'converter-process';
