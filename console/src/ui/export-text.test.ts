import { expect, it } from 'vitest';
import { toExportText } from './export-text.ts';

it('CSV has a column for every member, and quotes what needs it', () => {
  const rows = [
    { id: 'a', health: { waiting: 2 }, events: ['x', 'y'], note: 'says "hi", twice' },
    { id: 'b', health: { waiting: null }, extra: -1.5 },
  ];
  expect(toExportText(rows, 'csv')).toBe(
    'id,health.waiting,events,note,extra\r\n' +
      'a,2,"[""x"",""y""]","says ""hi"", twice",\r\n' +
      'b,,,,-1.5\r\n',
  );
});

it('CSV never starts a cell like a formula', () =>
  expect(toExportText([{ a: '=1+1', b: '-cmd', c: '@x' }], 'csv')).toBe("a,b,c\r\n'=1+1,'-cmd,'@x\r\n"));

it('NDJSON has one object per line', () =>
  expect(toExportText([{ a: 1 }, { a: null }], 'ndjson')).toBe('{"a":1}\n{"a":null}\n'));
