import { useEffect, useState } from 'react';
import { setQuery, useLocation } from '../router.tsx';

const DEBOUNCE_MS = 250;

/** A text filter that is kept in the URL's query, and applied when the user stops typing. */
export function FilterInput({
  name,
  label,
  placeholder,
}: {
  name: string;
  label: string;
  placeholder: string;
}) {
  const applied = useLocation().query.get(name) ?? '';
  const [text, setText] = useState(applied);
  useEffect(() => setText(applied), [applied]);
  useEffect(() => {
    if (text === applied) return;
    const timer = setTimeout(() => setQuery({ [name]: text.trim() }), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text, applied, name]);
  return (
    <input
      className="input long mono"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
