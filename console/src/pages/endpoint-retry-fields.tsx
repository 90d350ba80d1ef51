import { findFieldError, SelectField, TextField } from '../ui/fields.tsx';
import { PRESETS } from './endpoint-draft.ts';
import { createFieldBinder, type SectionProps } from './endpoint-form-section.tsx';

export function RetryFields(props: SectionProps) {
  const { draft, onChange, errors } = props;
  const field = createFieldBinder(props);
  return (
    <>
      <SelectField
        label="Policy"
        value={draft.retry_kind}
        onChange={(retry_kind) => onChange({ retry_kind })}
        options={[
          ['preset', 'Preset'],
          ['schedule', 'Custom schedule'],
          ['exponential', 'Exponential backoff'],
        ]}
        error={draft.retry_kind === 'preset' ? findFieldError(errors, 'retry') : undefined}
      />
      <PolicyFields {...props} />
      <SelectField
        label="Jitter"
        options={[
          ['', 'Default'],
          ['proportional', 'Proportional'],
          ['full', 'Full'],
          ['equal', 'Equal'],
          ['none', 'None'],
        ]}
        {...field('jitter', 'retry.jitter')}
      />
      <TextField
        label="Give up after (s)"
        placeholder="259200"
        {...field('max_age_seconds', 'retry.max_age_seconds')}
      />
      <TextField
        label="Never retry these status codes"
        mono
        placeholder="3xx, 4xx"
        {...field('permanent', 'retry.permanent')}
      />
      <TextField
        label="Retry these status codes anyway"
        mono
        placeholder="408, 425, 429"
        {...field('transient', 'retry.transient')}
      />
    </>
  );
}

function PolicyFields(props: SectionProps) {
  const { draft, onChange } = props;
  const field = createFieldBinder(props);
  switch (draft.retry_kind) {
    case 'preset':
      return (
        <SelectField
          label="Preset"
          options={PRESETS}
          value={draft.preset as (typeof PRESETS)[number][0]}
          onChange={(preset) => onChange({ preset })}
        />
      );
    case 'schedule':
      return (
        <TextField
          className="wide"
          label="Seconds before each attempt"
          mono
          hint="Includes the first attempt: 0, 30, 300 makes three attempts."
          {...field('schedule', 'retry.schedule')}
        />
      );
    case 'exponential':
      return (
        <>
          <TextField label="First retry after (s)" {...field('base', 'retry.base')} />
          <TextField label="Factor" placeholder="2" {...field('factor', 'retry.factor')} />
          <TextField label="Longest wait (s)" placeholder="86400" {...field('max', 'retry.max')} />
          <TextField label="Attempts" placeholder="10" {...field('attempts', 'retry.attempts')} />
        </>
      );
  }
}
