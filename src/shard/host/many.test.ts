/** Many commands in one request. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { settle } from "#base/testing/manual-clock.ts";
import type { Command } from "#kernel/model/command.ts";
import { commit, Rig, submit, type TestNode } from "#shard/testing/host.ts";
import type { CommandOutcome, ShardResponse } from "#shard/transport/protocol.ts";

const askMany = (node: TestNode, commands: readonly Command[]): Promise<ShardResponse> =>
  node.node.request({ kind: "commands", shard: 0, commands });

const saidOf = (response: ShardResponse): readonly CommandOutcome[] => {
  if (response.kind !== "said") throw new Error(`not said: ${JSON.stringify(response)}`);
  return response.said;
};

describe("many commands in one request", () => {
  test("are decided in order and answered one by one", async () => {
    const a = await (await new Rig().node()).serving();
    const said = saidOf(await askMany(a, [submit(), { kind: "cancel", job: 99, reason: "" }, submit()]));
    deepEqual(
      said.map((one) => (one.kind === "reply" ? one.reply : one.rejection)),
      [
        { job: 1, created: true, merged: false },
        { kind: "job-unknown", job: 99 },
        { job: 2, created: true, merged: false },
      ],
    );
  });

  test("are made durable by one append, and no answer leaves before (K7)", async () => {
    const a = await (await new Rig().node()).serving();
    for (let i = 0; i < 20; i += 1) await a.ask(submit());
    const grants = await a.grants(20);
    equal(grants.length, 20);
    const before = a.journal.count("append");
    a.journal.fail("append", "late");
    const asked = askMany(
      a,
      grants.map((grant) => commit(grant)),
    );
    let answered = false;
    void asked.then(() => (answered = true));
    await settle();
    equal(answered, false);
    a.journal.deliver();
    const said = saidOf(await asked);
    ok(said.every((one) => one.kind === "reply" && (one.reply as { committed: boolean }).committed));
    equal(a.journal.count("append") - before, 1);
  });

  test("that only the host may send, or that are malformed, are refused alone (K12)", async () => {
    const a = await (await new Rig().node()).serving();
    const nonsense = [null, 7, {}, { kind: "commit" }] as unknown as readonly Command[];
    const said = saidOf(await askMany(a, [{ kind: "tick" }, ...nonsense, submit()]));
    deepEqual(
      said.map(({ kind }) => kind),
      ["rejected", "rejected", "rejected", "rejected", "rejected", "reply"],
    );
  });

  test("must be at least one, and not too many", async () => {
    const a = await (await new Rig().node()).serving();
    for (const commands of [
      [],
      Array.from({ length: 1_001 }, () => submit()),
      "many" as unknown as readonly Command[],
    ]) {
      const response = await askMany(a, commands);
      ok(response.kind === "rejected" && response.rejection.kind === "invalid");
    }
    equal((await a.ask(submit())).kind, "reply");
  });

  test('are answered "unknown" if the owner loses the shard before they are durable', async () => {
    const a = await (await new Rig().node()).serving();
    a.journal.fail("append", "late");
    const asked = askMany(a, [submit(), submit()]);
    await settle();
    a.node.host.drop(0, "lease");
    equal((await asked).kind, "interrupted");
  });
});
