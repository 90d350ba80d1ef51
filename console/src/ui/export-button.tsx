/** Downloads a list as a file: all pages of it, up to a limit. */
import type { Page } from '@posthorn/client';
import { useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { type ExportFormat, toExportText } from './export-text.ts';
import { formatCount, plural } from './format.ts';
import { showError, showToast } from './toasts.tsx';

const MAX_ROWS = 10_000;
const PAGE_SIZE = 250;
const TYPES: Record<ExportFormat, string> = { csv: 'text/csv', ndjson: 'application/x-ndjson' };

type Row = Record<string, unknown>;

interface ExportButtonProps {
  /** The list, with its filters. */
  path: string;
  /** The name of the file, without its ending. */
  name: string;
  /** False: the list has one page, and takes no limit. */
  isPaged?: boolean;
}

export function ExportButton({ path, name, isPaged = true }: ExportButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const download = async (format: ExportFormat): Promise<void> => {
    setBusy(true);
    try {
      const { rows, hasMore } = await readAll(path, isPaged);
      saveFile(`posthorn-${name}.${format}`, TYPES[format], toExportText(rows, format));
      showToast(
        hasMore
          ? `Exported the newest ${formatCount(rows.length)} rows. Choose a time range to export older ones.`
          : `Exported ${plural(rows.length, 'row')}`,
      );
    } catch (error) {
      showError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <select
      className="input"
      aria-label="Export this list"
      value=""
      disabled={isBusy}
      onChange={(event) => void download(event.target.value as ExportFormat)}
    >
      <option value="" disabled>
        {isBusy ? 'Exporting…' : 'Export'}
      </option>
      <option value="csv">CSV</option>
      <option value="ndjson">NDJSON</option>
    </select>
  );
}

async function readAll(path: string, isPaged: boolean): Promise<{ rows: Row[]; hasMore: boolean }> {
  if (!isPaged) return { rows: (await callApi<Page<Row>>('GET', path)).data, hasMore: false };
  const [base = '', search = ''] = path.split('?');
  const query = Object.fromEntries(new URLSearchParams(search));
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const next: string = withQuery(base, { ...query, limit: PAGE_SIZE, cursor });
    const page: Page<Row> = await callApi<Page<Row>>('GET', next);
    rows.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null && rows.length < MAX_ROWS);
  return { rows, hasMore: cursor !== null };
}

function saveFile(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
