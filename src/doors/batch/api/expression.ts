/** Expressions as values: they hold SQL that was put together with every name and text quoted. */
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";

export type Literal = string | number | bigint | boolean | null | Date;
export type Operand = Expression | Literal;

export class Expression {
  readonly sql: string;

  constructor(text: string) {
    this.sql = text;
  }

  add(other: Operand): Expression {
    return this.#with("+", other);
  }
  sub(other: Operand): Expression {
    return this.#with("-", other);
  }
  mul(other: Operand): Expression {
    return this.#with("*", other);
  }
  div(other: Operand): Expression {
    return this.#with("/", other);
  }
  mod(other: Operand): Expression {
    return this.#with("%", other);
  }
  eq(other: Operand): Expression {
    return this.#with("=", other);
  }
  ne(other: Operand): Expression {
    return this.#with("<>", other);
  }
  lt(other: Operand): Expression {
    return this.#with("<", other);
  }
  le(other: Operand): Expression {
    return this.#with("<=", other);
  }
  gt(other: Operand): Expression {
    return this.#with(">", other);
  }
  ge(other: Operand): Expression {
    return this.#with(">=", other);
  }
  and(other: Operand): Expression {
    return this.#with("and", other);
  }
  or(other: Operand): Expression {
    return this.#with("or", other);
  }
  not(): Expression {
    return new Expression(`(not ${this.sql})`);
  }
  like(pattern: string): Expression {
    return this.#with("like", pattern);
  }
  in(...values: readonly Operand[]): Expression {
    return values.length === 0
      ? new Expression("false")
      : new Expression(`(${this.sql} in (${values.map(operandSql).join(", ")}))`);
  }
  isNull(): Expression {
    return new Expression(`(${this.sql} is null)`);
  }
  isNotNull(): Expression {
    return new Expression(`(${this.sql} is not null)`);
  }
  /** As another type, such as "BIGINT". */
  as(type: string): Expression {
    if (!/^[A-Za-z][A-Za-z0-9_ ]*(\(\d+(,\s*\d+)?\))?(\[\])*$/.test(type)) throw new TypeError(`${type} is no type`);
    return new Expression(`cast(${this.sql} as ${type})`);
  }
  asc(): Ordering {
    return new Ordering(`${this.sql} asc nulls last`);
  }
  desc(): Ordering {
    return new Ordering(`${this.sql} desc nulls last`);
  }
  /** Of an aggregate or a window function. */
  over({ partitionBy = [], orderBy = [] }: Window): Expression {
    const parts = [
      ...(partitionBy.length > 0 ? [`partition by ${partitionBy.map(columnSql).join(", ")}`] : []),
      ...(orderBy.length > 0 ? [`order by ${orderBy.map(orderingSql).join(", ")}`] : []),
    ];
    return new Expression(`${this.sql} over (${parts.join(" ")})`);
  }

  #with(sign: string, other: Operand): Expression {
    return new Expression(`(${this.sql} ${sign} ${operandSql(other)})`);
  }
}

export class Ordering {
  readonly sql: string;

  constructor(text: string) {
    this.sql = text;
  }
}

export type Window = {
  readonly partitionBy?: readonly (string | Expression)[];
  readonly orderBy?: readonly (string | Expression | Ordering)[];
};

export const col = (name: string): Expression => new Expression(quoteName(name));
export const lit = (value: Literal): Expression => new Expression(literalSql(value));

/** SQL as it is written; what is put in is quoted as a value, unless it is an expression. */
export const sql = (texts: TemplateStringsArray, ...values: readonly Operand[]): Expression =>
  new Expression(texts.map((text, i) => `${text}${i < values.length ? operandSql(values[i] ?? null) : ""}`).join(""));

/** Any function of DuckDB's, by its name. */
export function call(name: string, ...operands: readonly Operand[]): Expression {
  if (!/^[a-z_][a-z0-9_]*$/i.test(name)) throw new TypeError(`${name} is no name of a function`);
  return new Expression(`${name}(${operands.map(operandSql).join(", ")})`);
}

const aggregate =
  (name: string) =>
  (of: string | Expression): Expression =>
    new Expression(`${name}(${columnSql(of)})`);

export const count = (of?: string | Expression): Expression =>
  new Expression(of === undefined ? "count(*)" : `count(${columnSql(of)})`);
export const countDistinct = (of: string | Expression): Expression =>
  new Expression(`count(distinct ${columnSql(of)})`);
export const sum = aggregate("sum");
export const avg = aggregate("avg");
export const min = aggregate("min");
export const max = aggregate("max");
export const rowNumber = (): Expression => new Expression("row_number()");

/** A plain text is a column's name. */
export const columnSql = (of: string | Expression): string => (typeof of === "string" ? quoteName(of) : of.sql);

export const orderingSql = (of: string | Expression | Ordering): string =>
  of instanceof Ordering ? of.sql : `${columnSql(of)} asc nulls last`;

const operandSql = (value: Operand): string => (value instanceof Expression ? value.sql : literalSql(value));

function literalSql(value: Literal): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return quoteText(checked(value));
  if (value instanceof Date) return `TIMESTAMP ${quoteText(value.toISOString().replace("T", " ").replace("Z", ""))}`;
  if (typeof value === "number" && !Number.isFinite(value)) return `cast('${value}' as DOUBLE)`;
  return String(value);
}

function checked(text: string): string {
  if (text.includes("\0")) throw new TypeError("a text in a query cannot have a zero byte");
  return text;
}
