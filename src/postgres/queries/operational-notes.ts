/** Notes about what happened, written by the statements that make it happen. See src/upkeep/operational-events.ts. */

import type { Uuid } from '../../domain/ids.ts';
import { type OperationalType, operationalTypes } from '../../domain/operational.ts';
import type { Client } from '../database.ts';
import { ownerOfLane } from './ownership.ts';

/**
 * One note for all deliveries that die together for one reason. `from` has delivery_id, endpoint_id, event_type, reason,
 * attempts, status_code and error_class. Deliveries of operational events get no note, so that operational events are
 * never about themselves.
 */
export const noteDeaths = (from: string): string => `
  insert into posthorn.operational_notes (kind, endpoint_id, detail)
  select '${operationalTypes.deliveryDead}', endpoint_id, json_build_object(
           'count', count(*), 'reason', reason, 'event_type', event_type, 'delivery_id', (array_agg(delivery_id))[1],
           'attempts', (array_agg(attempts))[1], 'status_code', (array_agg(status_code))[1],
           'error_class', (array_agg(error_class))[1])
    from ${from} where event_type not like 'posthorn.%'
   group by endpoint_id, event_type, reason`;

/** `rows` is a JSON array. Only the owner of the lane may write notes about a circuit, as with the circuit itself. */
export const noteCircuits = (rows: string, owner: string): string => `
  insert into posthorn.operational_notes (id, kind, endpoint_id, detail)
  select id, kind, endpoint_id, detail
    from json_to_recordset(${rows}::json) as t(id uuid, kind text, endpoint_id uuid, detail json)
   where ${ownerOfLane('t.endpoint_id')} = ${owner}
      on conflict (id) do nothing`;

/** Part of the transaction that enables or disables the endpoint. */
export async function noteEndpoint(
  client: Client,
  endpointId: Uuid,
  kind: OperationalType,
  detail: Readonly<Record<string, unknown>>,
): Promise<void> {
  await client.query(
    'insert into posthorn.operational_notes (kind, endpoint_id, detail) values ($1, $2, $3)',
    [kind, endpointId, detail],
  );
}
