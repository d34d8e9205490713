import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { UnwaitingOutput } from "./log-output.ts";

/** A pipe that holds `bytesMax` until it is read, and then more. */
function pipe(bytesMax: number) {
  let room = bytesMax;
  let held = "";
  let all = "";
  const write = (bytes: Buffer): number => {
    const taken = Math.min(room - held.length, bytes.length);
    if (taken <= 0) throw Object.assign(new Error("full"), { code: "EAGAIN" });
    held += bytes.subarray(0, taken).toString();
    return taken;
  };
  const read = (): string => {
    all += held;
    held = "";
    room = 1_000;
    return all;
  };
  return { output: new UnwaitingOutput(write), read };
}

test("LO1: lines are dropped and counted while the log is not read, and no line is cut", () => {
  const { output, read } = pipe(10);
  for (const line of ["one", "two", "three", "four", "five"]) output.line(line);
  equal(read(), "one\ntwo\nth");
  output.line("six");
  output.line("seven");
  const dropped = "(2 lines were dropped: the log was not being read)";
  deepEqual(read().split("\n"), ["one", "two", "three", dropped, "six", "seven", ""]);
});

test("a reader that went away is no error", () => {
  const output = new UnwaitingOutput(() => {
    throw Object.assign(new Error("gone"), { code: "EPIPE" });
  });
  output.line("one");
  output.line("two");
});
