import { deepEqual } from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { Ends, type Ended } from "./ends.ts";
import { FrameReader } from "./frame.ts";

const ended = (id: string): Ended => {
  const none = { bytes: 0, leftOutBytes: 0 };
  const times = { startedAtMs: 0, ranMs: 1, readyMs: 0 };
  const how = { why: "exited", exitCode: 0, outOfMemory: false, usage: { cpuMs: 1 } } as const;
  return { ev: "ended", id, end: { ...how, stdout: none, stderr: none, ...times } };
};

/** The reports that were sent, each as the names of its runs. */
function told(play: (ends: Ends, passMs: (ms: number) => void) => void): string[] {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const writes: string[] = [];
    const read = (bytes: Buffer): string =>
      [...new FrameReader().push(bytes)].map((one) => (one as Ended).id).join(" ");
    play(new Ends((frames) => writes.push(read(frames))), (ms) => mock.timers.tick(ms));
    return writes;
  } finally {
    mock.timers.reset();
  }
}

const busy = { isMakingNext: true, others: 3 };

describe("ends of runs", () => {
  for (const [name, lane] of [
    ["whose lane has nothing to make", { isMakingNext: false, others: 3 }],
    ["beside which nothing runs", { isMakingNext: true, others: 0 }],
    ["beside which one runs", { isMakingNext: true, others: 1 }],
  ] as const)
    test(`are reported at once: one ${name}`, () =>
      deepEqual(
        told((ends) => ends.tell(ended("a"), lane)),
        ["a"],
      ));

  test("wait for others, and no longer than eight milliseconds", () =>
    deepEqual(
      told((ends, passMs) => {
        ends.tell(ended("a"), busy);
        passMs(7);
        ends.tell(ended("b"), busy);
        passMs(1);
        ends.tell(ended("c"), busy);
        passMs(8);
      }),
      ["a b", "c"],
    ));

  test("are sent with one that does not wait, in order, and once", () =>
    deepEqual(
      told((ends, passMs) => {
        ends.tell(ended("a"), busy);
        ends.tell(ended("b"), { isMakingNext: true, others: 1 });
        passMs(100);
      }),
      ["a b"],
    ));

  test("do not wait for more than sixteen", () => {
    const names = Array.from({ length: 20 }, (_, no) => String(no));
    const writes = told((ends, passMs) => {
      for (const name of names) ends.tell(ended(name), busy);
      passMs(8);
    });
    deepEqual(writes, [names.slice(0, 16).join(" "), names.slice(16).join(" ")]);
  });
});
