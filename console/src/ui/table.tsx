/** Tables. Only the rows near the visible area are in the document, so that ten thousand rows scroll smoothly. */
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { PagedList } from '../api/paged-list.ts';
import { Link } from '../router.tsx';
import { Button } from './button.tsx';
import { ErrorNotice } from './notice.tsx';
import { Skeleton } from './skeleton.tsx';
import { useIsWide } from './viewport.ts';

export interface Column<T> {
  readonly name: string;
  /** CSS width; one column without a width takes the rest. */
  readonly width?: number | string;
  /** The width on a phone, if it differs. */
  readonly phoneWidth?: number;
  readonly isNumeric?: boolean;
  readonly hideOnPhone?: boolean;
  readonly render: (row: T) => ReactNode;
  /** The column whose content is the row's link. */
  readonly isLink?: boolean;
  /** The header cell, if it is not the name. */
  readonly head?: ReactNode;
  readonly ariaSort?: 'ascending' | 'descending' | undefined;
}

/** The head of a column of buttons, for screen readers only. */
export const HIDDEN_ACTIONS_HEAD = <span className="sr-only">Actions</span>;

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  /** Undefined: loading. */
  rows: readonly T[] | undefined;
  getKey: (row: T) => string;
  getLink?: (row: T) => string;
  isSelected?: (row: T) => boolean;
  rowHeight?: number;
  skeletonRows?: number;
  /** Shown in the place of a table without rows. */
  empty: ReactNode;
}

/** The height of rows with two lines of text. */
export const TALL_ROW = 51;
const SPARE_ROWS = 12;

const getCellClass = <T,>({ isNumeric }: Column<T>): string => (isNumeric ? 'num' : '');

export function Table<T>(props: TableProps<T>) {
  const { label, rows, rowHeight = 37, skeletonRows = 8, empty } = props;
  const isWide = useIsWide();
  const columns = isWide ? props.columns : props.columns.filter(({ hideOnPhone }) => !hideOnPhone);
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useVisibleRange(body, rows?.length ?? 0, rowHeight);
  if (rows !== undefined && rows.length === 0) return <>{empty}</>;
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
            <col
              key={column.name}
              style={{ width: (isWide ? undefined : column.phoneWidth) ?? column.width }}
            />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={getCellClass(column)} aria-sort={column.ariaSort}>
                {column.head ?? column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows === undefined && <SkeletonRows count={skeletonRows} columns={columns} />}
          {first > 0 && <Spacer height={first * rowHeight} columns={columns.length} />}
          {rows?.slice(first, last).map((row, index) => (
            <Row key={props.getKey(row)} {...props} columns={columns} row={row} index={first + index} />
          ))}
          {rows !== undefined && last < rows.length && (
            <Spacer height={(rows.length - last) * rowHeight} columns={columns.length} />
          )}
        </tbody>
      </table>
    </div>
  );
}

type RowProps<T> = Pick<TableProps<T>, 'columns' | 'getLink' | 'isSelected'> & { row: T; index: number };

function Row<T>({ columns, getLink, isSelected, row, index }: RowProps<T>) {
  return (
    <tr
      aria-rowindex={index + 1}
      className={`${getLink === undefined ? '' : 'linked'}${isSelected?.(row) ? ' selected' : ''}`}
    >
      {columns.map((column) => (
        <td key={column.name} className={getCellClass(column)}>
          {column.isLink && getLink !== undefined ? (
            <Link to={getLink(row)} className="row-link">
              {column.render(row)}
            </Link>
          ) : (
            column.render(row)
          )}
        </td>
      ))}
    </tr>
  );
}

function SkeletonRows<T>({ count, columns }: { count: number; columns: readonly Column<T>[] }) {
  return Array.from({ length: count }, (_, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all the same
    <tr key={index}>
      {columns.map((column) => (
        <td key={column.name} className={getCellClass(column)}>
          <Skeleton width={column.width === undefined ? '60%' : '70%'} />
        </td>
      ))}
    </tr>
  ));
}

/** Takes the height of the rows that are not in the document. */
function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    <tr className="spacer">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

/** The first and last row to render: those in the window and some above and below. */
function useVisibleRange(
  body: RefObject<HTMLElement | null>,
  count: number,
  rowHeight: number,
): readonly [number, number] {
  const [range, setRange] = useState<readonly [number, number]>([0, 60]);
  const measure = useRef(() => {});
  measure.current = () => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    // In steps of several rows, so that scrolling by one row does not render again.
    const roundDown = (row: number): number => Math.floor(row / SPARE_ROWS) * SPARE_ROWS;
    const from = Math.max(0, roundDown(-top / rowHeight) - SPARE_ROWS);
    const to = roundDown((window.innerHeight - top) / rowHeight) + 2 * SPARE_ROWS;
    setRange((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useEffect(() => {
    const onScroll = (): void => measure.current();
    window.addEventListener('scroll', onScroll, { passive: true });
    window.addEventListener('resize', onScroll);
    return () => {
      window.removeEventListener('scroll', onScroll);
      window.removeEventListener('resize', onScroll);
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: more rows change the height of the page
  useLayoutEffect(() => measure.current(), [count]);
  return [Math.min(range[0], Math.max(0, count - 1)), Math.min(count, Math.max(range[1], 1))];
}

/** A table of a paged list: shows its errors, and loads more rows when the end comes near. */
export function PagedTable<T>({ list, ...table }: Omit<TableProps<T>, 'rows'> & { list: PagedList<T> }) {
  if (list.rows === undefined && list.error !== null)
    return <ErrorNotice error={list.error} onRetry={list.refresh} />;
  return (
    <>
      {/* A lost connection is shown above every page: a notice here would only move the rows. */}
      {list.error !== null && list.error.status !== 0 && (
        <ErrorNotice error={list.error} onRetry={list.refresh} />
      )}
      <Table rows={list.rows} {...table} />
      <ListFoot list={list} />
    </>
  );
}

function ListFoot<T>({ list }: { list: PagedList<T> }) {
  const end = useRef<HTMLDivElement>(null);
  const { hasMore, isLoadingMore, loadMore, rows } = list;
  const count = rows?.length ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: every page moves the end
  useEffect(() => {
    if (!hasMore || end.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && loadMore(),
      { rootMargin: '600px' },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [hasMore, loadMore, count]);
  // An empty page with a cursor: the server stopped searching early, and older rows may match.
  if (count === 0 && !hasMore) return null;
  return (
    <div className="list-foot" ref={end}>
      {hasMore ? (
        <Button kind="small quiet" onClick={loadMore} disabled={isLoadingMore}>
          {isLoadingMore ? 'Loading…' : count === 0 ? 'Search further back' : 'Load more'}
        </Button>
      ) : (
        <span>{count === 1 ? '1 row' : `All ${count} rows`}</span>
      )}
    </div>
  );
}
