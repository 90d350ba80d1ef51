import {
  type DialogHTMLAttributes,
  type FormEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';
import type { ApiError } from '../api/client.ts';
import { asApiError } from '../api/query.ts';
import { Button } from './button.tsx';
import { Notice } from './notice.tsx';

type ModalProps = DialogHTMLAttributes<HTMLDialogElement> & { onClose: () => void };

/** The browser's modal dialog: it traps the focus and restores it. Escape and a click on the backdrop close it. */
export function Modal({ onClose, children, ...rest }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser handles Escape
    <dialog
      ref={dialog}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
      {...rest}
    >
      {children}
    </dialog>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const id = useId();
  return (
    <Modal onClose={onClose} className={wide ? 'wide' : ''} aria-labelledby={id}>
      <div className="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet small" icon="cross" label="Close" onClick={onClose} />
      </div>
      {children}
    </Modal>
  );
}

interface FormDialogProps {
  title: string;
  submitLabel: string;
  onSubmit: () => Promise<unknown>;
  onClose: () => void;
  children?: ReactNode | ((error: ApiError | null) => ReactNode);
  danger?: boolean;
  disabled?: boolean;
  wide?: boolean;
}

/** A dialog with a form. It shows the error if `onSubmit` rejects; `onSubmit` closes it after success. */
export function FormDialog({
  title,
  submitLabel,
  onSubmit,
  onClose,
  children,
  danger = false,
  disabled = false,
  wide = false,
}: FormDialogProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const submit = async (event: FormEvent): Promise<void> => {
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
      <form onSubmit={(event) => void submit(event)}>
        <div className="dialog-body">
          {typeof children === 'function' ? children(error) : children}
          {error !== null && (
            <div role="alert">
              <Notice tone="bad" title="The request failed">
                {error.message}
              </Notice>
            </div>
          )}
        </div>
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? 'danger primary' : 'primary'} disabled={isBusy || disabled}>
            {isBusy ? 'Working…' : submitLabel}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
