import { deepEqual, equal, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { readOr } from "#worker/process/groups/group.ts";
import { clearUp, remember } from "./leftovers.ts";
import { isInRange, markIn, markLine, markRange, Marks } from "./marks.ts";
import { rigHome } from "#worker/process/testing/rig.ts";

const limits = (hard: string): string =>
  `Max processes             10                   20                   processes\nMax file locks            7                    ${hard}            locks\n`;

describe("marks of runs", () => {
  test("are parsed from the kernel's limits of a process", () => {
    deepEqual([markIn(limits("unlimited")), markIn(limits("5")), markIn("")], [Infinity, 5, undefined]);
  });

  test("are below our own limit, which only root could raise", () => {
    for (const own of [2 ** 22, 2 ** 30, 2 ** 52, Infinity]) {
      const range = markRange(limits(own === Infinity ? "unlimited" : `${own}`));
      ok(range && range.from > 0 && range.from + range.count <= own && Number.isSafeInteger(range.from + range.count));
    }
    equal(markRange(limits("1000")), undefined);
    equal(markRange(""), undefined);
  });

  test("differ from run to run, and stay within their range", () => {
    const range = { from: 100, count: 3 };
    const marks = new Marks(range);
    const given = Array.from({ length: 5 }, () => marks.next());
    deepEqual(given, [101, 102, 100, 101, 102]);
    ok(given.every((mark) => isInRange(mark, range)));
    deepEqual([isInRange(99, range), isInRange(103, range)], [false, false]);
  });

  const linux = process.platform !== "linux" && "needs linux: /proc";
  test(
    "N4: leftovers of a killed launcher are found by their marks, and no other processes are",
    { skip: linux },
    async () => {
      const marks = markRange(readOr("/proc/self/limits"));
      ok(marks);
      const home = rigHome();
      const start = (line: string) =>
        spawn("/bin/sh", ["-c", `${line}; exec sleep 1000`], { cwd: "/", stdio: "ignore", detached: true });
      const [marked, other] = [start(markLine(marks.from + 5)), start(":")];
      try {
        await until("it is marked", () => markIn(readOr(`/proc/${marked.pid}/limits`)) === marks.from + 5);
        const ended = once(marked, "exit");
        remember(home, { roots: [], marks });
        clearUp(home);
        await ended;
        equal(other.exitCode ?? other.signalCode, null);
      } finally {
        for (const child of [marked, other]) child.kill("SIGKILL");
        rmSync(home, { recursive: true, force: true });
      }
    },
  );
});
