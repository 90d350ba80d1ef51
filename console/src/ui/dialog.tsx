import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import type { ApiError } from '../api/client.ts';
import { asApiError } from '../api/query.ts';
import { Button, Notice } from './basics.tsx';

/** The browser's own modal: it keeps the focus inside, and gives it back. */
export function Dialog({
  title,
  onClose,
  children,
  wide = false,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it too, by itself
    <dialog
      ref={dialog}
      className={wide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet small" icon="cross" label="Close" onClick={onClose} />
      </div>
      {children}
    </dialog>
  );
}

interface FormDialogProps {
  title: string;
  submit: string;
  onSubmit: () => Promise<unknown>;
  onClose: () => void;
  children?: ReactNode | ((error: ApiError | null) => ReactNode);
  danger?: boolean;
  disabled?: boolean;
  wide?: boolean;
}

/** Asks, does it, and shows what the API says against it. Stays open until it worked. */
export function FormDialog({
  title,
  submit,
  onSubmit,
  onClose,
  children,
  danger = false,
  disabled = false,
  wide = false,
}: FormDialogProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const run = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await onSubmit();
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form onSubmit={(event) => void run(event)}>
        <div className="dialog-body">
          {typeof children === 'function' ? children(error) : children}
          {error !== null && (
            <div role="alert">
              <Notice tone="bad" title="That did not work">
                {error.message}
              </Notice>
            </div>
          )}
        </div>
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? 'danger primary' : 'primary'} disabled={busy || disabled}>
            {busy ? 'Working…' : submit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
