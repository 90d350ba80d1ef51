/** Reads Prometheus's text format, as far as tests need it. */
export interface ScrapedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Scrape {
  readonly text: string;
  readonly samples: readonly ScrapedSample[];
  /** Names of metrics, from their TYPE lines. */
  readonly names: ReadonlySet<string>;
  /** The sum of all samples with this name and at least these labels; NaN if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function readScrape(text: string): Scrape {
  const samples: ScrapedSample[] = [];
  const names = new Set<string>();
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) /.exec(line);
    if (type !== null) names.add(type[1]!);
    if (line === '' || line.startsWith('#')) continue;
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
    if (name === undefined) throw new Error(`Not a sample: ${line}`);
    samples.push({
      name,
      labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, label, given]) => [label, given])),
      value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value),
    });
  }
  return {
    text,
    samples,
    names,
    value(name, labels = {}) {
      const fitting = samples.filter(
        (sample) =>
          sample.name === name &&
          Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
      );
      return fitting.length === 0 ? Number.NaN : fitting.reduce((sum, { value }) => sum + value, 0);
    },
  };
}
