/** Batches and debounce in the endpoint form, with their effect on the events of the last hour. */
import { Checkbox, findFieldError, SelectField, TextField } from '../ui/fields.tsx';
import { createFieldBinder, type SectionProps } from './endpoint-form-section.tsx';
import { findShapingConflicts, type Shaping } from './endpoint-shaping-draft.ts';
import { RequestEstimate } from './request-estimate.tsx';

const OPTIONS = [
  ['none', 'One request per event'],
  ['batch', 'Batches: several events in one request'],
  ['debounce', 'Debounce: one of several events with the same key'],
] as const;

const HINTS: Record<Shaping, string> = {
  none: 'Every event is sent by itself, at once.',
  batch: 'For a receiver that handles many events at once more cheaply. All events arrive.',
  debounce:
    'For a receiver that needs only the latest state, such as that of an order. The other events end as skipped, and you can replay them.',
};

/** Fields whose errors appear at the field itself. The others appear at the choice. */
const FIELDS_WITH_ERRORS = ['debounce.key', 'debounce.window_ms', 'debounce.max_wait_ms'];

export function ShapingFields(props: SectionProps) {
  const { draft, onChange, errors } = props;
  const conflict = findShapingConflicts(draft).find(({ path }) => !FIELDS_WITH_ERRORS.includes(path));
  return (
    <>
      <SelectField
        className="wide"
        label="Requests"
        options={OPTIONS}
        value={draft.shaping}
        onChange={(shaping) => onChange({ shaping })}
        hint={HINTS[draft.shaping]}
        error={conflict?.message ?? errors.find(({ path }) => path === draft.shaping)?.message}
      />
      {draft.shaping === 'batch' && <BatchFields {...props} />}
      {draft.shaping === 'debounce' && <DebounceFields {...props} />}
      {draft.shaping !== 'none' && conflict === undefined && <RequestEstimate draft={draft} />}
    </>
  );
}

function BatchFields(props: SectionProps) {
  const { draft, onChange, errors } = props;
  const field = createFieldBinder(props);
  return (
    <>
      <TextField
        label="Events per request"
        placeholder="100"
        hint="1 to 1,000. A full batch is sent at once."
        {...field('batch_max_events', 'batch.max_events')}
      />
      <TextField
        label="Longest wait for more events (ms)"
        placeholder="1000"
        hint="0 to 60,000. A batch that is not full is sent when its oldest event has waited for this long."
        {...field('batch_max_wait_ms', 'batch.max_wait_ms')}
      />
      <TextField
        label="Largest body (bytes)"
        placeholder="1048576"
        hint="1,024 to 16,777,216. A larger event is sent alone."
        {...field('batch_max_bytes', 'batch.max_bytes')}
      />
      <div className="wide">
        <Checkbox
          checked={draft.batch_split_rejected}
          onChange={(batch_split_rejected) => onChange({ batch_split_rejected })}
          hint="Otherwise all events of a batch die when the receiver answers 4xx."
        >
          Send a rejected batch again in halves, until the rejected event is alone
        </Checkbox>
        <span className="field-error">{findFieldError(errors, 'batch.split_rejected')}</span>
      </div>
    </>
  );
}

function DebounceFields(props: SectionProps) {
  const field = createFieldBinder(props);
  return (
    <>
      <TextField
        label="Key"
        mono
        placeholder="data.order_id"
        hint="A path below data. Events with the same value there belong together; an event without a value is sent as it is."
        {...field('debounce_key', 'debounce.key')}
      />
      <SelectField
        label="Event that is sent"
        options={[
          ['last', 'The last one, when no other has come for a window'],
          ['first', 'The first one, at once'],
        ]}
        {...field('debounce_mode', 'debounce.mode')}
      />
      <TextField
        label="Window (ms)"
        placeholder="5000"
        hint="1 to 3,600,000."
        {...field('debounce_window_ms', 'debounce.window_ms')}
      />
      {props.draft.debounce_mode === 'last' && (
        <TextField
          label="Longest delay (ms)"
          placeholder="ten windows"
          hint="A steady stream of events is held back for at most this long."
          {...field('debounce_max_wait_ms', 'debounce.max_wait_ms')}
        />
      )}
    </>
  );
}
