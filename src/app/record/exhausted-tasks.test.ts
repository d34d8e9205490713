import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { MetricsRegistry } from "#edge/metrics/registry.ts";
import { Memory } from "#kernel/memory/memory.ts";
import type { Grant } from "#kernel/model/model.ts";
import { reserve, Rig, submit, type TestNode } from "#shard/testing/host.ts";
import { openWatching } from "#app/compose/watching.ts";
import { check } from "#app/testing/config.ts";

type Bench = { readonly a: TestNode; readonly rig: Rig; readonly lines: object[]; readonly registry: MetricsRegistry };

async function bench(): Promise<Bench> {
  const rig = new Rig();
  const lines: object[] = [];
  const registry = new MetricsRegistry();
  const log = (line: string): void => void lines.push(JSON.parse(line) as object);
  const random = new Random("exhausted");
  const { observers, metrics } = await openWatching(check("{}"), {
    name: "a",
    clock: rig.clock,
    random,
    traceIn: () => undefined,
    memory: new Memory(1024 ** 3),
    log,
  });
  const a = await (await rig.node("a", { observers })).serving();
  metrics.work.bind(registry, () => a.node.host.shards.values());
  return { a, rig, lines, registry };
}

const exhausted = ({ registry }: Bench): readonly string[] =>
  registry
    .text()
    .split("\n")
    .filter((line) => line.startsWith("millrace_tasks_exhausted_total{"));

let nonces = 0;

/** Reserves and fails tasks until there are none, as fast as their back-off allows. */
async function failAll({ a, rig }: Bench, reason: "out-of-memory" | "user-failure", message = ""): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    const executor = `e${(nonces += 1)}`;
    const asked = reserve({ executor, count: 100, nonce: executor });
    for (const { task, token } of (await a.reply<{ grants: readonly Grant[] }>(asked)).grants)
      await a.reply({ kind: "fail", executor, task, token, reason, message });
    await rig.clock.advance(2_000);
  }
}

test("a task that fails after all its attempts is logged once, with owner and reason, and counted", async () => {
  const on = await bench();
  await on.a.reply(submit({ requires: [] }));
  await failAll(on, "out-of-memory", "printed: hunter2");
  const [{ at: _, ...line } = {} as Record<string, unknown>, ...more] = on.lines as Record<string, unknown>[];
  deepEqual(line, {
    level: "warn",
    event: "attempts-exhausted",
    tenant: "t",
    job: "j0-1",
    task: "t0-1",
    kind: "shell",
    attempts: 3,
    reason: "out-of-memory",
  });
  equal(more.length, 0);
  deepEqual(exhausted(on), ['millrace_tasks_exhausted_total{class="any",reason="out-of-memory"} 1']);
});

test("a command's own failure, which a retry would not fix, is neither logged nor counted", async () => {
  const on = await bench();
  await on.a.reply(submit());
  await failAll(on, "user-failure");
  deepEqual([on.lines, exhausted(on)], [[], []]);
});

test("many at once are a few lines with their number", async () => {
  const on = await bench();
  await on.a.reply(submit({ tasks: 100 }));
  await failAll(on, "out-of-memory");
  await on.rig.clock.advance(20_000);
  equal(on.lines.length, 11);
  deepEqual((on.lines.at(-1) as { count?: number }).count, 90);
  deepEqual(exhausted(on), ['millrace_tasks_exhausted_total{class="any",reason="out-of-memory"} 100']);
});
