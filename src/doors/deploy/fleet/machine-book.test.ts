import { equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { MachineBook } from "./machine-book.ts";

function bookOf() {
  let nowMs = 1_000_000;
  const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs, after: () => () => undefined };
  const records = watchedRecords(
    memoryRecords(() => nowMs),
    clock,
  );
  const refused: string[] = [];
  const open = () => new MachineBook({ records, clock, refused: (machine) => void refused.push(machine) });
  return { open, refused, advance: (ms: number) => void (nowMs += ms) };
}
const from = (key: string | null, machine = "m1", tenant = "acme") => ({ tenant, machine, by: "fleet-token", key });

describe("the book of machines", () => {
  test("MB1: a name belongs to the first key, on every node, also after a restart", async () => {
    const { open, refused } = bookOf();
    await open().check(from("first"));
    const other = open();
    await other.check(from("first"));
    await rejects(other.check(from("second")), /belongs to another machine's key.*deploy forget m1/);
    await rejects(other.check(from(null)), /belongs to another machine's key/);
    equal(refused.join(), "m1,m1");
    await other.check(from("second", "m2"));
    await other.check(from("second", "m1", "other-tenant"));
  });

  test("MB1: a machine without a key takes no name, and gives way to one with a key", async () => {
    const { open } = bookOf();
    const book = open();
    await book.check(from(null));
    await book.check(from("first"));
    await rejects(book.check(from(null)), /another machine's key/);
  });

  test("a name that was forgotten is free, at once here and soon on other nodes", async () => {
    const { open, advance } = bookOf();
    const [here, there] = [open(), open()];
    await here.check(from("first"));
    await there.check(from("first"));
    equal(await here.forget("acme", "m1"), true);
    await here.check(from("second"));
    advance(6_000);
    await there.check(from("second"));
    await rejects(there.check(from("first")), /another machine's key/);
    equal(await here.forget("acme", "unknown"), false);
  });

  test("MB2: a machine that floods is refused until it has slowed down, and another is not", async () => {
    const { open, advance } = bookOf();
    const book = open();
    let taken = 0;
    for (let i = 0; i < 2_000; i += 1)
      await book.check(from("k")).then(
        () => (taken += 1),
        () => undefined,
      );
    equal(taken, 501, "ten seconds' worth at once, and no more");
    await rejects(book.check(from("k")), { status: 429 });
    await book.check(from("k", "m2"));
    advance(1_000);
    await book.check(from("k"));
  });
});
