import { PEER_ADDRESS_TTL_MS, type PeerAddress, type PeerDirectory } from '../ports/peer-directory.ts';
import type { Database } from './database.ts';
import { withStoreErrors } from './store-error.ts';

const TTL = `${PEER_ADDRESS_TTL_MS} milliseconds`;

const ANNOUNCE = {
  name: 'announce_peer',
  text: `
    with expired as (
      delete from posthorn.peers where seen_at < now() - interval '${TTL}' and id <> $1
    ),
    self as (
      insert into posthorn.peers (id, node, host, port, wire_version) values ($1, $2, $3, $4, $5)
          on conflict (id) do update set host = excluded.host, port = excluded.port, seen_at = now()
    )
    select id, host, port from posthorn.peers
     where node <> $2 and wire_version = $5 and seen_at >= now() - interval '${TTL}'`,
};

export function createPostgresPeerDirectory(database: Pick<Database, 'pool'>): PeerDirectory {
  return {
    async announce({ id, node, host, port, wireVersion }) {
      const { rows } = await withStoreErrors(
        database
          .pool('lookup')
          .query<PeerAddress>({ ...ANNOUNCE, values: [id, node, host, port, wireVersion] }),
      );
      return rows;
    },
    async withdraw(id) {
      await withStoreErrors(database.pool('lookup').query('delete from posthorn.peers where id = $1', [id]));
    },
  };
}
