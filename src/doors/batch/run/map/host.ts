/**
 * The program that calls a user's function: reads batches of rows, writes rows. It runs in a process of its own, in a
 * sandbox where there is one, and knows nothing but the files beside it. It imports nothing of this program, so that a
 * user's code finds nothing of it in memory.
 *
 * BF1 A row that the function fails on is found by halving its batch; it is left out as often as the call allows.
 */
import { createReadStream, createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { Console } from "node:console";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

type Column = { readonly name: string; readonly type: string };
type Columns = Record<string, unknown[]>;
type Call = {
  readonly export: string;
  readonly params: unknown;
  readonly columns: readonly Column[];
  readonly schema: readonly Column[];
  readonly batchMs: number;
  readonly skipMax: number;
};
type UserFunction = (columns: Columns, params: unknown) => unknown;

const messageLengthMax = 2_000;
const wide = /^U?(BIG|HUGE)INT$/;

const decoders = ({ type }: Column): ((value: never) => unknown) | undefined => {
  if (wide.test(type)) return (text: string) => (Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text));
  if (type.startsWith("DECIMAL") || type === "DOUBLE" || type === "FLOAT") return Number;
  if (type === "BLOB") return (text: string) => Buffer.from(text, "base64");
  if (type === "DATE" || /^TIMESTAMP(_\w+)?$/.test(type))
    return (text: string) => new Date(`${text.replace(" ", "T")}${type === "DATE" ? "" : "Z"}`);
  if (type === "TIMESTAMP WITH TIME ZONE") return (text: string) => new Date(`${text.replace(" ", "T")}:00`);
  return undefined;
};

function decode(lists: readonly unknown[][], columns: readonly Column[]): Columns {
  return Object.fromEntries(
    columns.map((column, i) => {
      const list = lists[i] ?? [];
      const change = decoders(column);
      return [column.name, change ? list.map((value) => (value === null ? null : change(value as never))) : list];
    }),
  );
}

/** As JSON that DuckDB reads back exactly. */
function encode(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0)))
    return Object.is(value, -0) ? "-0.0" : String(value);
  return value;
}

const plainValue = (value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;

/** What the function returned, as rows: an object of equally long lists, or a list of objects. */
function rowsOf(returned: unknown, schema: readonly Column[]): readonly Record<string, unknown>[] {
  if (Array.isArray(returned)) {
    for (const row of returned as unknown[])
      if (typeof row !== "object" || row === null) throw new TypeError("it returned a row that is no object");
    return (returned as Record<string, unknown>[]).map((row) =>
      Object.fromEntries(schema.map(({ name }) => [name, plainValue(row[name] ?? null)])),
    );
  }
  if (typeof returned !== "object" || returned === null)
    throw new TypeError("it must return an object of lists, or a list of rows");
  const lists = schema.map(({ name }) => {
    const list = (returned as Record<string, unknown>)[name];
    if (!Array.isArray(list) && !ArrayBuffer.isView(list))
      throw new TypeError(`it returned no list for the column ${name}`);
    return Array.from(list as unknown as ArrayLike<unknown>);
  });
  const [first] = lists;
  const uneven = lists.findIndex((list) => list.length !== first?.length);
  if (uneven >= 0) throw new TypeError(`the column ${schema[uneven]?.name} is not as long as ${schema[0]?.name}`);
  return (first ?? []).map((_, row) =>
    Object.fromEntries(schema.map(({ name }, i) => [name, plainValue(lists[i]?.[row] ?? null)])),
  );
}

const failure = (error: unknown): string =>
  (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, messageLengthMax);

const end = (outcome: object): void => writeFileSync("outcome.json", JSON.stringify(outcome));

/** A thread of its own ends the process when one call takes too long: the call itself may never come back. */
function watch(batchMs: number): { begin(): void; done(): void } {
  const state = new BigInt64Array(new SharedArrayBuffer(8));
  const code = `
    const { workerData } = require("node:worker_threads");
    const { writeFileSync } = require("node:fs");
    setInterval(() => {
      const since = Number(Atomics.load(workerData.state, 0));
      if (since === 0 || Date.now() - since < workerData.batchMs) return;
      const failed = "one call took more than " + workerData.batchMs + " ms";
      writeFileSync("outcome.json", JSON.stringify({ failed }));
      process.kill(process.pid, "SIGKILL");
    }, Math.min(250, workerData.batchMs));`;
  new Worker(code, { eval: true, workerData: { state, batchMs } }).unref();
  return { begin: () => Atomics.store(state, 0, BigInt(Date.now())), done: () => Atomics.store(state, 0, 0n) };
}

async function main(): Promise<void> {
  const call = JSON.parse(readFileSync("call.json", "utf8")) as Call;
  const loaded = (await import(`${process.cwd()}/module.mjs`)) as Record<string, unknown>;
  const called = loaded[call.export];
  if (typeof called !== "function") throw new TypeError(`the module exports no function ${call.export}`);
  const timer = watch(call.batchMs);
  const out = createWriteStream("out.jsonl");
  let skipped = 0;
  const apply = async (columns: Columns): Promise<readonly Record<string, unknown>[]> => {
    timer.begin();
    try {
      return rowsOf(await (called as UserFunction)(columns, call.params), call.schema);
    } finally {
      timer.done();
    }
  };
  const isolate = async (lists: readonly unknown[][]): Promise<readonly Record<string, unknown>[]> => {
    const rows = lists[0]?.length ?? 0;
    try {
      return await apply(decode(lists, call.columns));
    } catch (error) {
      if (call.skipMax === 0) throw error;
      if (rows <= 1) {
        skipped += 1;
        if (skipped > call.skipMax) throw error;
        return [];
      }
      const half = rows >> 1;
      return [
        ...(await isolate(lists.map((list) => list.slice(0, half)))),
        ...(await isolate(lists.map((list) => list.slice(half)))),
      ];
    }
  };
  for await (const line of createInterface({ input: createReadStream("in.jsonl"), crlfDelay: Infinity })) {
    let text = "";
    for (const row of await isolate(JSON.parse(line) as unknown[][])) text += `${JSON.stringify(row, encode)}\n`;
    if (!out.write(text)) await once(out, "drain");
  }
  out.end();
  await once(out, "close");
  end({ skipped });
}

// All that a function prints goes to one place, in the order in which it was printed.
process.stdout.write = process.stderr.write.bind(process.stderr);
globalThis.console = new Console(process.stderr);
await main().catch((error: unknown) => end({ failed: failure(error) }));
process.exit(0);
