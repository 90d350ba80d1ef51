/** Short messages at the bottom of the page. Some have an Undo button while they are visible. */
import { type ReactNode, useEffect } from 'react';
import { createStore, useStore } from '../api/store.ts';
import { Button } from './button.tsx';
import { Icon } from './icons.tsx';

interface Toast {
  readonly id: number;
  readonly tone: 'good' | 'bad' | 'info';
  readonly text: ReactNode;
  readonly onUndo?: () => void;
  readonly durationMs: number;
}

const toasts = createStore<readonly Toast[]>([]);
const MAX_TOASTS = 4;
let lastId = 0;

export function showToast(
  text: ReactNode,
  options: { tone?: Toast['tone']; onUndo?: () => void; durationMs?: number } = {},
): void {
  lastId += 1;
  const { tone = 'good', onUndo, durationMs = 4_000 } = options;
  toasts.set([...toasts.get(), { id: lastId, tone, text, onUndo, durationMs }].slice(-MAX_TOASTS));
}

export const showError = (error: unknown): void =>
  showToast(error instanceof Error ? error.message : String(error), { tone: 'bad', durationMs: 8_000 });

const closeToast = (id: number): void => toasts.set(toasts.get().filter((each) => each.id !== id));

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

function ToastLine({ toast: { id, tone, text, onUndo, durationMs } }: { toast: Toast }) {
  useEffect(() => {
    const timer = setTimeout(() => closeToast(id), durationMs);
    return () => clearTimeout(timer);
  }, [id, durationMs]);
  return (
    <div className="toast">
      <span className={`dot ${tone}`} />
      <span className="grow">{text}</span>
      {onUndo !== undefined && (
        <Button
          kind="small"
          onClick={() => {
            closeToast(id);
            onUndo();
          }}
        >
          Undo
        </Button>
      )}
      <button type="button" className="copy" aria-label="Close" onClick={() => closeToast(id)}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
