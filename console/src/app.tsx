import { Component, type ReactNode, useEffect } from 'react';
import { useSessionState } from './api/session.ts';
import { usePageEntries } from './navigation.ts';
import { SignIn } from './pages/sign-in.tsx';
import { matchPath, navigate, useLocation } from './router.tsx';
import { routes } from './routes.tsx';
import { Shell } from './shell.tsx';
import { Button, LinkButton } from './ui/button.tsx';
import { EmptyState } from './ui/empty-state.tsx';
import { Toasts } from './ui/toasts.tsx';

export function App() {
  const state = useSessionState();
  if (state.kind === 'starting')
    return (
      <main className="sign-in soft" aria-busy="true">
        <h1 className="sr-only">Posthorn</h1>
        {state.notice}
      </main>
    );
  if (state.kind === 'signed-out')
    return <SignIn notice={state.notice} hasSingleSignOn={state.hasSingleSignOn ?? false} />;
  return (
    <>
      <Shell>
        <CurrentPage />
      </Shell>
      <Toasts />
    </>
  );
}

function CurrentPage() {
  const { path } = useLocation();
  const { monitoring, developers } = usePageEntries();
  const first = [...monitoring, ...developers][0]?.to ?? '/';
  // A key that may not read deliveries has no overview.
  useEffect(() => {
    if (path === '/') navigate(first, { replace: true });
  }, [path, first]);
  if (path === '/' && first !== '/') return null;
  for (const [pattern, render] of routes) {
    const params = matchPath(pattern, path);
    if (params !== null) return <ErrorBoundary key={path}>{render(params)}</ErrorBoundary>;
  }
  return (
    <div className="card">
      <h1 className="sr-only">Not found</h1>
      <EmptyState
        icon="search"
        title="Page not found"
        actions={<LinkButton to="/">Go to the overview</LinkButton>}
      >
        Check the URL. To open something by its id, paste the id into the search.
      </EmptyState>
    </div>
  );
}

/** Shows the error of a page that throws, and keeps the rest of the console working. */
class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="card" role="alert">
        <EmptyState
          icon="warning"
          title="This page failed"
          actions={<Button onClick={() => window.location.reload()}>Reload</Button>}
        >
          {error.message}
        </EmptyState>
      </div>
    );
  }
}
