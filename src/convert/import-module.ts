/** Loads a file of the operator. The single-file executable has its own (scripts/executable). */
export const importModule = async (url: string): Promise<Record<string, unknown>> =>
  (await import(url)) as Record<string, unknown>;
