import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import { MetricsRegistry } from "#edge/metrics/registry.ts";
import { commit, reserve, Rig, submit } from "#shard/testing/host.ts";
import { StoreMetrics } from "./store-metrics.ts";
import { WorkMetrics } from "./work-metrics.ts";

const linesOf = (registry: MetricsRegistry, start: string): readonly string[] =>
  registry
    .text()
    .split("\n")
    .filter((line) => line.startsWith(start));

const valueOf = (registry: MetricsRegistry, start: string): number =>
  linesOf(registry, start).reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);

test("work is counted by class: a worker that is silent for a lease, and the next attempt", async () => {
  const rig = new Rig();
  const metrics = new WorkMetrics();
  const registry = new MetricsRegistry();
  const a = await (await rig.node("a", { observers: [metrics] })).serving();
  metrics.bind(registry, () => a.node.host.shards.values());
  const offers = ["pool=slow"];
  await a.reply(submit({ requires: offers }));
  equal(valueOf(registry, 'millrace_queue_tasks{class="pool=slow"}'), 1);
  await rig.clock.advance(2_000);
  await a.reply(reserve({ executor: "dead", offers }));
  equal(valueOf(registry, 'millrace_claims{class="pool=slow"}'), 1);
  equal(valueOf(registry, 'millrace_queue_tasks{class="pool=slow"}'), 0);
  equal(valueOf(registry, 'millrace_task_wait_seconds_sum{class="pool=slow"}'), 2);
  await rig.clock.advance(60_000);
  equal(valueOf(registry, 'millrace_lease_expiries_total{class="pool=slow"}'), 1);
  const { grants } = await a.reply<{ grants: { task: number; token: number }[] }>(reserve({ offers, nonce: "n2" }));
  const [grant] = grants;
  ok(grant);
  await rig.clock.advance(3_000);
  await a.reply(commit(grant));
  equal(valueOf(registry, 'millrace_attempts_total{class="pool=slow",outcome="committed"}'), 1);
  equal(valueOf(registry, 'millrace_attempts_total{class="pool=slow",outcome="expired"}'), 1);
  equal(valueOf(registry, 'millrace_claims_total{class="pool=slow"}'), 2);
  equal(valueOf(registry, 'millrace_task_run_seconds_count{class="pool=slow"}'), 2);
});

test("a node that never had work shows 0, so that sums work, and continues to", async () => {
  const rig = new Rig();
  const metrics = new WorkMetrics();
  const registry = new MetricsRegistry();
  const a = await (await rig.node("a", { observers: [metrics] })).serving();
  metrics.bind(registry, () => a.node.host.shards.values());
  for (const name of ["millrace_queue_tasks", "millrace_claims"])
    deepEqual(linesOf(registry, `${name}{`), [`${name}{class="any"} 0`]);
  await a.reply(submit({ requires: ["pool=slow"] }));
  deepEqual(linesOf(registry, "millrace_claims{"), ['millrace_claims{class="any"} 0']);
  equal(valueOf(registry, "millrace_queue_tasks{"), 1);
});

test("classes that callers invent share a series if there are many", async () => {
  const rig = new Rig();
  const metrics = new WorkMetrics();
  const registry = new MetricsRegistry();
  const a = await (await rig.node("a", { observers: [metrics] })).serving();
  metrics.bind(registry, () => a.node.host.shards.values());
  for (let i = 0; i < 150; i += 1) await a.reply(submit({ requires: [`pool=${i}`] }));
  equal(linesOf(registry, "millrace_queue_tasks{").length, 101);
  equal(
    valueOf(registry, 'millrace_queue_tasks{class="other"}'),
    51,
    "one of the hundred is for work that asks nothing",
  );
  equal(valueOf(registry, "millrace_queue_tasks{"), 150);
});

test("tenants beyond the first hundred share a series", async () => {
  const clock = new ManualClock();
  const metrics = new StoreMetrics();
  const registry = new MetricsRegistry();
  metrics.bind(registry, undefined);
  const store = metrics.store(createMemoryStore({ clock, sizeBytesMax: 1_000_000 }), "build");
  const bytes = Buffer.from("flour");
  const digest = sha256Digest(bytes);
  for (let i = 0; i < 150; i += 1) {
    await store.forTenant(`tenant-${i}`).blobs.write(digest, bytes);
    metrics.looked("build", `tenant-${i}`, "miss");
  }
  const written = linesOf(registry, "millrace_store_bytes_total{").filter((line) => line.includes('"written"'));
  equal(written.length, 101);
  equal(valueOf(registry, 'millrace_store_bytes_total{door="build",tenant="other",direction="written"}'), 250);
  equal(valueOf(registry, 'millrace_store_bytes_total{door="build",tenant="tenant-7",direction="written"}'), 5);
  equal(
    valueOf(registry, 'millrace_store_lookups_total{door="build",tenant="other",what="result",outcome="miss"}'),
    50,
  );
});
