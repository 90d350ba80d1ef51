/** ⌘K: every page by name, and every object by its id. */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { signOut, useMay, useSession } from '../api/session.ts';
import type { Endpoint, Page } from '../api/types.ts';
import { navigate } from '../router.tsx';
import { usePageEntries } from '../shell.tsx';
import { shortUrl } from './format.ts';
import { Icon, type IconName } from './icons.tsx';
import { placeOfId } from './ids.ts';
import { toggleTheme } from './theme.ts';

interface Choice {
  readonly key: string;
  readonly icon: IconName;
  readonly name: string;
  readonly note?: string;
  readonly run: () => void;
}

export function Palette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const id = useId();
  const choices = useChoices(text.trim());
  const at = Math.min(selected, Math.max(0, choices.length - 1));

  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);

  const run = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    onClose();
    choice.run();
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setSelected(Math.min(at + 1, choices.length - 1));
    else if (event.key === 'ArrowUp') setSelected(Math.max(at - 1, 0));
    else if (event.key === 'Enter') run(choices[at]);
    else return;
    event.preventDefault();
  };

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it too, by itself
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Search"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={choices[at] === undefined ? undefined : `${id}-${at}`}
        aria-label="Search for a page, an endpoint, or paste an id"
        placeholder="Go to a page, find an endpoint, or paste any id…"
        value={text}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setText(event.target.value);
          setSelected(0);
        }}
        onKeyDown={pressed}
      />
      <div className="choices" role="listbox" id={`${id}-list`} aria-label="Results">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys go to the input
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input
          <div
            className="choice"
            key={choice.key}
            role="option"
            id={`${id}-${index}`}
            aria-selected={index === at}
            onMouseMove={() => setSelected(index)}
            onClick={() => run(choice)}
          >
            <Icon name={choice.icon} />
            <span className="truncate grow">{choice.name}</span>
            {choice.note !== undefined && <span className="faint small nowrap">{choice.note}</span>}
          </div>
        ))}
        {choices.length === 0 && (
          <div className="choice" role="option" aria-selected="false" aria-disabled="true" tabIndex={-1}>
            <span className="faint">Nothing found. Ids begin with evt_, dlv_, ep_ or task_.</span>
          </div>
        )}
      </div>
      <div className="palette-foot">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose
        </span>
        <span>
          <kbd>↵</kbd> go
        </span>
        <span>
          <kbd>esc</kbd> close
        </span>
      </div>
    </dialog>
  );
}

function useChoices(text: string): Choice[] {
  const may = useMay();
  const { shownTenant } = useSession();
  const { watch, build } = usePageEntries();
  const endpoints = useQuery<Page<Endpoint>>(withQuery('/v1/endpoints', { limit: 250, tenant: shownTenant }));
  const place = placeOfId(text);
  if (place !== null)
    return [
      { key: place.to, icon: place.icon, name: place.name, note: 'Go there', run: () => navigate(place.to) },
    ];
  const fits = (...words: string[]): boolean => words.join(' ').toLowerCase().includes(text.toLowerCase());
  const go = (to: string) => () => navigate(to);
  const all: Choice[] = [
    ...[...watch, ...build].map(({ to, name, icon }) => ({ key: to, icon, name, note: 'Page', run: go(to) })),
    ...(may.write
      ? [
          {
            key: 'new',
            icon: 'plus' as const,
            name: 'Add an endpoint',
            note: 'Action',
            run: go('/endpoints/new'),
          },
          {
            key: 'publish',
            icon: 'send' as const,
            name: 'Publish an event',
            note: 'Action',
            run: go('/events?publish=1'),
          },
        ]
      : []),
    { key: 'theme', icon: 'moon', name: 'Switch between dark and light', note: 'Action', run: toggleTheme },
    { key: 'out', icon: 'out', name: 'Sign out', note: 'Action', run: () => signOut() },
  ];
  const found = all.filter(({ name }) => fits(name));
  if (text === '') return found;
  const key = {
    key: 'key',
    icon: 'search' as const,
    name: `Events with idempotency key “${text}”`,
    note: 'Search',
    run: go(withQuery('/events', { idempotency_key: text })),
  };
  const type = {
    key: 'type',
    icon: 'search' as const,
    name: `Events of type “${text}”`,
    note: 'Search',
    run: go(withQuery('/events', { type: text })),
  };
  const fitting = (endpoints.data?.data ?? [])
    .filter(({ url, description, id }) => fits(url, description, id))
    .slice(0, 8)
    .map(
      ({ id, url, tenant }): Choice => ({
        key: id,
        icon: 'endpoint',
        name: shortUrl(url),
        note: tenant,
        run: go(`/endpoints/${id}`),
      }),
    );
  return [...found, ...fitting, type, key];
}
