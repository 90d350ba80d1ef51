/** The command palette (⌘K): finds pages by name, endpoints by text, events by idempotency key, and everything by its id. */
import type { Endpoint, Event as EventSummary, Page } from '@posthorn/client';
import { type KeyboardEvent, useId, useState } from 'react';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { endSession, usePermissions, useSession } from '../api/session.ts';
import { usePageEntries } from '../navigation.ts';
import { navigate } from '../router.tsx';
import { Modal } from './dialog.tsx';
import { nameEndpoint } from './endpoint-name.ts';
import { Icon, type IconName } from './icons.tsx';
import { findIdLink } from './id-links.ts';
import { describeWhere, toWhere } from './payload-query.ts';
import { toggleTheme } from './theme.ts';
import { showError } from './toasts.tsx';
import { useDebounced } from './use-debounced.ts';

interface Choice {
  readonly key: string;
  readonly icon: IconName;
  readonly name: string;
  readonly note: string;
  readonly run: () => void;
}

export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const id = useId();
  const choices = useChoices(text.trim());
  const current = Math.min(selected, Math.max(0, choices.length - 1));

  const runChoice = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    onClose();
    choice.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setSelected(Math.min(current + 1, choices.length - 1));
    else if (event.key === 'ArrowUp') setSelected(Math.max(current - 1, 0));
    else if (event.key === 'Enter') runChoice(choices[current]);
    else return;
    event.preventDefault();
  };

  return (
    <Modal className="palette" aria-label="Search" onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={choices[current] === undefined ? undefined : `${id}-${current}`}
        aria-label="Search for a page, an endpoint, an idempotency key or data.path = value, or paste an id"
        placeholder="Page, endpoint, idempotency key, data.order_id = …, or any id"
        value={text}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setText(event.target.value);
          setSelected(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="choices" role="listbox" id={`${id}-list`} aria-label="Results">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input
          <div
            className="choice"
            key={choice.key}
            role="option"
            id={`${id}-${index}`}
            aria-selected={index === current}
            onMouseMove={() => setSelected(index)}
            onClick={() => runChoice(choice)}
          >
            <Icon name={choice.icon} />
            <span className="truncate grow">{choice.name}</span>
            <span className="faint small truncate">{choice.note}</span>
          </div>
        ))}
      </div>
      <KeyLegend />
    </Modal>
  );
}

function KeyLegend() {
  return (
    <div className="palette-foot">
      <span>
        <kbd>↑</kbd> <kbd>↓</kbd> select
      </span>
      <span>
        <kbd>↵</kbd> open
      </span>
      <span>
        <kbd>esc</kbd> close
      </span>
    </div>
  );
}

const MAX_ENDPOINTS = 8;
const openPage = (to: string) => () => navigate(to);

function useChoices(text: string): Choice[] {
  const commands = useCommands();
  const { selectedTenant } = useSession();
  const endpoints = useQuery<Page<Endpoint>>(
    withQuery('/v1/endpoints', { limit: 250, tenant: selectedTenant }),
  );
  const older = useOlderEndpoints(text, endpoints.data?.next_cursor != null);
  const keyHolders = useKeyHolders(text);
  const link = findIdLink(text);
  if (link !== null)
    return [{ key: link.to, icon: link.icon, name: link.name, note: 'Open', run: openPage(link.to) }];
  const needle = text.toLowerCase();
  const matchingCommands = commands.filter(({ name }) => name.toLowerCase().includes(needle));
  if (text === '') return matchingCommands;
  const newest = (endpoints.data?.data ?? []).filter(({ url, description, id }) =>
    `${description} ${url} ${id}`.toLowerCase().includes(needle),
  );
  const known = new Set(newest.map(({ id }) => id));
  const matchingEndpoints = [...newest, ...older.filter(({ id }) => !known.has(id))]
    .slice(0, MAX_ENDPOINTS)
    .map(toChoice);
  return [...keyHolders, ...matchingCommands, ...matchingEndpoints, ...buildEventSearches(text)];
}

/** Endpoints that match the text, searched by the server. Only if there are more than the palette has loaded. */
function useOlderEndpoints(text: string, hasMore: boolean): readonly Endpoint[] {
  const { selectedTenant } = useSession();
  const q = useDebounced(text, KEY_PAUSE_MS);
  const isPossible = hasMore && q === text && q.length >= 2 && findIdLink(q) === null;
  const { data } = useQuery<Page<Endpoint>>(
    isPossible ? withQuery('/v1/endpoints', { q, limit: MAX_ENDPOINTS, tenant: selectedTenant }) : null,
  );
  return data?.data ?? [];
}

const KEY_PAUSE_MS = 200;

/** The events that hold the text as their idempotency key. */
function useKeyHolders(text: string): Choice[] {
  const { selectedTenant } = useSession();
  const key = useDebounced(text, KEY_PAUSE_MS);
  const isPossible = key === text && key.length >= 3 && findIdLink(key) === null;
  const { data } = useQuery<Page<EventSummary>>(
    isPossible ? withQuery('/v1/events', { idempotency_key: key, limit: 5, tenant: selectedTenant }) : null,
  );
  return (data?.data ?? []).map(({ id, type, tenant }) => ({
    key: id,
    icon: 'events',
    name: `Event ${type} with idempotency key “${key}”`,
    note: tenant,
    run: openPage(`/events/${id}`),
  }));
}

function toChoice(endpoint: Endpoint): Choice {
  const { name, detail } = nameEndpoint(endpoint);
  return {
    key: endpoint.id,
    icon: 'endpoint',
    name,
    note: `${detail ?? endpoint.tenant} · ${endpoint.id}`,
    run: openPage(`/endpoints/${endpoint.id}`),
  };
}

function buildEventSearches(text: string): Choice[] {
  const where = toWhere(text);
  const inPayload: Choice[] =
    where === null
      ? []
      : [
          {
            key: 'where',
            icon: 'search',
            name: `Events with ${describeWhere(where)} in the payload`,
            note: 'Search',
            run: openPage(withQuery('/events', { where })),
          },
        ];
  return [...inPayload, ...buildExactSearches(text)];
}

const buildExactSearches = (text: string): Choice[] => [
  {
    key: 'type',
    icon: 'search',
    name: `Events of type “${text}”`,
    note: 'Search',
    run: openPage(withQuery('/events', { type: text })),
  },
  {
    key: 'idempotency-key',
    icon: 'search',
    name: `Events with idempotency key “${text}”`,
    note: 'Search',
    run: openPage(withQuery('/events', { idempotency_key: text })),
  },
];

/** Every page and every action that the session's key can use. */
function useCommands(): Choice[] {
  const { canEditEndpoints, canPublish } = usePermissions();
  const { monitoring, developers } = usePageEntries();
  const pages = [...monitoring, ...developers].map(
    ({ to, name, icon }): Choice => ({ key: to, icon, name, note: 'Page', run: openPage(to) }),
  );
  const action = (key: string, icon: IconName, name: string, run: () => void): Choice => ({
    key,
    icon,
    name,
    note: 'Action',
    run,
  });
  return [
    ...pages,
    ...(canEditEndpoints
      ? [action('add-endpoint', 'plus', 'Add an endpoint', openPage('/endpoints/new'))]
      : []),
    ...(canPublish ? [action('publish', 'send', 'Publish an event', openPage('/events?publish=1'))] : []),
    action('theme', 'moon', 'Switch between the light and the dark theme', toggleTheme),
    action('sign-out', 'out', 'Sign out', () => void endSession().catch(showError)),
  ];
}
