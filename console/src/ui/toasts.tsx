/** Short messages about what just happened. Some can be undone for as long as they are there. */
import { type ReactNode, useEffect } from 'react';
import { createStore, useStore } from '../api/store.ts';
import { Button } from './basics.tsx';
import { Icon } from './icons.tsx';

interface Toast {
  readonly id: number;
  readonly tone: 'good' | 'bad' | 'info';
  readonly text: ReactNode;
  readonly undo?: () => void;
  readonly forMs: number;
}

const toasts = createStore<readonly Toast[]>([]);
let lastId = 0;

export function toast(
  text: ReactNode,
  options: { tone?: Toast['tone']; undo?: () => void; forMs?: number } = {},
): void {
  lastId += 1;
  const { tone = 'good', undo, forMs = 4_000 } = options;
  toasts.set([...toasts.get(), { id: lastId, tone, text, undo, forMs }].slice(-4));
}

export const toastError = (error: unknown): void =>
  toast(error instanceof Error ? error.message : String(error), { tone: 'bad', forMs: 8_000 });

const close = (id: number): void => toasts.set(toasts.get().filter((each) => each.id !== id));

export function Toasts() {
  const shown = useStore(toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((each) => (
        <ToastLine key={each.id} toast={each} />
      ))}
    </div>
  );
}

function ToastLine({ toast: { id, tone, text, undo, forMs } }: { toast: Toast }) {
  useEffect(() => {
    const timer = setTimeout(() => close(id), forMs);
    return () => clearTimeout(timer);
  }, [id, forMs]);
  return (
    <div className="toast">
      <span className={`dot ${tone}`} />
      <span className="grow">{text}</span>
      {undo !== undefined && (
        <Button
          kind="small"
          onClick={() => {
            close(id);
            undo();
          }}
        >
          Undo
        </Button>
      )}
      <button type="button" className="copy" aria-label="Close" onClick={() => close(id)}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
