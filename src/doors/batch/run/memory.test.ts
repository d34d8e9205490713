import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { Memory } from "./memory.ts";

const never = new AbortController().signal;

describe("a node's memory", () => {
  test("is given out in order, and never more than there is", async () => {
    const memory = new Memory(100);
    const first = await memory.take(60, never);
    const got: string[] = [];
    const large = memory.take(80, never).then((held) => (got.push("large"), held));
    const small = memory.take(10, never).then((held) => (got.push("small"), held));
    await Promise.resolve();
    deepEqual([got, memory.freeBytes], [[], 40]);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    await large;
    await small;
    deepEqual([got, memory.freeBytes], [["large", "small"], 10]);
  });

  test("is not lost with who leaves the line, and one who wants more than all gets all", async () => {
    const memory = new Memory(100);
    const all = await memory.take(1_000, never);
    equal(memory.freeBytes, 0);
    const abort = new AbortController();
    const gone = memory.take(100, abort.signal);
    const next = memory.take(50, never);
    abort.abort(new Error("stopped"));
    await rejects(gone, /stopped/);
    all[Symbol.dispose]();
    (await next)[Symbol.dispose]();
    equal(memory.freeBytes, 100);
  });
});
