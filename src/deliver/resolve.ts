/**
 * Names to addresses. c-ares rather than getaddrinfo: the latter blocks one of four shared threads per lookup, so a
 * handful of endpoints with a dead name server would hold up everybody's new connections. The price: /etc/hosts and
 * other local sources are not asked (`createSystemLookup` asks them).
 */
import { Resolver, lookup as systemLookup } from 'node:dns';

/** Gives every address of the name, or an error. May answer synchronously. */
export type Lookup = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly string[]) => void,
) => void;

export interface DnsOptions {
  /** `address:port` of the name servers; default: the system's. */
  readonly servers?: readonly string[];
  readonly timeoutMs?: number;
  readonly tries?: number;
}

/** How long the answer for one family waits for the other: name servers that drop AAAA queries are not rare. */
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
      // That a name has no AAAA records is no failure, and says less than whatever else went wrong.
      else if (failure === null || failure.code === 'ENODATA') failure = error;
      if (waiting === 0) finish();
      // Whatever comes later is never connected to, so it need not be vetted either.
      else if (found.length > 0) grace = setTimeout(finish, SECOND_FAMILY_MS);
    };
    resolver.resolve4(hostname, collect);
    resolver.resolve6(hostname, collect);
  };
}

/** The operating system's own way, with /etc/hosts and search domains, for operators who need those. */
export function createSystemLookup(): Lookup {
  return (hostname, done) => {
    systemLookup(hostname, { all: true, order: 'ipv4first' }, (error, found) =>
      done(error, error === null ? found.map((one) => one.address) : []),
    );
  };
}
