/**
 * Metrics by name, each a family of series distinguished by labels. Labels come from callers, so the number of series
 * is limited: the rest is counted together, under `other`.
 */
import { assert } from "#base/assert.ts";
import { Counter, Gauge, Histogram } from "./series.ts";
import { histogramText, labelsText, metricHead, sampleText } from "./text.ts";

export type MetricDescription = {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** The most series besides `other`; 500 if left out. */
  readonly seriesMax?: number;
};

/** A metric whose series are bound with `with`, ahead of time where possible. */
export type Family<Series> = {
  with(...labelValues: readonly string[]): Series;
};

export class MetricsRegistry {
  readonly #families = new Map<string, BoundedFamily<Counter | Gauge | Histogram>>();
  readonly #beforeText: (() => void)[] = [];

  counter(description: MetricDescription): Family<Counter> {
    assert(description.name.endsWith("_total"), `a counter's name ends in _total: ${description.name}`);
    return this.#add(description, "counter", () => new Counter());
  }

  gauge(description: MetricDescription): Family<Gauge> {
    return this.#add(description, "gauge", () => new Gauge());
  }

  histogram(description: MetricDescription & { readonly bounds: readonly number[] }): Family<Histogram> {
    return this.#add(description, "histogram", () => new Histogram(description.bounds));
  }

  /** Called before the text is made, for values that are looked up then. */
  beforeText(look: () => void): void {
    this.#beforeText.push(look);
  }

  /** All metrics, or all but those counted for tenants other than this one. */
  text(tenant?: string): string {
    for (const look of this.#beforeText) look();
    let text = "";
    for (const family of this.#families.values()) text += family.text(tenant);
    return text;
  }

  #add<Series extends Counter | Gauge | Histogram>(
    description: MetricDescription,
    kind: string,
    make: () => Series,
  ): Family<Series> {
    const { name } = description;
    assert(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name), `not a metric's name: ${name}`);
    assert(!this.#families.has(name), `two metrics are called ${name}`);
    const family = new BoundedFamily(description, kind, make);
    this.#families.set(name, family);
    return family;
  }
}

class BoundedFamily<Series extends Counter | Gauge | Histogram> implements Family<Series> {
  readonly #description: MetricDescription;
  readonly #labels: readonly string[];
  readonly #kind: string;
  readonly #make: () => Series;
  readonly #seriesMax: number;
  /** By the text of the labels, which identifies a series and is what is shown. */
  readonly #series = new Map<string, Series>();

  constructor(description: MetricDescription, kind: string, make: () => Series) {
    this.#description = description;
    this.#labels = description.labels ?? [];
    this.#kind = kind;
    this.#make = make;
    this.#seriesMax = description.seriesMax ?? 500;
    for (const label of this.#labels)
      assert(/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) && label !== "le", `not a label's name: ${label}`);
    if (this.#labels.length === 0) this.with(); // a metric without labels exists from the start, as 0
  }

  with(...labelValues: readonly string[]): Series {
    assert(labelValues.length === this.#labels.length, `${this.#description.name} has ${this.#labels.length} labels`);
    const key = labelsText(this.#labels, labelValues.map(short));
    const known = this.#series.get(key);
    if (known) return known;
    if (this.#series.size < this.#seriesMax) return this.#bind(key);
    const other = labelsText(
      this.#labels,
      this.#labels.map(() => "other"),
    );
    return this.#series.get(other) ?? this.#bind(other);
  }

  text(tenant?: string): string {
    const { name, help } = this.#description;
    let text = metricHead(name, this.#kind, help);
    const isByTenant = tenant !== undefined && this.#labels.includes(tenantLabel);
    const own = isByTenant ? labelsText([tenantLabel], [short(tenant)]) : "";
    for (const [labels, series] of this.#series)
      if (!isByTenant || `,${labels},`.includes(`,${own},`))
        text +=
          series instanceof Histogram ? histogramText(name, labels, series) : sampleText(name, labels, series.value);
    return text;
  }

  #bind(key: string): Series {
    const series = this.#make();
    this.#series.set(key, series);
    return series;
  }
}

const tenantLabel = "tenant";
const labelLengthMax = 200;
const short = (value: string): string => (value.length > labelLengthMax ? value.slice(0, labelLengthMax) : value);
