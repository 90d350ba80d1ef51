import { useEffect, useState } from 'react';
import { setQuery, usePlace } from '../router.tsx';

const TYPING_MS = 250;

/** Goes into the address when the typing pauses. */
export function FilterInput({
  name,
  label,
  placeholder,
}: {
  name: string;
  label: string;
  placeholder: string;
}) {
  const given = usePlace().query.get(name) ?? '';
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  useEffect(() => {
    if (text === given) return;
    const timer = setTimeout(() => setQuery({ [name]: text.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, given, name]);
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
