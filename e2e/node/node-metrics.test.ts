/** /metrics of a whole node, after real work: parsed as Prometheus would, and compared with what was done. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { Bench, Lab } from "#e2e/node/build/execution-lab.ts";

type Sample = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number };

/** Every line is a comment or a sample; anything else fails. */
function parseMetrics(text: string): readonly Sample[] {
  return text
    .trimEnd()
    .split("\n")
    .filter((line) => !line.startsWith("# "))
    .map((line) => {
      const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
      ok(match, `not a sample: ${line}`);
      const labels = [...(match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]);
      const value = match[3] === "+Inf" ? Infinity : Number(match[3]);
      ok(!Number.isNaN(value), line);
      return { name: match[1] ?? "", labels: Object.fromEntries(labels) as Record<string, string>, value };
    });
}

const secret = randomUUID();
const tokens = [
  {
    name: "mill",
    tenant: "*",
    roles: ["operator"],
    sha256: createHash("sha256").update(secret).digest("hex"),
  },
  {
    name: "bakery",
    tenant: "bakery",
    roles: ["member", "action-cache-writer"],
    sha256: createHash("sha256").update(`${secret}b`).digest("hex"),
  },
];

const isLinux = process.platform === "linux";

describe("/metrics after real work", { skip: !isLinux && "needs linux: the sandbox", timeout: 120_000 }, () => {
  let lab: Lab;
  let samples: readonly Sample[] = [];
  const headers = { authorization: `Bearer ${secret}` };
  const origin = () => `http://127.0.0.1:${lab.node?.edgePorts[0]}`;
  const scrape = async () => {
    const answer = await fetch(`${origin()}/metrics`, { headers });
    equal(answer.status, 200);
    samples = parseMetrics(await answer.text());
  };
  const sum = (name: string, wanted: Readonly<Record<string, string>> = {}): number =>
    samples
      .filter((one) => one.name === name && Object.entries(wanted).every(([key, value]) => one.labels[key] === value))
      .reduce((total, { value }) => total + value, 0);

  before(async () => {
    lab = await Lab.open({
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      build: { leaveGrace: "1s" },
      worker: { slots: 2, labels: ["gpu=yes"] },
    });
    const bench = new Bench(lab.client(`${secret}b`));
    const runs = await Promise.all(
      ["a", "b", "c"].map(async (word) => await bench.execute(await bench.sh(`sleep 0.2; echo ${word} > out`, out))),
    );
    for (const { response } of runs) equal(response.result?.exitCode, 0);
    const again = await bench.execute(await bench.sh("sleep 0.2; echo a > out", out));
    equal(again.response.cachedResult, true);
    const bakery = { authorization: `Bearer ${secret}b` };
    const place = `${origin()}/gradle/${"a".repeat(32)}`;
    equal((await fetch(place, { headers: bakery })).status, 404);
    equal((await fetch(place, { method: "PUT", body: "flour".repeat(100), headers: bakery })).ok, true);
    equal((await (await fetch(place, { headers: bakery })).text()).length, 500);
    await scrape();
  });
  after(async () => await lab[Symbol.asyncDispose]());

  test("claims, waits and runs are counted by class", () => {
    // Tasks that several shards granted at once, beyond the free slots, were released and granted again.
    const released = sum("millrace_attempts_total", { class: "door=build,pool=default", outcome: "released" });
    equal(sum("millrace_claims_total", { class: "door=build,pool=default" }), 3 + released);
    equal(sum("millrace_attempts_total", { class: "door=build,pool=default", outcome: "committed" }), 3);
    equal(sum("millrace_task_wait_seconds_count", { class: "door=build,pool=default" }), 3 + released);
    equal(sum("millrace_task_run_seconds_count", { class: "door=build,pool=default" }), 3);
    ok(sum("millrace_task_run_seconds_sum") >= 0.6, "each slept for a fifth of a second");
    // Two slots for three of them: the last had to wait for one of the others.
    ok(sum("millrace_task_wait_seconds_sum") >= 0.15, String(sum("millrace_task_wait_seconds_sum")));
    equal(sum("millrace_lease_expiries_total"), 0);
    equal(sum("millrace_claims"), 0);
    equal(sum("millrace_shards_owned"), 2);
  });

  test("the worker's overhead around a command is separate from the command", () => {
    equal(sum("millrace_worker_slots", { pool: "default" }), 2);
    equal(sum("millrace_action_phase_seconds_count", { phase: "run" }), 3);
    equal(sum("millrace_action_overhead_seconds_count"), 3);
    const run = sum("millrace_action_phase_seconds_sum", { phase: "run" });
    ok(run >= 0.6, String(run));
  });

  test("hits, misses and bytes are counted by door and tenant", () => {
    const result = (door: string, outcome: string) =>
      sum("millrace_store_lookups_total", { door, tenant: "bakery", what: "result", outcome });
    deepEqual([result("build", "hit"), result("build", "miss")], [1, 3]);
    deepEqual([result("gradle", "hit"), result("gradle", "miss")], [1, 1]);
    equal(sum("millrace_store_bytes_total", { door: "http", tenant: "bakery", direction: "written" }), 500);
    equal(sum("millrace_store_bytes_total", { door: "http", tenant: "bakery", direction: "read" }), 500);
    ok(sum("millrace_store_bytes_total", { door: "worker", tenant: "bakery", direction: "written" }) > 0);
    ok(sum("millrace_disk_used_bytes") > 0);
    equal(sum("millrace_disk_limit_bytes") > 0, true);
    equal(sum("millrace_eviction_age_seconds"), 0);
  });

  test("queued tasks are shown while they wait, and not after", async () => {
    const bench = new Bench(lab.client(`${secret}b`));
    const wanted = { platform: { properties: [{ name: "gpu", value: "no" }] } };
    const action = await bench.sh("true # waits for ever", {}, {}, wanted);
    const call = new AbortController();
    const waiting = bench.execute(action, {}, { signal: call.signal }).catch(() => undefined);
    const queued = async (count: number) => {
      await scrape();
      return sum("millrace_queue_tasks", { class: "door=build,gpu=no,pool=default" }) === count;
    };
    await until("it is queued", () => queued(1), { limitMs: 60_000, everyMs: 50 });
    call.abort();
    await waiting;
    await until("it is not", () => queued(0), { limitMs: 60_000, everyMs: 200 });
  });
});

const out = { outputPaths: ["out"] };
