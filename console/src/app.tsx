import { Component, type ReactNode } from 'react';
import { useSessionState } from './api/session.ts';
import { SignIn } from './pages/sign-in.tsx';
import { match, usePlace } from './router.tsx';
import { routes } from './routes.tsx';
import { Shell } from './shell.tsx';
import { Button, Empty, LinkButton } from './ui/basics.tsx';
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
  if (state.kind === 'out') return <SignIn notice={state.notice} />;
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
  const { path } = usePlace();
  for (const [pattern, render] of routes) {
    const params = match(pattern, path);
    if (params !== null) return <Guard key={path}>{render(params)}</Guard>;
  }
  return (
    <div className="card">
      <h1 className="sr-only">Not found</h1>
      <Empty
        icon="search"
        title="There is no such page"
        actions={<LinkButton to="/">Go to the overview</LinkButton>}
      >
        The address may be mistyped. With an id, press ⌘K and paste it.
      </Empty>
    </div>
  );
}

/** A page that fails takes only itself down. */
class Guard extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="card" role="alert">
        <Empty
          icon="warning"
          title="This page failed"
          actions={<Button onClick={() => window.location.reload()}>Reload</Button>}
        >
          {error.message}
        </Empty>
      </div>
    );
  }
}
