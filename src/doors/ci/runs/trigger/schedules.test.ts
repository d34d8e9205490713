import { deepEqual, equal, match } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import type { Order } from "#shard/client/client.ts";
import { CiSchedules } from "./schedules.ts";
import { Switches } from "./switches.ts";
import type { TriggerPorts } from "./trigger-event.ts";
import { Variables } from "#doors/ci/runs/variables.ts";

const minute = 60_000;
const repository = { tenant: "acme", name: "a/b", url: "/x" };
const path = ".github/workflows/n.yml";
const text = (...crons: readonly string[]): string =>
  `on: { schedule: [${crons.map((cron) => `{ cron: "${cron}" }`).join(", ")}] }
jobs: { a: { runs-on: x, steps: [{ run: "echo \${{ github.event.schedule }}" }] } }`;

function rig() {
  const clock = new ManualClock(Date.parse("2026-03-01T00:00:30Z"));
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const files = { text: text("*/10 * * * *") };
  const orders = new Map<string, Order>();
  const schedules = new CiSchedules({ records, clock, catchUp: "once" });
  const switches = new Switches(records);
  const copies = {
    resolve: async () => ({
      sha: "c".repeat(40),
      ref: "refs/heads/main",
      defaultBranch: "main",
      message: "",
      author: "",
      before: "",
    }),
    files: async () => [{ path, text: files.text }],
  };
  const ports = {
    client: {
      submit: async (order: Order) => {
        const key = order.requestKey ?? "";
        const created = !orders.has(key);
        orders.set(key, order);
        return { jobId: `j0-${[...orders.keys()].indexOf(key) + 1}`, created };
      },
    },
    blobs: createMemoryBlobs({ clock, sizeBytesMax: 1_000_000 }),
    variables: new Variables(records),
    switches,
    sources: { get: async () => repository, copies },
    seen: (...all: Parameters<CiSchedules["sync"]>) => schedules.sync(...all),
  } as unknown as TriggerPorts;
  const sync = () => schedules.sync(repository, [{ path, text: files.text }], true);
  const timer = () => schedules.timer(ports, { owns: () => true, log: () => {} });
  return { clock, files, orders, schedules, switches, sync, timer };
}

test("CI-58: each instant of a cron is one run, on however many nodes, and its cron is in the event", async () => {
  const { clock, orders, sync, timer, schedules } = rig();
  await sync();
  await using _one = timer();
  await using _two = timer();
  await clock.advance(31 * minute);
  equal(orders.size, 3);
  const [first] = orders.values();
  match(JSON.stringify(first?.spec), /\*\/10 \* \* \* \*/);
  const [listed] = await schedules.list(repository);
  deepEqual(
    [listed?.path, new Date(listed?.nextMs ?? 0).toISOString(), listed?.last?.run],
    [path, "2026-03-01T00:40:00.000Z", "j0-3"],
  );
});

test("CI-58: schedules follow the default branch: what stays keeps its time, what went starts nothing", async () => {
  const { clock, files, orders, sync, timer, schedules } = rig();
  await sync();
  files.text = text("*/10 * * * *", "5 * * * *");
  await sync();
  equal((await schedules.list(repository)).length, 2);
  await using _timer = timer();
  await clock.advance(6 * minute);
  equal(orders.size, 1);
  files.text = "on: push\njobs: { a: { runs-on: x, steps: [{ run: echo }] } }";
  await clock.advance(5 * minute); // without a push: the instant finds that its cron is gone
  equal(orders.size, 1);
  deepEqual(await schedules.list(repository), []);
});

test("CI-58: a disabled workflow has no scheduled runs, and has them again", async () => {
  const { clock, orders, switches, sync, timer } = rig();
  await sync();
  await using _timer = timer();
  await switches.disable("acme", { repository: "A/b", path, by: "ada", atMs: 0 });
  await clock.advance(12 * minute);
  equal(orders.size, 0);
  await switches.enable("acme", { repository: "a/b", path });
  await clock.advance(10 * minute);
  equal(orders.size, 1);
});

test("a look at workflows changes no trust; the push of another member takes it away", async () => {
  const { clock, orders, schedules, files, sync, timer } = rig();
  await sync();
  await schedules.sync(repository, [{ path, text: files.text }]);
  await using _timer = timer();
  const asksForSandbox = (): boolean => JSON.stringify([...orders.values()].at(-1)).includes("isolation=sandbox");
  await clock.advance(11 * minute);
  deepEqual([orders.size, asksForSandbox()], [1, false]);
  await schedules.sync(repository, [{ path, text: files.text }], false);
  await clock.advance(10 * minute);
  deepEqual([orders.size, asksForSandbox()], [2, true]);
});
