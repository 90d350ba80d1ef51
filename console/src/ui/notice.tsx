import type { ReactNode } from 'react';
import type { ApiError } from '../api/client.ts';
import type { Tone } from './badge.tsx';
import { Button } from './button.tsx';
import { Card } from './card.tsx';
import { Icon, type IconName } from './icons.tsx';

const ICONS: Record<string, IconName> = { good: 'check', bad: 'warning', warn: 'warning' };

interface NoticeProps {
  tone?: Tone;
  title?: ReactNode;
  children?: ReactNode;
}

export function Notice({ tone = 'mute', title, children }: NoticeProps) {
  return (
    <div className={`notice ${tone}`}>
      <Icon name={ICONS[tone] ?? 'info'} />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {children}
      </div>
    </div>
  );
}

/** An API error with its request id, and a button that retries. */
export function ErrorNotice({ error, onRetry }: { error: ApiError; onRetry?: () => unknown }) {
  return (
    <div className="card-body" role="alert">
      <Notice tone="bad" title={describeStatusCode(error.status)}>
        {error.message}
        {error.requestId !== null && <div className="small faint mono">{error.requestId}</div>}
        {onRetry !== undefined && (
          <div style={{ marginTop: 8 }}>
            <Button kind="small" icon="replay" onClick={() => void onRetry()}>
              Retry
            </Button>
          </div>
        )}
      </Notice>
    </div>
  );
}

/** In the place of a page whose object cannot be loaded. `title` is its heading, for screen readers. */
export function ErrorPage({
  title,
  error,
  onRetry,
}: {
  title: string;
  error: ApiError;
  onRetry: () => unknown;
}) {
  return (
    <Card>
      <h1 className="sr-only">{title}</h1>
      <ErrorNotice error={error} onRetry={onRetry} />
    </Card>
  );
}

function describeStatusCode(status: number): string {
  if (status === 0) return 'No connection';
  if (status === 403) return 'This key is not allowed to do that';
  if (status === 404) return 'Not found';
  if (status === 429) return 'Too many requests';
  return status >= 500 ? 'Server error' : 'The request failed';
}
