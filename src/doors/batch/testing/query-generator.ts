/** Random queries with one right answer each, over tables of oracle-tables.ts: what ties could decide is left out. */
import type { Random } from "#base/random.ts";

type Kind = "int" | "text" | "decimal" | "double" | "date" | "time" | "bool";
type Column = { readonly sql: string; readonly kind: Kind };
type Relation = { readonly from: string; readonly columns: readonly Column[] };

export type GeneratedQuery = { readonly sql: string; readonly isOrdered: boolean };

const tableColumns: readonly (readonly [string, Kind])[] = [
  ["id", "int"],
  ["i", "int"],
  ["j", "int"],
  ["s", "text"],
  ["d", "decimal"],
  ["f", "double"],
  ["dt", "date"],
  ["ts", "time"],
  ["b", "bool"],
];

export class QueryGenerator {
  readonly #random: Random;
  readonly #tables: readonly string[];
  #aliases = 0;

  /** `tables` are what stands after FROM. */
  constructor(random: Random, tables: readonly string[]) {
    this.#random = random;
    this.#tables = tables;
  }

  query(): GeneratedQuery {
    this.#aliases = 0;
    const body = this.#select(2);
    if (!this.#random.chance(0.4)) return { sql: body.sql, isOrdered: false };
    const places = body.kinds.map((_, i) => `${i + 1}${this.#direction()}`);
    const limit = this.#random.chance(0.5) ? ` limit ${this.#random.between(0, 40)}` : "";
    const offset = limit !== "" && this.#random.chance(0.3) ? ` offset ${this.#random.below(10)}` : "";
    return { sql: `select * from (${body.sql}) order by ${places.join(", ")}${limit}${offset}`, isOrdered: true };
  }

  #direction(): string {
    return this.#random.pick(["", " desc", " nulls first", " desc nulls last"]);
  }

  #alias(): string {
    this.#aliases += 1;
    return `q${this.#aliases}`;
  }

  #select(depth: number): { readonly sql: string; readonly kinds: readonly Kind[] } {
    const random = this.#random;
    const choice = random.fraction();
    if (depth > 0 && choice < 0.1) return this.#setOperation(depth);
    const relation = this.#relation(depth);
    const where = random.chance(0.6) ? ` where ${this.#condition(relation, depth)}` : "";
    if (choice < 0.5) return this.#grouped(relation, where);
    if (choice < 0.65) return this.#windowed(relation, where);
    const list = this.#list(relation, random.between(1, 4));
    const distinct = random.chance(0.2) ? "distinct " : "";
    const named = list.map(({ sql }, i) => `${sql} as x${i}`).join(", ");
    return { sql: `select ${distinct}${named} from ${relation.from}${where}`, kinds: list.map(({ kind }) => kind) };
  }

  #setOperation(depth: number): { readonly sql: string; readonly kinds: readonly Kind[] } {
    const random = this.#random;
    const kinds = Array.from({ length: random.between(1, 3) }, () =>
      random.pick<Kind>(["int", "text", "decimal", "date"]),
    );
    const side = (): string => {
      const relation = this.#relation(depth - 1);
      const list = kinds.map((kind, i) => `${this.#value(relation, kind)} as x${i}`).join(", ");
      return `select ${list} from ${relation.from}${random.chance(0.4) ? ` where ${this.#condition(relation, 0)}` : ""}`;
    };
    const word = random.pick(["union all", "union", "except", "intersect", "except all", "intersect all"]);
    return { sql: `(${side()}) ${word} (${side()})`, kinds };
  }

  #relation(depth: number): Relation {
    const random = this.#random;
    const choice = random.fraction();
    if (depth > 0 && choice < 0.35) return this.#joined(depth);
    if (depth > 0 && choice < 0.5) {
      const alias = this.#alias();
      const { sql, kinds } = this.#select(depth - 1);
      return { from: `(${sql}) ${alias}`, columns: kinds.map((kind, i) => ({ sql: `${alias}.x${i}`, kind })) };
    }
    const alias = this.#alias();
    return {
      from: `${random.pick(this.#tables)} ${alias}`,
      columns: tableColumns.map(([name, kind]) => ({ sql: `${alias}.${name}`, kind })),
    };
  }

  #joined(depth: number): Relation {
    const random = this.#random;
    const [left, right] = [this.#relation(depth - 1), this.#relation(0)];
    const kind = random.pick([
      "join",
      "left join",
      "right join",
      "full join",
      "semi join",
      "anti join",
      "join",
      "left join",
    ]);
    const on = this.#joinCondition(left, right);
    const columns = kind === "semi join" || kind === "anti join" ? left.columns : [...left.columns, ...right.columns];
    return { from: `${left.from} ${kind} ${right.from} on ${on}`, columns };
  }

  /** Always with an equality, so that no join is large. */
  #joinCondition(left: Relation, right: Relation): string {
    const random = this.#random;
    const kinds = (["int", "text", "date", "decimal"] as const).filter((kind) => columnsOf(left, kind).length > 0);
    const kind = kinds.length === 0 ? undefined : random.pick(kinds);
    if (kind === undefined)
      return `${random.pick(left.columns).sql} is null and ${random.pick(columnsOf(right, "int")).sql} = 3`;
    const equal = `${random.pick(columnsOf(left, kind)).sql} = ${random.pick(narrowOf(right, kind)).sql}`;
    const [a] = columnsOf(left, "int");
    const [b] = columnsOf(right, "int");
    return a && b && random.chance(0.3) ? `${equal} and ${a.sql} ${random.pick(["<", "<>", ">="])} ${b.sql}` : equal;
  }

  #grouped(relation: Relation, where: string): { readonly sql: string; readonly kinds: readonly Kind[] } {
    const random = this.#random;
    const keys = random.chance(0.2) ? [] : this.#list(relation, random.between(1, 2));
    const calls = Array.from({ length: random.between(1, 3) }, () => this.#aggregate(relation));
    const list = [...keys, ...calls].map(({ sql }, i) => `${sql} as x${i}`).join(", ");
    const by = keys.length > 0 ? ` group by ${keys.map((_, i) => i + 1).join(", ")}` : "";
    const having = keys.length > 0 && random.chance(0.2) ? ` having count(*) > ${random.between(1, 3)}` : "";
    const kinds = [...keys, ...calls].map(({ kind }) => kind);
    return { sql: `select ${list} from ${relation.from}${where}${by}${having}`, kinds };
  }

  #aggregate(relation: Relation): Column {
    const random = this.#random;
    const any = random.pick(relation.columns);
    const numeric = random.pick<Kind>(["int", "decimal", "double"]);
    const value = this.#value(relation, numeric);
    const text = this.#value(relation, "text");
    const filter = random.chance(0.15) ? ` filter (where ${this.#simple(relation)})` : "";
    return random.pick<Column>([
      { sql: `count(*)${filter}`, kind: "int" },
      { sql: `count(${any.sql})${filter}`, kind: "int" },
      { sql: `count(distinct ${any.sql})`, kind: "int" },
      { sql: `sum(${value})${filter}`, kind: numeric },
      { sql: `avg(${value})${filter}`, kind: "double" },
      { sql: `min(${any.sql})${filter}`, kind: any.kind },
      { sql: `max(${any.sql})${filter}`, kind: any.kind },
      { sql: `stddev_samp(${this.#value(relation, "int")})`, kind: "double" },
      { sql: `bool_or(${this.#simple(relation)})`, kind: "bool" },
      { sql: `median(${this.#value(relation, "int")})`, kind: "double" },
      { sql: `string_agg(distinct ${text}, '-' order by ${text})`, kind: "text" },
      { sql: `quantile_disc(${this.#value(relation, "int")}, 0.25)`, kind: "int" },
    ]);
  }

  #windowed(relation: Relation, where: string): { readonly sql: string; readonly kinds: readonly Kind[] } {
    const random = this.#random;
    const keys = random.chance(0.8) ? ` partition by ${this.#list(relation, 1)[0]?.sql ?? "1"}` : "";
    // Rows that the order does not tell apart are the same in all columns.
    const order = relation.columns.map(({ sql }) => `${sql}${this.#direction()}`).join(", ");
    const frame = random.pick([
      "",
      " rows between 2 preceding and current row",
      " rows between unbounded preceding and 1 following",
    ]);
    const value = this.#value(relation, random.pick<Kind>(["int", "decimal"]));
    const call = random.pick<Column>([
      { sql: `row_number() over (${keys} order by ${order})`, kind: "int" },
      { sql: `rank() over (${keys} order by ${this.#value(relation, "int")})`, kind: "int" },
      { sql: `dense_rank() over (${keys} order by ${this.#value(relation, "text")} desc)`, kind: "int" },
      { sql: `sum(${value}) over (${keys} order by ${order}${frame})`, kind: "decimal" },
      { sql: `count(*) over (${keys})`, kind: "int" },
      { sql: `lag(${value}, 2) over (${keys} order by ${order})`, kind: "decimal" },
      { sql: `lead(${value}) over (${keys} order by ${order})`, kind: "decimal" },
      { sql: `max(${value}) over (${keys})`, kind: "decimal" },
      { sql: `first_value(${value}) over (${keys} order by ${order})`, kind: "decimal" },
      { sql: `ntile(3) over (${keys} order by ${order})`, kind: "int" },
    ]);
    const list = [...this.#list(relation, random.between(1, 2)), call];
    const named = list.map(({ sql }, i) => `${sql} as x${i}`).join(", ");
    return { sql: `select ${named} from ${relation.from}${where}`, kinds: list.map(({ kind }) => kind) };
  }

  #list(relation: Relation, count: number): readonly Column[] {
    return Array.from({ length: count }, () => {
      if (this.#random.chance(0.7)) return this.#random.pick(relation.columns);
      const kind = this.#random.pick<Kind>(["int", "text", "decimal", "date", "bool"]);
      return { sql: this.#value(relation, kind), kind };
    });
  }

  #value(relation: Relation, kind: Kind): string {
    const random = this.#random;
    const own = columnsOf(relation, kind);
    const plain = own.length > 0 && random.chance(0.7) ? random.pick(own).sql : undefined;
    const other = random.pick(relation.columns);
    const base = plain ?? (own.length > 0 ? random.pick(own).sql : `cast(NULL as ${sqlType[kind]})`);
    if (plain !== undefined) return plain;
    switch (kind) {
      case "int":
        return random.pick([
          `(${base} % 5)`,
          `(${base} + 1)`,
          `coalesce(${base}, -1)`,
          `case when ${other.sql} is null then 1 else 2 end`,
        ]);
      case "text":
        return random.pick([
          `upper(${base})`,
          `coalesce(${base}, 'none')`,
          `substr(${base}, 1, 2)`,
          `concat(${base}, '!')`,
        ]);
      case "decimal":
        return random.pick([`(${base} * 2)`, `coalesce(${base}, 0)`, `abs(${base})`]);
      case "double":
        return random.pick([`(${base} * 2)`, `coalesce(${base}, 0.5)`]);
      case "date":
        return random.pick([`(${base} + 1)`, `cast(date_trunc('month', ${base}) as date)`]);
      case "time":
        return `date_trunc('hour', ${base})`;
      case "bool":
        return `(${this.#simple(relation)})`;
    }
  }

  #simple(relation: Relation): string {
    const random = this.#random;
    const { sql, kind } = random.pick(relation.columns);
    switch (kind) {
      case "int":
        return random.pick([
          `${sql} > ${random.below(50)}`,
          `${sql} % 3 = 1`,
          `${sql} in (1, 2, 5, 8)`,
          `${sql} between 3 and 40`,
        ]);
      case "text":
        return random.pick([
          `${sql} like '%a%'`,
          `${sql} <> 'ab'`,
          `length(${sql}) > 1`,
          `${sql} in ('a', 'b', 'it''s')`,
        ]);
      case "decimal":
        return `${sql} <= ${random.below(60)}.5`;
      case "double":
        return `${sql} < ${random.below(60)}`;
      case "date":
        return `${sql} >= date '2024-01-${String(random.between(1, 28)).padStart(2, "0")}'`;
      case "time":
        return `${sql} < timestamp '2024-02-01 10:00:00'`;
      case "bool":
        return random.pick([sql, `not ${sql}`]);
    }
  }

  #condition(relation: Relation, depth: number): string {
    const random = this.#random;
    const choice = random.fraction();
    if (choice < 0.12) return `${random.pick(relation.columns).sql} is ${random.chance(0.5) ? "not " : ""}null`;
    if (choice < 0.25) return `(${this.#simple(relation)} or ${this.#simple(relation)})`;
    if (choice < 0.35) return `(${this.#simple(relation)} and not (${this.#simple(relation)}))`;
    if (depth > 0 && choice < 0.55) return this.#subquery(relation);
    return this.#simple(relation);
  }

  #subquery(relation: Relation): string {
    const random = this.#random;
    const alias = this.#alias();
    const table = `${random.pick(this.#tables)} ${alias}`;
    const [outer] = columnsOf(relation, "int");
    if (!outer) return this.#simple(relation);
    const inner = `${alias}.${random.pick(["i", "j", "id"])}`;
    return random.pick([
      `${outer.sql} in (select ${inner} from ${table} where ${alias}.id % 2 = 0)`,
      `${outer.sql} not in (select ${inner} from ${table} where ${inner} is not null and ${alias}.id < 20)`,
      `${outer.sql} not in (select ${inner} from ${table})`,
      `exists (select 1 from ${table} where ${inner} = ${outer.sql} and ${alias}.d > 5)`,
      `not exists (select 1 from ${table} where ${inner} = ${outer.sql})`,
      `${outer.sql} > (select avg(${inner}) from ${table})`,
      `${outer.sql} >= (select max(${alias}.i) from ${table} where ${alias}.j = ${outer.sql})`,
    ]);
  }
}

const sqlType: Readonly<Record<Kind, string>> = {
  int: "BIGINT",
  text: "VARCHAR",
  decimal: "DECIMAL(10,2)",
  double: "DOUBLE",
  date: "DATE",
  time: "TIMESTAMP",
  bool: "BOOLEAN",
};

const columnsOf = ({ columns }: Relation, kind: Kind): readonly Column[] => columns.filter((one) => one.kind === kind);

/** The unique column where there is one: joins stay small. */
const narrowOf = (relation: Relation, kind: Kind): readonly Column[] => {
  const own = columnsOf(relation, kind);
  return kind === "int" ? own.slice(0, 2) : own;
};
