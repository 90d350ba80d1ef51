/**
 * Resolves names with c-ares instead of getaddrinfo, which blocks one of four shared threads per lookup: a few endpoints
 * with a dead name server would delay all new connections. The disadvantage is that /etc/hosts and other local sources
 * are not used; `createSystemLookup` uses them.
 */
import { Resolver, lookup as systemLookup } from 'node:dns';

/** Calls `done` with all addresses of the name, or with an error. May call it synchronously. */
export type Lookup = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly string[]) => void,
) => void;

export interface DnsOptions {
  /** `address:port` of the name servers. Default: those of the system. */
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
  readonly tries?: number;
}

/** How long the answer for one family waits for the other: some name servers drop AAAA queries. */
const SECOND_FAMILY_MS = 50;

export function createDnsLookup(options: DnsOptions = {}): Lookup {
  const resolver = new Resolver({ timeout: options.timeoutMs ?? 2000, tries: options.tries ?? 2 });
  if (options.servers !== undefined) resolver.setServers([...options.servers]);
  return (hostname, done) => {
    let waiting = 2;
    let finished = false;
    let grace: NodeJS.Timeout | null = null;
    const found: string[] = [];
    let failure: NodeJS.ErrnoException | null = null;

    const finish = (): void => {
      if (finished) return;
      finished = true;
      if (grace !== null) clearTimeout(grace);
      done(found.length > 0 ? null : failure, found);
    };
    const collect = (error: NodeJS.ErrnoException | null, addresses: string[]): void => {
      waiting -= 1;
      if (error === null) found.push(...addresses);
      // ENODATA only says that the name has no records of one family: prefer any other error.
      else if (failure === null || failure.code === 'ENODATA') failure = error;
      if (waiting === 0) finish();
      // Addresses that arrive later are ignored, so they need not be vetted.
      else if (found.length > 0) grace = setTimeout(finish, SECOND_FAMILY_MS);
    };
    resolver.resolve4(hostname, collect);
    resolver.resolve6(hostname, collect);
  };
}

/** Uses the operating system's resolver, with /etc/hosts and search domains. */
export function createSystemLookup(): Lookup {
  return (hostname, done) => {
    systemLookup(hostname, { all: true, order: 'ipv4first' }, (error, found) =>
      done(error, error === null ? found.map((one) => one.address) : []),
    );
  };
}
