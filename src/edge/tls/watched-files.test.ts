import { deepEqual, equal } from "node:assert/strict";
import { mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { until } from "#testing/until.ts";
import { WatchedFiles } from "./watched-files.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-watched-"));
after(() => rm(folder, { recursive: true, force: true }));

async function watching(path: string, handle: () => void = () => {}) {
  const clock = new ManualClock();
  const seen: string[] = [];
  const watched = await WatchedFiles.start([path], {
    clock,
    everyMs: 1_000,
    onChange: async () => {
      seen.push("change");
      handle();
    },
    onTrouble: (error) => seen.push(String(error)),
  });
  /** One complete check: the timer for the next is set only then. */
  const look = async (): Promise<void> => {
    await clock.advance(1_000);
    await until("the look is over", () => clock.pending === 1);
  };
  return { watched, clock, seen, look };
}

describe("watched files", () => {
  test("report each change once, and nothing without a change", async () => {
    const path = join(folder, "plain");
    await writeFile(path, "a");
    const { watched, seen, look } = await watching(path);
    using _ = watched;
    await look();
    equal(seen.length, 0);
    await writeFile(path, "ab");
    await look();
    await look();
    deepEqual(seen, ["change"]);
  });

  test("report files that appear, disappear, and are behind a link that is switched", async () => {
    const path = join(folder, "link");
    const { watched, seen, look } = await watching(path);
    using _ = watched;
    for (const target of ["one", "two"]) {
      await writeFile(join(folder, target), "same");
      await symlink(target, `${path}.new`);
      await rename(`${path}.new`, path);
      await look();
    }
    await rm(path);
    await look();
    deepEqual(seen, ["change", "change", "change"]);
  });

  test("retry a failed change, without a further change", async () => {
    const path = join(folder, "failing");
    let failures = 2;
    const { watched, seen, look } = await watching(path, () => {
      if (failures-- > 0) throw new Error("half written");
    });
    using _ = watched;
    await writeFile(path, "a");
    for (let times = 0; times < 5; times += 1) await look();
    deepEqual(seen, ["change", "Error: half written", "change", "Error: half written", "change"]);
  });

  test("are not checked after the end", async () => {
    const { watched, clock } = await watching(join(folder, "none"));
    watched[Symbol.dispose]();
    equal(clock.pending, 0);
  });
});
