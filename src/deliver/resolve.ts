/**
 * Names to addresses. c-ares rather than getaddrinfo: the latter blocks one of four shared threads per lookup, so a
 * handful of endpoints with a dead name server would hold up everybody's new connections.
 */
import { Resolver } from 'node:dns';

/** Gives every address of the name, or an error. May answer synchronously. */
export type Lookup = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly string[]) => void,
) => void;

export interface DnsOptions {
  /** `host:port` of the name servers; default: the system's. */
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
  readonly tries?: number;
}

export function createDnsLookup(options: DnsOptions = {}): Lookup {
  const resolver = new Resolver({ timeout: options.timeoutMs ?? 2000, tries: options.tries ?? 2 });
  if (options.servers !== undefined) resolver.setServers([...options.servers]);
  return (hostname, done) => {
    let waiting = 2;
    const found: string[] = [];
    let failure: NodeJS.ErrnoException | null = null;
    const collect = (error: NodeJS.ErrnoException | null, addresses: string[]): void => {
      if (error === null) found.push(...addresses);
      // "No AAAA records" is no failure of the name as long as it has A records, and less telling than any other.
      else if (failure === null || failure.code === 'ENODATA') failure = error;
      waiting -= 1;
      if (waiting === 0) done(found.length > 0 ? null : failure, found);
    };
    resolver.resolve4(hostname, collect);
    resolver.resolve6(hostname, collect);
  };
}
