import { useState } from 'react';
import { Icon } from './icons.tsx';

const CONFIRMATION_MS = 1500;

interface CopyButtonProps {
  text: string;
  /** What is copied, for screen readers: "the secret". */
  label?: string;
}

/** Shows a text, such as an id, and copies it at a click. */
export function CopyButton({ text, label }: CopyButtonProps) {
  const [isCopied, copy] = useCopy(text);
  return (
    <button
      type="button"
      className="copy"
      onClick={copy}
      title="Copy"
      aria-label={`Copy ${label === undefined ? '' : `${label} `}${text}`}
    >
      <span>{text}</span>
      <Icon name={isCopied ? 'check' : 'copy'} />
    </button>
  );
}

/** Returns whether the text was copied just now, and a function that copies it. */
export function useCopy(text: string): [boolean, () => void] {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Browsers offer navigator.clipboard over https only.
      copyBySelection(text);
    }
    setCopied(true);
    setTimeout(() => setCopied(false), CONFIRMATION_MS);
  };
  return [isCopied, () => void copy()];
}

function copyBySelection(text: string): void {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  // While a dialog is open, nothing outside of it can be selected.
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}
