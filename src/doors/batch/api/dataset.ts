/**
 * Queries in TypeScript: lazy, each step a new value, and in the end the same SQL that a person would write; it is
 * planned and run as any other query.
 */
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import { columnSql, Expression, orderingSql, type Ordering } from "./expression.ts";

type Paths = string | readonly string[];
type Named<Row> = { readonly [K in keyof Row]: Expression };
type Key<Row> = keyof Row & string;
// Rows without a type have any columns.
export type AnyRow = Record<string, unknown>;

export class Dataset<Row extends AnyRow = AnyRow> {
  readonly #sql: string;

  constructor(text: string) {
    this.#sql = text;
  }

  /** The query as SQL. */
  toSql(): string {
    return this.#sql;
  }

  /** Columns by name, and new ones. */
  select<K extends Key<Row>>(...names: readonly K[]): Dataset<Pick<Row, K>>;
  select<More extends AnyRow>(columns: Named<More>): Dataset<More>;
  select(...given: readonly (string | Named<AnyRow>)[]): Dataset {
    const list = given.flatMap((one) => (typeof one === "string" ? [quoteName(one)] : namedList(one)));
    if (list.length === 0) throw new TypeError("select needs at least one column");
    return this.#from(`select ${list.join(", ")}`);
  }

  /** All columns, and these. */
  with<More extends AnyRow>(columns: Named<More>): Dataset<Row & More> {
    return this.#from(`select *, ${namedList(columns).join(", ")}`);
  }

  where(condition: Expression): Dataset<Row> {
    return this.#from("select *", ` where ${condition.sql}`);
  }

  groupBy<K extends Key<Row>>(...keys: readonly K[]): Grouped<Pick<Row, K>> {
    return new Grouped(this.#sql, keys);
  }

  /** Of all rows together. */
  agg<More extends AnyRow>(aggregates: Named<More>): Dataset<More> {
    return new Grouped<AnyRow>(this.#sql, []).agg(aggregates);
  }

  /** On columns that both have, or on a condition over `l` and `r`. */
  join<Other extends AnyRow>(
    other: Dataset<Other>,
    on: Key<Row & Other> | readonly Key<Row & Other>[] | Expression,
    how: "inner" | "left" | "right" | "full" | "semi" | "anti" = "inner",
  ): Dataset<Row & Other> {
    const names = typeof on === "string" ? [on] : on;
    const by = names instanceof Expression ? `on ${names.sql}` : `using (${names.map(quoteName).join(", ")})`;
    return new Dataset(`select * from (${this.#sql}) l ${how} join (${other.toSql()}) r ${by}`);
  }

  union(other: Dataset<Row>): Dataset<Row> {
    return new Dataset(`(${this.#sql}) union all (${other.toSql()})`);
  }

  distinct(): Dataset<Row> {
    return this.#from("select distinct *");
  }

  sort(...by: readonly (Key<Row> | Expression | Ordering)[]): Dataset<Row> {
    return this.#from("select *", ` order by ${by.map(orderingSql).join(", ")}`);
  }

  limit(rows: number, offset = 0): Dataset<Row> {
    for (const one of [rows, offset])
      if (!Number.isSafeInteger(one) || one < 0) throw new TypeError(`${one} is no number of rows`);
    return this.#from("select *", ` limit ${rows}${offset > 0 ? ` offset ${offset}` : ""}`);
  }

  #from<T extends AnyRow>(select: string, rest = ""): Dataset<T> {
    return new Dataset(`${select} from (${this.#sql})${rest}`);
  }
}

class Grouped<Keys extends AnyRow> {
  readonly #sql: string;
  readonly #keys: readonly string[];

  constructor(text: string, keys: readonly string[]) {
    this.#sql = text;
    this.#keys = keys;
  }

  agg<More extends AnyRow>(aggregates: Named<More>): Dataset<Keys & More> {
    const keys = this.#keys.map(columnSql);
    const by = keys.length > 0 ? ` group by ${keys.join(", ")}` : "";
    return new Dataset(`select ${[...keys, ...namedList(aggregates)].join(", ")} from (${this.#sql})${by}`);
  }
}

const namedList = (columns: Named<AnyRow>): readonly string[] =>
  Object.entries(columns).map(([name, { sql }]) => `${sql} as ${quoteName(name)}`);

type ReadOptions = Readonly<Record<string, string | number | boolean>>;

function read(reader: string, paths: Paths, options: ReadOptions = {}): Dataset {
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
  parquet: <Row extends AnyRow = AnyRow>(paths: Paths, options?: ReadOptions): Dataset<Row> =>
    read("read_parquet", paths, options),
  csv: <Row extends AnyRow = AnyRow>(paths: Paths, options?: ReadOptions): Dataset<Row> =>
    read("read_csv", paths, options),
  json: <Row extends AnyRow = AnyRow>(paths: Paths, options?: ReadOptions): Dataset<Row> =>
    read("read_json", paths, options),
  /** Of a query that is written as SQL. */
  query: <Row extends AnyRow = AnyRow>(query: Expression): Dataset<Row> => new Dataset(query.sql),
} as const;
