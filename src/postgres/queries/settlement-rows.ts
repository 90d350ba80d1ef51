/** The results of attempts as parameters of the statements that record them. */
import type { Settlement } from '../../ports/delivery-queue.ts';
import { packReceivedHeaders } from '../received-headers.ts';
import { packHeaders } from '../sent-headers.ts';

export type SettlementRow = ReturnType<typeof toRow>;

/** The bodies of all responses are one blob. Each row says which part of it is its own. */
export function toRows(settlements: readonly Settlement[]): { rows: SettlementRow[]; bodies: Buffer } {
  const bodies: Buffer[] = [];
  let start = 1;
  const rows = settlements.map((settlement) => {
    const body = settlement.attempt?.outcome.responseBody ?? null;
    const row = toRow(settlement, body === null ? null : start);
    if (body !== null) {
      bodies.push(body);
      start += body.length;
    }
    return row;
  });
  return { rows, bodies: Buffer.concat(bodies) };
}

/** Leaves out default values: the database has to parse less. */
function toRow(settlement: Settlement, bodyStart: number | null) {
  const { verdict, attempt } = settlement;
  const outcome = attempt?.outcome;
  return {
    delivery_id: settlement.deliveryId,
    before: settlement.attemptsBefore,
    verdict: verdict.kind,
    due_at: verdict.kind === 'retry' ? verdict.dueAt / 1000 : undefined,
    reason: verdict.kind === 'dead' ? verdict.reason : undefined,
    blocks: settlement.blocksLane || undefined,
    attempt_id: attempt?.id,
    started_at: outcome && outcome.startedAt / 1000,
    duration_ms: outcome && Math.round(outcome.durationMs),
    dns_ms: roundMs(outcome?.timing.dnsMs),
    connect_ms: roundMs(outcome?.timing.connectMs),
    tls_ms: roundMs(outcome?.timing.tlsMs),
    first_byte_ms: roundMs(outcome?.timing.firstByteMs),
    status_code: outcome?.statusCode ?? undefined,
    error_class: outcome?.error?.class,
    error_message: outcome?.error ? toStorableText(outcome.error.message) : undefined,
    url: outcome?.url,
    request_headers: outcome && packRequestHeaders(outcome.requestHeaders),
    response_headers: outcome?.responseHeaders ? packResponseHeaders(outcome.responseHeaders) : undefined,
    body_start: bodyStart ?? undefined,
    body_length: bodyStart === null ? undefined : outcome?.responseBody?.length,
    truncated: outcome?.responseTruncated || undefined,
    trigger: attempt?.trigger,
    fifo: (verdict.kind === 'retry' && settlement.fifo) || undefined,
    ages_from: attempt === null ? settlement.agesFrom / 1000 : undefined,
    batch_id: settlement.batchId ?? undefined,
    uncounted: (verdict.kind === 'retry' && verdict.isUncounted) || undefined,
  };
}

/** The events of a batch share one request and one answer, so their headers are packed once. */
function memoizeLast(pack: (headers: Headers) => string): (headers: Headers) => string {
  let last: Headers | null = null;
  let packed = '';
  return (headers) => {
    if (headers !== last) packed = pack(headers);
    last = headers;
    return packed;
  };
}
type Headers = Readonly<Record<string, string>>;
const packRequestHeaders = memoizeLast(packHeaders);
const packResponseHeaders = memoizeLast((headers) => toStorableText(packReceivedHeaders(headers)));

const roundMs = (ms: number | null | undefined): number | undefined =>
  ms === null || ms === undefined ? undefined : Math.round(ms);

/** Replaces NUL and lone surrogates, which PostgreSQL's text does not take: one such row would fail the batch. */
export function toStorableText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd');
}
