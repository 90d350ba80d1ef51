import { expectStatus, readStored, type TestPosthorn } from './posthorn.ts';

export interface EventsToPublish {
  readonly tenant: string;
  readonly type: string;
  /** One event for each. */
  readonly data: readonly unknown[];
}

/** Publishes events with one request. Returns their ids when they are stored. */
export async function publishAll(
  by: Pick<TestPosthorn, 'api'>,
  { tenant, type, data }: EventsToPublish,
): Promise<string[]> {
  const events = data.map((each) => ({ tenant, type, data: each }));
  const { body } = await expectStatus(by.api('POST', '/v1/events/batch', { events }), 202);
  const ids = body.results.map(({ id }: { id: string }) => id) as string[];
  await readStored(by, ids.at(-1)!);
  return ids;
}
