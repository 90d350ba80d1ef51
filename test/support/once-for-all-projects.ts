/**
 * A resource that several projects of a test run share. Each project runs its own set-up with its own copy of every
 * module, but all in one process: the first creates the resource, and the last to end releases it.
 */
interface Shared {
  users: number;
  readonly made: Promise<{ value: unknown; end(): Promise<void> }>;
}

const shared = globalThis as unknown as Record<symbol, Shared | undefined>;

export async function onceForAllProjects<T>(
  name: string,
  make: () => Promise<{ value: T; end(): Promise<void> }>,
): Promise<{ value: T; release(): Promise<void> }> {
  const key = Symbol.for(`posthorn.test.${name}`);
  shared[key] ??= { users: 0, made: make() };
  const entry = shared[key];
  entry.users += 1;
  const { value, end } = await entry.made;
  return {
    value: value as T,
    async release() {
      entry.users -= 1;
      if (entry.users > 0) return;
      delete shared[key];
      await end();
    },
  };
}
