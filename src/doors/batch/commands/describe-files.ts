/** The columns of files as TypeScript types: what `collect` returns for them. */
import { Fault } from "#base/fault.ts";
import { quoteText } from "#doors/batch/plan/quoting.ts";

export type Described = { readonly name: string; readonly type: string; readonly ts: string };

export async function describeFiles(files: string): Promise<readonly Described[]> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  try {
    const result = await connection.runAndReadAll(`describe select * from ${quoteText(files)}`);
    return result.getRows().map(([name, type]) => {
      const text = String(type);
      return { name: String(name), type: text, ts: tsType(text) };
    });
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new Fault("invalid", "describe files", { files, why }, error);
  } finally {
    connection.closeSync();
  }
}

/** Every column may be null: files do not say that it is not. */
export function tsType(type: string): string {
  const list = /^(.*)\[\d*\]$/s.exec(type);
  if (list) return `readonly (${tsType(list[1] ?? "")} | null)[]`;
  if (/^(STRUCT|MAP|UNION)\(/.test(type)) return "unknown";
  if (/^(U?(BIG|HUGE)INT|BIGNUM)$/.test(type)) return "number | bigint";
  if (/^(U?(TINY|SMALL)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*)$/.test(type)) return "number";
  if (type === "BOOLEAN") return "boolean";
  if (/^(DATE|TIMESTAMP)/.test(type)) return "Date";
  return type === "VARCHAR" || type.startsWith("ENUM") ? "string" : "unknown";
}

export function typeText(name: string, columns: readonly Described[], files: string): string {
  const lines = columns.map(({ name: column, ts, type }) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(column) ? column : JSON.stringify(column);
    return `  ${key}: ${ts} | null; // ${type.replaceAll(/\s+/g, " ").slice(0, 80)}`;
  });
  return [`// Columns of ${files.replaceAll(/\s+/g, " ")}`, `export type ${name} = {`, ...lines, "};"].join("\n");
}
