import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { settle } from "#base/testing/manual-clock.ts";
import type { EventKind, EventOf } from "#kernel/model/event.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import { commit, Rig, submit, type TestNode } from "#shard/testing/host.ts";

const plan = { kind: "gate", requires: [], leaseMs: 60_000, attemptsMax: 3, deadlineMs: 600_000 };
const shape = { name: "gate", needs: [], after: "success", failFast: false, mayFail: false, parallelMax: 0 } as const;

/** A job with a stage to be planned, and one that tells it its end: both in shard 0. */
async function family(node: TestNode): Promise<{ readonly parent: number; readonly child: number }> {
  const { job: parent } = await node.reply<{ job: number }>(submit({ stages: [{ ...shape, plan }] }));
  const notify = [
    { shard: 0, job: parent, stage: 0, name: "child" },
    { shard: 0, job: 999, stage: 0, name: "child" },
  ];
  const { job: child } = await node.reply<{ job: number }>(submit({ series: "s", notify }));
  return { parent, child };
}

async function logged<K extends EventKind>(rig: Rig, kind: K): Promise<EventOf<K>[]> {
  const found: EventOf<K>[] = [];
  for await (const { payload } of rig.store.connect().read(0, 1))
    for (const event of decodeEvents(payload)) if (event.kind === kind) found.push(event as EventOf<K>);
  return found;
}

describe("notices", () => {
  test("a signal says how a job ended, once; a notice for a job that does not exist is refused", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const { parent, child } = await family(a);
    const grants = await a.grants(2);
    await a.reply(
      commit(
        must(
          grants.find(({ job }) => job === child),
          "grant",
        ),
      ),
    );
    await rig.clock.advance(5_000);
    await settle();
    const { task, token } = must(
      grants.find(({ job }) => job === parent),
      "grant of the planner",
    );
    const response = await a.query({ kind: "plan-inputs", task, token, limit: 10 });
    const { signals } = (response.kind === "answer" ? response.answer : {}) as PlanInputs;
    deepEqual(
      signals.map(({ id, name, payload }) => [id, name, JSON.parse(payload)]),
      [[`ended j0-2 0`, "ended:child", { job: "j0-2", phase: "SUCCEEDED", reason: "", number: 1 }]],
    );
    const told = await logged(rig, "notified");
    deepEqual(
      told.map(({ notice, outcome }) => [notice, outcome]),
      [
        [0, "delivered"],
        [1, "refused"],
      ],
    );
    deepEqual(rig.reports, []);
    a.node.kill();
    equal(rig.clock.pending, 0);
  });

  test("a new owner tells what its predecessor could not", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const { child } = await family(a);
    const grant = must(
      (await a.grants(2)).find(({ job }) => job === child),
      "grant",
    );
    const committed = a.reply(commit(grant));
    await committed;
    a.node.kill();
    const b = await (await rig.node("b")).serving();
    await rig.clock.advance(5_000);
    await settle();
    deepEqual((await logged(rig, "notified")).map(({ outcome }) => outcome).toSorted(), ["delivered", "refused"]);
    deepEqual((await logged(rig, "signalled")).length, 1);
    b.node.kill();
  });
});
