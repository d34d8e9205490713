/**
 * Queries in TypeScript: lazy, each step a new value, and in the end the same SQL that a person would write; it is
 * planned and run as any other query.
 */
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import { columnSql, Expression, orderingSql, type Ordering, type Window } from "./expression.ts";
import { mapCall, type MapCall, type MapOptions } from "./map-batches.ts";
import { submit, type Job, type RunOptions, type Submission, type Written } from "./job.ts";

type Paths = string | readonly string[];
type Named<Row> = { readonly [K in keyof Row]: Expression };
type Key<Row> = keyof Row & string;
// Rows without a type have any columns.
export type AnyRow = Record<string, unknown>;

export class Dataset<Row extends object = AnyRow> {
  readonly #sql: string;
  readonly #maps: readonly MapCall[];

  constructor(text: string, maps: readonly MapCall[] = []) {
    this.#sql = text;
    this.#maps = maps;
  }

  /** What is submitted to run it. */
  get submission(): Submission {
    return { sql: this.#sql, ...(this.#maps.length > 0 && { maps: this.#maps }) };
  }

  /** The query as SQL. What functions return is a table each. */
  toSql(): string {
    return this.#sql;
  }

  /** Columns by name, and new ones. */
  select<K extends Key<Row>>(...names: readonly K[]): Dataset<Pick<Row, K>>;
  select<More extends object>(columns: Named<More>): Dataset<More>;
  select(...given: readonly (string | Named<AnyRow>)[]): Dataset {
    const list = given.flatMap((one) => (typeof one === "string" ? [quoteName(one)] : namedList(one)));
    if (list.length === 0) throw new TypeError("select needs at least one column");
    return this.#from(`select ${list.join(", ")}`);
  }

  /** All columns, and these. */
  with<More extends object>(columns: Named<More>): Dataset<Row & More> {
    return this.#from(`select *, ${namedList(columns).join(", ")}`);
  }

  where(condition: Expression): Dataset<Row> {
    return this.#from("select *", ` where ${condition.sql}`);
  }

  groupBy<K extends Key<Row>>(...keys: readonly K[]): Grouped<Pick<Row, K>> {
    return new Grouped(this.#sql, keys, this.#maps);
  }

  /** Of all rows together. */
  agg<More extends object>(aggregates: Named<More>): Dataset<More> {
    return new Grouped<AnyRow>(this.#sql, [], this.#maps).agg(aggregates);
  }

  /** On columns that both have, or on a condition over `l` and `r`. */
  join<Other extends object>(
    other: Dataset<Other>,
    on: Key<Row & Other> | readonly Key<Row & Other>[] | Expression,
    how: "inner" | "left" | "right" | "full" | "semi" | "anti" = "inner",
  ): Dataset<Row & Other> {
    const names = typeof on === "string" ? [on] : on;
    const by = names instanceof Expression ? `on ${names.sql}` : `using (${names.map(quoteName).join(", ")})`;
    return new Dataset(
      `select * from (${this.#sql}) l ${how} join (${other.toSql()}) r ${by}`,
      merged(this.#maps, other.#maps),
    );
  }

  union(other: Dataset<Row>): Dataset<Row> {
    return new Dataset(`(${this.#sql}) union all (${other.toSql()})`, merged(this.#maps, other.#maps));
  }

  distinct(): Dataset<Row> {
    return this.#from("select distinct *");
  }

  sort(...by: readonly (Key<Row> | Expression | Ordering)[]): Dataset<Row> {
    return this.#from("select *", ` order by ${by.map(orderingSql).join(", ")}`);
  }

  /** All columns, and these functions over windows that share one definition. */
  window<More extends object>(columns: Named<More>, over: Window): Dataset<Row & More> {
    const named = Object.entries<Expression>(columns).map(([name, one]) => [name, one.over(over)]);
    return this.with(Object.fromEntries(named) as Named<More>);
  }

  /** About so many of 100 rows; the same ones each time for the same seed. It is drawn by one task. */
  sample(percent: number, seed = 1): Dataset<Row> {
    if (!(percent >= 0 && percent <= 100)) throw new TypeError(`${percent} is no percentage`);
    if (!Number.isSafeInteger(seed)) throw new TypeError(`${seed} is no seed`);
    return this.#from("select *", ` using sample ${percent} percent (bernoulli, ${seed})`);
  }

  limit(rows: number, offset = 0): Dataset<Row> {
    for (const one of [rows, offset])
      if (!Number.isSafeInteger(one) || one < 0) throw new TypeError(`${one} is no number of rows`);
    return this.#from("select *", ` limit ${rows}${offset > 0 ? ` offset ${offset}` : ""}`);
  }

  /**
   * Calls a function on batches of rows: `mapBatches("./clean.ts#tidy", { schema: { name: "VARCHAR" } })`. The module
   * travels with all that it imports, from its file: nothing of this program does. The function gets the columns as
   * lists, and `params`; it returns lists by column, or rows. A file that ends in .py is Python.
   */
  mapBatches<Out extends object = AnyRow>(module: string | URL, options: MapOptions): Dataset<Out> {
    const call = mapCall(this.#sql, module, options);
    return new Dataset<Out>(`select * from ${call.name}`, merged(this.#maps, [call]));
  }

  /** Submits it and does not wait. */
  async submit(options: RunOptions = {}): Promise<Job<Row>> {
    return await submit(this.submission, options);
  }

  /** Runs it and returns all rows. */
  async collect(options: RunOptions = {}): Promise<Row[]> {
    return await (await this.submit(options)).rows();
  }

  /** Runs it and prints the first rows. */
  async show(rowsMax = 20, options: RunOptions = {}): Promise<void> {
    await (await this.limit(rowsMax + 1).submit(options)).show(rowsMax);
  }

  async count(options: RunOptions = {}): Promise<number> {
    const counted = new Dataset<{ n: number }>(`select count(*) as n from (${this.#sql})`, this.#maps);
    const [row] = await counted.collect(options);
    return row?.n ?? 0;
  }

  /** How it would be run, in lines; runs nothing. */
  async explain(options: RunOptions = {}): Promise<readonly string[]> {
    return await (await submit({ ...this.submission, explain: true }, options)).explain();
  }

  /** Where its rows are to go: `await dataset.write.parquet("out")` runs it, on the node. */
  get write(): { parquet(folder: string, options?: WriteOptions<Row>): Output } {
    return {
      parquet: (folder, { partitionBy = [], ...options } = {}) =>
        new Output({ ...this.submission, output: { folder, partitionBy } }, options),
    };
  }

  #from<T extends object>(select: string, rest = ""): Dataset<T> {
    return new Dataset(`${select} from (${this.#sql})${rest}`, this.#maps);
  }
}

export type WriteOptions<Row> = RunOptions & {
  /** Files are kept apart by the values of these columns, in folders such as country=fr. */
  readonly partitionBy?: readonly (keyof Row & string)[];
};

/** A query and where its result goes. Nothing runs before it is awaited, or submitted by its job file. */
export class Output implements PromiseLike<Written> {
  readonly submission: Submission;
  readonly #options: RunOptions;

  constructor(submission: Submission, options: RunOptions) {
    this.submission = submission;
    this.#options = options;
  }

  toSql(): string {
    return this.submission.sql;
  }

  async submit(options: RunOptions = this.#options): Promise<Job> {
    return await submit(this.submission, options);
  }

  async run(options: RunOptions = this.#options): Promise<Written> {
    const { written } = await (await this.submit(options)).done();
    if (!written) throw new Error("the job ended without writing anything");
    return written;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- what a person awaits is what runs; a job file exports it unawaited
  then<A = Written, B = never>(
    done?: ((written: Written) => A | PromiseLike<A>) | null,
    failed?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.run().then(done, failed);
  }
}

export class Grouped<Keys extends object> {
  readonly #sql: string;
  readonly #keys: readonly string[];
  readonly #maps: readonly MapCall[];

  constructor(text: string, keys: readonly string[], maps: readonly MapCall[] = []) {
    this.#sql = text;
    this.#keys = keys;
    this.#maps = maps;
  }

  agg<More extends object>(aggregates: Named<More>): Dataset<Keys & More> {
    const keys = this.#keys.map(columnSql);
    const by = keys.length > 0 ? ` group by ${keys.join(", ")}` : "";
    return new Dataset(`select ${[...keys, ...namedList(aggregates)].join(", ")} from (${this.#sql})${by}`, this.#maps);
  }
}

/** In the order in which they read each other, each once. */
const merged = (a: readonly MapCall[], b: readonly MapCall[]): readonly MapCall[] => [
  ...new Map([...a, ...b].map((one) => [one.name, one])).values(),
];

const namedList = (columns: Named<AnyRow>): readonly string[] =>
  Object.entries(columns).map(([name, { sql }]) => `${sql} as ${quoteName(name)}`);

export type ReadOptions = Readonly<Record<string, string | number | boolean>>;

function read<Row extends object>(reader: string, paths: Paths, options: ReadOptions = {}): Dataset<Row> {
  const list = (typeof paths === "string" ? [paths] : paths).map(quoteText);
  if (list.length === 0) throw new TypeError("name at least one file");
  const more = Object.entries(options).map(([name, value]) => {
    if (!/^[a-z_]+$/.test(name)) throw new TypeError(`${name} is no option of a file`);
    return `${name}=${typeof value === "string" ? quoteText(value) : String(value)}`;
  });
  return new Dataset(`select * from ${reader}(${[`[${list.join(", ")}]`, ...more].join(", ")})`);
}

/** Where a query begins: files, by names or patterns. */
export const dataset = {
  parquet: <Row extends object = AnyRow>(paths: Paths, options?: ReadOptions): Dataset<Row> =>
    read("read_parquet", paths, options),
  csv: <Row extends object = AnyRow>(paths: Paths, options?: ReadOptions): Dataset<Row> =>
    read("read_csv", paths, options),
  json: <Row extends object = AnyRow>(paths: Paths, options?: ReadOptions): Dataset<Row> =>
    read("read_json", paths, options),
  /** Lines of text, in the column `line`. */
  text: (paths: Paths): Dataset<{ line: string }> =>
    new Dataset(`select coalesce(line, '') as line from (${read<{ line: string }>("read_lines", paths).toSql()})`),
  /** Of a query that is written as SQL. */
  query: <Row extends object = AnyRow>(query: Expression): Dataset<Row> => new Dataset(query.sql),
} as const;
