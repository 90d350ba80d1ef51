/** The frame around every page: side bar, search, tenant choice. */
import type { Page, Stats, Tenant } from '@posthorn/client';
import { type ReactNode, useEffect, useState } from 'react';
import { isServerReachable, withQuery } from './api/client.ts';
import { useQuery } from './api/query.ts';
import { endSession, isPortal, selectTenant, usePermissions, useSession } from './api/session.ts';
import { useStore } from './api/store.ts';
import { type PageEntry, usePageEntries } from './navigation.ts';
import { Link, navigate, useLocation } from './router.tsx';
import { Button } from './ui/button.tsx';
import { formatUpTo, STATS_COUNT_LIMIT } from './ui/format.ts';
import { Icon, Logo } from './ui/icons.tsx';
import { findIdLink } from './ui/id-links.ts';
import { PALETTE_KEYS } from './ui/keyboard.ts';
import { Palette } from './ui/palette.tsx';
import { toggleTheme, useTheme } from './ui/theme.ts';
import { showError } from './ui/toasts.tsx';

export function Shell({ children }: { children: ReactNode }) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const { path } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: following a link closes the menu
  useEffect(() => setMenuOpen(false), [path]);
  useShortcuts(() => setPaletteOpen((isOpen) => !isOpen));

  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <SideBar isOpen={isMenuOpen} />
      <button
        type="button"
        className="side-scrim"
        aria-label="Close the menu"
        onClick={() => setMenuOpen(false)}
      />
      <div>
        <header className="top">
          <span className="menu-button">
            <Button
              kind="quiet"
              icon="menu"
              label="Menu"
              aria-expanded={isMenuOpen}
              onClick={() => setMenuOpen(true)}
            />
          </span>
          <button type="button" className="search-trigger" onClick={() => setPaletteOpen(true)}>
            <Icon name="search" />
            <span className="truncate">Search or paste an id</span>
            <kbd>{PALETTE_KEYS}</kbd>
          </button>
          <span className="grow" />
          <TenantSelect />
          <ThemeButton />
        </header>
        <ConnectionNotice />
        <main className="main" id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      {isPaletteOpen && <Palette onClose={() => setPaletteOpen(false)} />}
    </div>
  );
}

/** ⌘K or Ctrl+K toggles the palette; pasting an id outside of a field opens what it names. */
function useShortcuts(togglePalette: () => void): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the callback does the same at every render
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      togglePalette();
    };
    const onPaste = (event: ClipboardEvent): void => {
      const isInField = (event.target as HTMLElement).closest?.('input, textarea, select, dialog') != null;
      const link = isInField ? null : findIdLink(event.clipboardData?.getData('text') ?? '');
      if (link !== null) navigate(link.to);
    };
    window.addEventListener('keydown', onKeyDown);
    window.addEventListener('paste', onPaste);
    return () => {
      window.removeEventListener('keydown', onKeyDown);
      window.removeEventListener('paste', onPaste);
    };
  }, []);
}

function SideBar({ isOpen }: { isOpen: boolean }) {
  const { monitoring, developers } = usePageEntries();
  const { selectedTenant, scope, tenant, prefix, user } = useSession();
  const { may } = usePermissions();
  const statsPath = withQuery('/v1/stats', { window: '1h', tenant: selectedTenant });
  const stats = useQuery<Stats>(may('deliveries:read') ? statsPath : null, { pollMs: 10_000 });
  const deadLetters = stats.data?.now.dead ?? 0;
  return (
    <nav className={`side${isOpen ? ' open' : ''}`} aria-label="Pages">
      <Link to="/" className="brand">
        <Logo />
        {isPortal() ? 'Webhooks' : 'Posthorn'}
      </Link>
      {monitoring.map((entry) => (
        <SideLink key={entry.to} {...entry} count={entry.to === '/dead-letters' ? deadLetters : 0} />
      ))}
      {developers.length > 0 && <div className="side-title">Developers</div>}
      {developers.map((entry) => (
        <SideLink key={entry.to} {...entry} />
      ))}
      {!isPortal() && <DocumentationLinks />}
      <div className="side-foot small faint">
        <div>
          {isPortal() ? (
            'Portal session'
          ) : user === null ? (
            <>
              Signed in with <span className="mono">{prefix}…</span>
            </>
          ) : (
            `Signed in as ${user}`
          )}
          <br />
          {isPortal() ? tenant : describeAccess(scope, tenant, user === null ? 'key' : 'access')}
        </div>
        <Button kind="small" icon="out" onClick={() => void endSession().catch(showError)}>
          Sign out
        </Button>
      </div>
    </nav>
  );
}

/** For operators and developers: people in the portal use another site, which has its own documentation. */
function DocumentationLinks() {
  return (
    <>
      <a className="side-link" href="/docs/guide" target="_blank" rel="noreferrer">
        <Icon name="book" />
        Guide
      </a>
      <a className="side-link" href="/docs" target="_blank" rel="noreferrer">
        <Icon name="book" />
        API reference
      </a>
    </>
  );
}

function describeAccess(scope: string, tenant: string | null, what: 'key' | 'access'): string {
  if (scope === 'admin') return `Admin ${what}, all tenants`;
  return `${scope === 'read' ? 'Read-only' : 'Tenant'} ${what}, ${tenant === null ? 'all tenants' : `tenant ${tenant}`}`;
}

function SideLink({ to, name, icon, count = 0 }: PageEntry & { count?: number }) {
  const { path } = useLocation();
  const isCurrent = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
  return (
    <Link to={to} className="side-link" aria-current={isCurrent ? 'page' : undefined}>
      <Icon name={icon} />
      {name}
      {count > 0 && <span className="side-count">{formatUpTo(count, STATS_COUNT_LIMIT)}</span>}
    </Link>
  );
}

function TenantSelect() {
  const { selectedTenant, tenant } = useSession();
  const { canSeeAllTenants, isUnnarrowed } = usePermissions();
  const tenants = useQuery<Page<Tenant>>(canSeeAllTenants && isUnnarrowed ? '/v1/tenants?limit=250' : null);
  if (!canSeeAllTenants) return <span className="badge accent">{tenant}</span>;
  const known = tenants.data?.data.map(({ id }) => id) ?? [];
  const options =
    selectedTenant === null || known.includes(selectedTenant) ? known : [selectedTenant, ...known];
  return (
    <select
      className="input"
      style={{ width: 'auto', maxWidth: 'min(180px, 32vw)' }}
      aria-label="Tenant"
      value={selectedTenant ?? ''}
      onChange={(event) => selectTenant(event.target.value === '' ? null : event.target.value)}
    >
      <option value="">All tenants</option>
      {options.map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </select>
  );
}

/** Warns that the page may show old data. */
function ConnectionNotice() {
  const isReachable = useStore(isServerReachable);
  return (
    <div role="status">
      {!isReachable && <div className="offline">Posthorn does not answer. Retrying…</div>}
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
