/** Adds or changes a version of an event type. Shows what the change means for receivers before it is saved. */
import type { EventTypeVersion, EventTypeVersionChecked } from '@posthorn/client';
import { useEffect, useState } from 'react';
import { callApi } from '../api/client.ts';
import { asApiError, invalidate } from '../api/query.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { findFieldError, SelectField, TextArea, TextField } from '../ui/fields.tsx';
import { Notice } from '../ui/notice.tsx';
import { showToast } from '../ui/toasts.tsx';
import { useDebounced } from '../ui/use-debounced.ts';
import { Difference } from './version-difference.tsx';
import { toNewVersionDraft, toVersionDraft, toVersionSettings, type VersionDraft } from './version-draft.ts';

interface VersionFormProps {
  /** Of the event type. */
  path: string;
  /** The version to change. Undefined: a new one. */
  version?: EventTypeVersion | undefined;
  /** The newest version: a new one starts as a copy of it. */
  newest: EventTypeVersion | undefined;
  onClose: () => void;
}

const STATUSES = [
  ['draft', 'Draft: not published yet'],
  ['active', 'Active: in use'],
  ['deprecated', 'Deprecated: still in use, to be replaced'],
  ['retired', 'Retired: no longer published'],
] as const;

export function VersionForm({ path, version, newest, onClose }: VersionFormProps) {
  const [draft, setDraft] = useState(() =>
    version === undefined ? toNewVersionDraft(newest, new Date()) : toVersionDraft(version),
  );
  // A version that receivers may rely on cannot become a draft again.
  const canBeDraft = version === undefined || version.status === 'draft';
  const change = (changes: Partial<VersionDraft>): void => setDraft((before) => ({ ...before, ...changes }));
  const bind = <Name extends keyof VersionDraft>(name: Name) => ({
    value: draft[name],
    onChange: (value: VersionDraft[Name]) => change({ [name]: value } as Partial<VersionDraft>),
  });
  const save = async (): Promise<void> => {
    const name = encodeURIComponent(draft.version.trim());
    await callApi('PUT', `${path}/versions/${name}`, toVersionSettings(draft));
    invalidate(path);
    showToast('Saved');
    onClose();
  };
  return (
    <FormDialog
      title={version === undefined ? 'Add a version' : `Version ${version.version}`}
      submitLabel="Save"
      wide
      onClose={onClose}
      onSubmit={save}
    >
      {(error) => {
        const errorOf = (name: string) => findFieldError(error?.errors ?? [], name);
        return (
          <>
            {version === undefined && (
              <TextField
                label="Version"
                mono
                required
                hint="A date such as 2026-04-01, or v2. Producers send it as schema_version."
                error={errorOf('version')}
                {...bind('version')}
              />
            )}
            <TextArea
              label="JSON Schema of the data"
              rows={10}
              error={errorOf('schema')}
              {...bind('schema')}
            />
            <CompatibilityNote path={path} draft={draft} />
            <TextArea
              label="Example of the data (optional)"
              rows={4}
              hint="It must match the schema."
              error={errorOf('example')}
              {...bind('example')}
            />
            <TextField
              label="What has changed (optional)"
              error={errorOf('changelog')}
              {...bind('changelog')}
            />
            <TextField
              label="Description (optional)"
              error={errorOf('description')}
              {...bind('description')}
            />
            <div className="form-grid">
              <SelectField
                label="Status"
                options={canBeDraft ? STATUSES : STATUSES.slice(1)}
                error={errorOf('status')}
                {...bind('status')}
              />
              <TextField
                type="datetime-local"
                label="Sunset (optional, your time zone)"
                hint="Deliveries of a deprecated version announce this time. Nothing stops by itself."
                error={errorOf('sunset_at')}
                {...bind('sunset')}
              />
            </div>
          </>
        );
      }}
    </FormDialog>
  );
}

const PAUSE_MS = 400;

/** Compares the schema in the form with the version before, while the user types. */
function CompatibilityNote({ path, draft }: { path: string; draft: VersionDraft }) {
  const order = useDebounced(JSON.stringify(draft), PAUSE_MS);
  const [result, setResult] = useState<EventTypeVersionChecked | string | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const current = JSON.parse(order) as VersionDraft;
    checkDraft(path, current, controller.signal).then(setResult, (error: unknown) => {
      if (!controller.signal.aborted) setResult(asApiError(error).message);
    });
    return () => controller.abort();
  }, [order, path]);
  return (
    <div className="compatibility" role="status">
      {result === null && <p className="faint">Comparing with the version before…</p>}
      {typeof result === 'string' && <p className="field-error">{result}</p>}
      {result !== null && typeof result !== 'string' && <CheckResult checked={result} />}
    </div>
  );
}

async function checkDraft(
  path: string,
  draft: VersionDraft,
  signal: AbortSignal,
): Promise<EventTypeVersionChecked | string> {
  const name = draft.version.trim();
  if (name === '') return 'Enter the name of the version.';
  let settings: object;
  try {
    settings = toVersionSettings(draft);
  } catch (error) {
    return (error as Error).message;
  }
  return callApi('POST', `${path}/versions/${encodeURIComponent(name)}/check`, settings, signal);
}

function CheckResult({ checked: { refusal, compatibility } }: { checked: EventTypeVersionChecked }) {
  if (refusal !== null)
    return (
      <Notice tone="bad" title="This cannot be saved">
        {refusal}
      </Notice>
    );
  if (compatibility === null)
    return <p className="soft">This is the first version. There is nothing to compare it with.</p>;
  return <Difference diff={compatibility} against={compatibility.against} />;
}
