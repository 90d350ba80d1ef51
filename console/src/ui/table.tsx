/**
 * Rows in columns. Only those near the window are in the document, so ten thousand scroll like ten; every row is a
 * link to what it shows.
 */
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { PagedList } from '../api/pages.ts';
import { Link } from '../router.tsx';
import { Button, Failure, Skeleton } from './basics.tsx';
import { useIsWide } from './wide.ts';

export interface Column<T> {
  readonly name: string;
  /** CSS width; one column without takes the rest. */
  readonly width?: number | string;
  readonly num?: boolean;
  /** Not on a phone. */
  readonly wideOnly?: boolean;
  readonly cell: (row: T) => ReactNode;
  /** The column that carries the row's link. */
  readonly link?: boolean;
  readonly head?: ReactNode;
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[] | undefined;
  keyOf: (row: T) => string;
  linkOf?: (row: T) => string;
  isSelected?: (row: T) => boolean;
  rowHeight?: number;
  skeletonRows?: number;
  empty: ReactNode;
}

const SPARE_ROWS = 12;

export function Table<T>({
  label,
  columns: all,
  rows,
  keyOf,
  linkOf,
  isSelected,
  rowHeight = 37,
  skeletonRows = 8,
  empty,
}: TableProps<T>) {
  const isWide = useIsWide();
  const columns = isWide ? all : all.filter(({ wideOnly }) => !wideOnly);
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useVisible(body, rows?.length ?? 0, rowHeight);
  if (rows !== undefined && rows.length === 0) return <>{empty}</>;
  const classOf = ({ num }: Column<T>): string => (num ? 'num' : '');
  return (
    <div className="table-wrap">
      <table
        className={`table${rowHeight > 45 ? ' tall' : ''}`}
        aria-label={label}
        aria-rowcount={rows?.length ?? -1}
        aria-busy={rows === undefined}
      >
        <colgroup>
          {columns.map((column) => (
            <col key={column.name} style={{ width: column.width }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={classOf(column)}>
                {column.head ?? column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows === undefined
            ? Array.from({ length: skeletonRows }, (_, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
                <tr key={index}>
                  {columns.map((column) => (
                    <td key={column.name} className={classOf(column)}>
                      <Skeleton width={column.width === undefined ? '60%' : '70%'} />
                    </td>
                  ))}
                </tr>
              ))
            : null}
          {rows !== undefined && first > 0 && <Spacer height={first * rowHeight} columns={columns.length} />}
          {rows?.slice(first, last).map((row, index) => (
            <tr
              key={keyOf(row)}
              aria-rowindex={first + index + 1}
              className={`${linkOf === undefined ? '' : 'linked'}${isSelected?.(row) ? ' selected' : ''}`}
            >
              {columns.map((column) => (
                <td key={column.name} className={classOf(column)}>
                  {column.link && linkOf !== undefined ? (
                    <Link to={linkOf(row)} className="row-link">
                      {column.cell(row)}
                    </Link>
                  ) : (
                    column.cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
          {rows !== undefined && last < rows.length && (
            <Spacer height={(rows.length - last) * rowHeight} columns={columns.length} />
          )}
        </tbody>
      </table>
    </div>
  );
}

function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    <tr className="spacer">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

/** Which rows are in the window, with some to spare. */
function useVisible(
  body: React.RefObject<HTMLElement | null>,
  count: number,
  rowHeight: number,
): readonly [number, number] {
  const [range, setRange] = useState<readonly [number, number]>([0, 60]);
  const measure = useRef(() => {});
  measure.current = () => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    // In steps, so that scrolling draws only now and then.
    const step = (row: number): number => Math.floor(row / SPARE_ROWS) * SPARE_ROWS;
    const from = Math.max(0, step(-top / rowHeight) - SPARE_ROWS);
    const to = step((window.innerHeight - top) / rowHeight) + 2 * SPARE_ROWS;
    setRange((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useEffect(() => {
    const run = (): void => measure.current();
    window.addEventListener('scroll', run, { passive: true });
    window.addEventListener('resize', run);
    return () => {
      window.removeEventListener('scroll', run);
      window.removeEventListener('resize', run);
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: more rows, another measure
  useLayoutEffect(() => measure.current(), [count]);
  return [Math.min(range[0], Math.max(0, count - 1)), Math.min(count, Math.max(range[1], 1))];
}

/** A table with what belongs to a list by pages: its failures, and more when its end comes near. */
export function PagedTable<T>({ list, ...table }: Omit<TableProps<T>, 'rows'> & { list: PagedList<T> }) {
  if (list.rows === undefined && list.error !== null)
    return <Failure error={list.error} retry={list.refresh} />;
  return (
    <>
      {/* A lost connection is said above every page: here it would only move the rows. */}
      {list.error !== null && list.error.status !== 0 && <Failure error={list.error} retry={list.refresh} />}
      <Table rows={list.rows} {...table} />
      <MoreRows list={list} />
    </>
  );
}

function MoreRows<T>({ list }: { list: PagedList<T> }) {
  const end = useRef<HTMLDivElement>(null);
  const { hasMore, loadMore, rows } = list;
  const count = rows?.length ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: after every page the end is somewhere else
  useEffect(() => {
    if (!hasMore || end.current === null) return;
    const observer = new IntersectionObserver(
      (seen) => seen.some((entry) => entry.isIntersecting) && loadMore(),
      {
        rootMargin: '600px',
      },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [hasMore, loadMore, count]);
  // None so far, but the server has not looked at everything.
  if (count === 0 && !hasMore) return null;
  return (
    <div className="list-foot" ref={end}>
      {hasMore ? (
        <Button kind="small quiet" onClick={loadMore} disabled={list.loadingMore}>
          {list.loadingMore ? 'Loading…' : count === 0 ? 'Look further back' : 'Load more'}
        </Button>
      ) : (
        <span>{count === 1 ? 'That is the only one' : `All ${count}`}</span>
      )}
    </div>
  );
}
