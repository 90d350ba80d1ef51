/** What is around every page: where one can go, whose world it is, the way to any id. */
import { type ReactNode, useEffect, useState } from 'react';
import { reachable, withQuery } from './api/client.ts';
import { useQuery } from './api/query.ts';
import { showTenant, signOut, useMay, useSession } from './api/session.ts';
import { useStore } from './api/store.ts';
import type { OverviewStats, Page } from './api/types.ts';
import { Link, navigate, usePlace } from './router.tsx';
import { Button } from './ui/basics.tsx';
import { showCount } from './ui/format.ts';
import { Icon, type IconName, Logo } from './ui/icons.tsx';
import { placeOfId } from './ui/ids.ts';
import { Palette } from './ui/palette.tsx';
import { toggleTheme, useTheme } from './ui/theme.ts';

interface Entry {
  readonly to: string;
  readonly name: string;
  readonly icon: IconName;
}

const WATCH: readonly Entry[] = [
  { to: '/', name: 'Overview', icon: 'overview' },
  { to: '/events', name: 'Events', icon: 'events' },
  { to: '/endpoints', name: 'Endpoints', icon: 'endpoint' },
  { to: '/dead-letters', name: 'Dead letters', icon: 'dead' },
  { to: '/live', name: 'Live tail', icon: 'live' },
];

export function usePageEntries(): { watch: readonly Entry[]; build: readonly Entry[] } {
  const may = useMay();
  const build: Entry[] = [{ to: '/event-types', name: 'Event types', icon: 'types' }];
  if (may.inbox) build.push({ to: '/inbox', name: 'Inbox', icon: 'inbox' });
  if (may.inbox && may.write) build.push({ to: '/start', name: 'Guided start', icon: 'start' });
  if (may.admin) build.push({ to: '/keys', name: 'API keys', icon: 'keys' });
  build.push({ to: '/audit', name: 'Audit log', icon: 'audit' });
  return { watch: WATCH, build };
}

export function Shell({ children }: { children: ReactNode }) {
  const [menu, setMenu] = useState(false);
  const [palette, setPalette] = useState(false);
  const { path } = usePlace();
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever went somewhere is done with the menu
  useEffect(() => setMenu(false), [path]);

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setPalette((open) => !open);
    };
    const pasted = (event: ClipboardEvent): void => {
      const inField = (event.target as HTMLElement).closest?.('input, textarea, select, dialog') != null;
      const place = inField ? null : placeOfId(event.clipboardData?.getData('text') ?? '');
      if (place !== null) navigate(place.to);
    };
    window.addEventListener('keydown', pressed);
    window.addEventListener('paste', pasted);
    return () => {
      window.removeEventListener('keydown', pressed);
      window.removeEventListener('paste', pasted);
    };
  }, []);

  return (
    <div className="shell">
      <Side open={menu} />
      <button
        type="button"
        className="side-scrim"
        aria-label="Close the menu"
        onClick={() => setMenu(false)}
      />
      <div>
        <header className="top">
          <span className="menu-button">
            <Button
              kind="quiet"
              icon="menu"
              label="Menu"
              aria-expanded={menu}
              onClick={() => setMenu(true)}
            />
          </span>
          <button type="button" className="search-trigger" onClick={() => setPalette(true)}>
            <Icon name="search" />
            <span className="truncate">Search or paste an id</span>
            <kbd>⌘K</kbd>
          </button>
          <span className="grow" />
          <TenantChoice />
          <ThemeButton />
        </header>
        <ConnectionNotice />
        <main className="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      {palette && <Palette onClose={() => setPalette(false)} />}
    </div>
  );
}

function Side({ open }: { open: boolean }) {
  const { watch, build } = usePageEntries();
  const { shownTenant, scope, tenant, prefix } = useSession();
  const stats = useQuery<OverviewStats>(withQuery('/v1/stats', { window: '1h', tenant: shownTenant }), {
    pollMs: 10_000,
  });
  const dead = stats.data?.now?.dead ?? 0;
  return (
    <nav className={`side${open ? ' open' : ''}`} aria-label="Pages">
      <Link to="/" className="brand">
        <Logo />
        Posthorn
      </Link>
      {watch.map((entry) => (
        <SideLink key={entry.to} {...entry} count={entry.to === '/dead-letters' ? dead : 0} />
      ))}
      <div className="side-title">Developers</div>
      {build.map((entry) => (
        <SideLink key={entry.to} {...entry} />
      ))}
      <div className="side-foot small faint">
        <div>
          Signed in with <span className="mono">{prefix}…</span>
          <br />
          {scope === 'admin'
            ? 'Admin key, every tenant'
            : `${scope === 'read' ? 'Read-only' : 'Tenant'} key${tenant === null ? ', every tenant' : ` of ${tenant}`}`}
        </div>
        <Button kind="small" icon="out" onClick={() => signOut()}>
          Sign out
        </Button>
      </div>
    </nav>
  );
}

function SideLink({ to, name, icon, count = 0 }: Entry & { count?: number }) {
  const { path } = usePlace();
  const here = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
  return (
    <Link to={to} className="side-link" aria-current={here ? 'page' : undefined}>
      <Icon name={icon} />
      {name}
      {count > 0 && <span className="side-count">{showCount(count)}</span>}
    </Link>
  );
}

function TenantChoice() {
  const { shownTenant, tenant } = useSession();
  const may = useMay();
  const tenants = useQuery<Page<{ id: string }>>(may.allTenants ? '/v1/tenants?limit=250' : null);
  if (!may.allTenants) return <span className="badge accent">{tenant}</span>;
  const known = tenants.data?.data.map(({ id }) => id) ?? [];
  const all = shownTenant === null || known.includes(shownTenant) ? known : [shownTenant, ...known];
  return (
    <select
      className="input"
      style={{ width: 'auto', maxWidth: 'min(180px, 32vw)' }}
      aria-label="Tenant"
      value={shownTenant ?? ''}
      onChange={(event) => showTenant(event.target.value === '' ? null : event.target.value)}
    >
      <option value="">All tenants</option>
      {all.map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </select>
  );
}

/** What is on the page may be old by now: that should be known. */
function ConnectionNotice() {
  const isReachable = useStore(reachable);
  return (
    <div role="status">
      {!isReachable && <div className="offline">Posthorn does not answer. Trying again…</div>}
    </div>
  );
}

function ThemeButton() {
  const theme = useTheme();
  return (
    <Button
      kind="quiet"
      icon={theme === 'dark' ? 'sun' : 'moon'}
      label={theme === 'dark' ? 'Light theme' : 'Dark theme'}
      onClick={toggleTheme}
    />
  );
}
