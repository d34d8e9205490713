import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { cellKey } from "#doors/ci/cell-key.ts";
import { searchRuns, Searches, type SearchPorts } from "./search-all.ts";

const at = "2026-11-18T07:16:39.123Z";

/** Runs j0-0 to j0-(n-1) with two jobs each; line i of each log is `line i of RUN`, ten bytes long each. */
function world(runs: number, lines: number, nowMs: () => number = () => 0): SearchPorts {
  const ids = Array.from({ length: runs }, (_, i) => `j0-${i}`);
  return {
    clock: { monotonicMs: nowMs },
    client: {
      jobs: ({ cursor = "0" }) => {
        const here = Number(cursor);
        const jobs = ids.slice(here, here + 1).map((jobId) => ({ jobId }));
        return Promise.resolve({ jobs, cursor: here + 1 < runs ? String(here + 1) : undefined }) as never;
      },
      job: (jobId: string) => {
        const tasks = [0, 1].map((task) => ({
          task,
          stage: 0,
          key: cellKey([task], `job ${task}`),
          claims: [],
          steps: [],
        }));
        const stages = [{ stage: 0, name: "job", needs: [], reason: "", phase: "COMPLETED", waitsForSignals: [] }];
        const tags = [{ name: "repository", value: "mill/flour" }];
        return Promise.resolve({
          view: { tenant: "t", door: "ci", name: jobId, phase: "SUCCEEDED", stages, tasks, tags },
        }) as never;
      },
    },
    async *feed({ run, from }) {
      const first = (from?.offset ?? 0) / 10;
      for (let line = first; line < lines; line += 2) {
        const both = [line, line + 1].filter((one) => one < lines);
        await Promise.resolve();
        yield {
          token: 1,
          offset: line * 10,
          lines: both.map((one) => ({ at, kind: "plain" as const, text: `Line ${one} of ${run}` })),
          ends: both.map((one) => (one + 1) * 10),
          end: (line + both.length) * 10,
        };
      }
    },
  };
}

const search = { tenant: "t", tags: [], signal: new AbortController().signal };

async function all(ports: SearchPorts, text: string, limit: number, limits?: Parameters<typeof searchRuns>[2]) {
  const items: string[] = [];
  let [calls, runs] = [0, 0];
  for (let cursor: string | undefined; ; calls += 1) {
    const found = await searchRuns(ports, { ...search, text, limit, cursor }, limits);
    items.push(...found.items.map((one) => `${one.run} ${one.job}: ${one.text}`));
    runs += found.runs;
    cursor = found.next;
    if (cursor === undefined) return { items, calls: calls + 1, runs };
  }
}

test("whatever a call may find, read or look at: all lines are found once, in the same order", async () => {
  const ports = world(5, 7);
  const whole = await all(ports, "line", 1_000);
  equal(whole.items.length, 5 * 2 * 7);
  equal(whole.calls, 1);
  equal(whole.items[0], "j0-0 job 0: Line 0 of j0-0");
  for (const limits of [
    { runsMax: 1, bytesMax: 1_000, msMax: 1_000 },
    { runsMax: 9, bytesMax: 1, msMax: 1_000 },
    { runsMax: 2, bytesMax: 45, msMax: 1_000 },
  ]) {
    const parts = await all(ports, "line", 1_000, limits);
    deepEqual(parts.items, whole.items, JSON.stringify(limits));
    equal(parts.calls > 1, true);
  }
  for (const limit of [1, 2, 3, 7, 50]) deepEqual((await all(ports, "line", limit)).items, whole.items, String(limit));
  deepEqual((await all(ports, "LINE 3 OF j0-4", 10)).items, [
    "j0-4 job 0: Line 3 of j0-4",
    "j0-4 job 1: Line 3 of j0-4",
  ]);
});

test("a call whose time is over says where to go on, and always gets somewhere", async () => {
  let nowMs = 0;
  const found = await all(
    world(4, 4, () => (nowMs += 20_000)),
    "of j0-3",
    100,
  );
  equal(found.items.length, 8);
});

test("a cursor of something else is refused, and too many searches at once are", async () => {
  for (const cursor of ["x", Buffer.from('{"cell":-1}').toString("base64url"), Buffer.from("[]").toString("base64url")])
    await rejects(searchRuns(world(1, 1), { ...search, text: "x", limit: 1, cursor }), /cursor/);
  const searches = new Searches();
  const held = Promise.withResolvers<void>();
  const running = [1, 2].map(() => searches.run("t", () => held.promise));
  await rejects(
    searches.run("t", () => Promise.resolve()),
    /other searches/,
  );
  await searches.run("u", () => Promise.resolve());
  held.resolve();
  await Promise.all(running);
  await searches.run("t", () => Promise.resolve());
});
