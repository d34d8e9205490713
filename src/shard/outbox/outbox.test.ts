import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault } from "#base/fault.ts";
import { settle } from "#base/testing/manual-clock.ts";
import type { Submit } from "#kernel/model/command.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { JobView, Stats } from "#kernel/read/query.ts";
import { commit, Rig, submit, type TestNode } from "#shard/testing/host.ts";
import type { Publication, Publisher } from "./outbox.ts";

/** Records what it was asked to publish, and answers as the test says: "done" by default. */
class Board {
  readonly asked: Publication[] = [];
  readonly aborted: string[] = [];
  readonly #answers: (() => Promise<"done" | "later">)[] = [];
  otherwise: () => Promise<"done" | "later"> = async () => "done";

  readonly publisher: Publisher = (publication, signal) => {
    this.asked.push(publication);
    signal.addEventListener("abort", () => this.aborted.push(publication.publish));
    return (this.#answers.shift() ?? this.otherwise)();
  };

  next(...answers: readonly (() => Promise<"done" | "later">)[]): void {
    this.#answers.push(...answers);
  }

  get names(): readonly string[] {
    return this.asked.map(({ publish }) => publish);
  }
}

const later = async (): Promise<"later"> => "later";
const never = (): Promise<never> => new Promise(() => {});
const fails = async (): Promise<never> => {
  throw new Fault("unavailable", "write to the board");
};

/** One task of a job of its own, committed, with something to publish. */
async function done(node: TestNode, publish: string, given: Partial<Submit> = {}): Promise<number> {
  const { job } = await node.reply<{ job: number }>(submit(given));
  const [grant] = await node.grants(1);
  ok(grant);
  await node.reply(commit(grant, { result: { payload: "p", digests: [], publish } }));
  return job;
}

async function phaseOf(node: TestNode, job: number): Promise<string> {
  const response = await node.query({ kind: "job", job });
  return response.kind === "answer" ? (response.answer as JobView).phase : response.kind;
}

async function unpublished(node: TestNode): Promise<number> {
  const response = await node.query({ kind: "stats" });
  return response.kind === "answer" ? (response.answer as Stats).unpublished : -1;
}

describe("the shard's owner publishes committed results", () => {
  test("and then the job has succeeded", async () => {
    const rig = new Rig();
    const board = new Board();
    const a = await (await rig.node("a", { publisher: board.publisher })).serving();
    const gate = Promise.withResolvers<"done">();
    board.next(() => gate.promise);
    const job = await done(a, "one");
    await settle();
    deepEqual(board.asked, [
      {
        shard: 0,
        tenant: "t",
        door: "shell",
        job,
        task: 1,
        generation: 1,
        spec: "do 0",
        publish: "one",
        result: { payload: "p", digests: [], publish: "one" },
        committedAtMs: rig.clock.wallMs(),
      },
    ]);
    equal(await phaseOf(a, job), "RUNNING");
    equal(await unpublished(a), 1);
    gate.resolve("done");
    await settle();
    equal(await phaseOf(a, job), "SUCCEEDED");
    equal(await unpublished(a), 0);
    await rig.clock.advance(60_000);
    equal(board.asked.length, 1);
  });

  test("U1: not before the commit is durable", async () => {
    const rig = new Rig();
    const board = new Board();
    const a = await (await rig.node("a", { publisher: board.publisher })).serving();
    await a.reply(submit());
    const [grant] = await a.grants(1);
    ok(grant);
    a.journal.fail("append", "late");
    const committed = a.ask(commit(grant, { result: { payload: "p", digests: [], publish: "one" } }));
    await settle();
    deepEqual(board.names, []);
    a.journal.deliver();
    await committed;
    await settle();
    deepEqual(board.names, ["one"]);
  });

  test("only the host may send `published`", async () => {
    const rig = new Rig();
    const board = new Board();
    board.otherwise = later;
    const a = await (await rig.node("a", { publisher: board.publisher })).serving();
    const job = await done(a, "one");
    const response = await a.ask({ kind: "published", task: 1, generation: 1 });
    equal(response.kind === "rejected" && response.rejection.kind, "invalid");
    equal(await phaseOf(a, job), "RUNNING");
  });

  test("U2: retried with growing pauses until it is done; failures are reported less and less often", async () => {
    const rig = new Rig();
    const board = new Board();
    board.otherwise = fails;
    const projector = { endedKeepMs: 3_600_000 };
    const a = await (await rig.node("a", { publisher: board.publisher, projector })).serving();
    const job = await done(a, "one");
    await rig.clock.advance(5_000);
    const after5s = board.asked.length;
    ok(after5s >= 4 && after5s <= 8, `${after5s} tries`);
    await rig.clock.advance(600_000);
    ok(board.asked.length <= 60, `${board.asked.length} tries`);
    const told = rig.reports.filter((line) => line.includes("publish the result of t0-1"));
    match(told[0] ?? "", /write to the board: unavailable/);
    ok(told.length <= 7, `${told.length} lines`);
    board.otherwise = later;
    await rig.clock.advance(60_000);
    board.otherwise = async () => "done";
    await rig.clock.advance(60_000);
    equal(await phaseOf(a, job), "SUCCEEDED");
  });

  test("U2: a node that takes the shard over continues where the other stopped", async () => {
    const rig = new Rig();
    const [board, heir] = [new Board(), new Board()];
    const a = await (await rig.node("a", { publisher: board.publisher })).serving();
    const first = await done(a, "one");
    board.otherwise = never;
    const second = await done(a, "two");
    a.node.kill();
    const b = await (await rig.node("b", { publisher: heir.publisher })).serving();
    await settle();
    deepEqual(board.names, ["one", "two"]);
    deepEqual(board.aborted, ["two"]);
    deepEqual(heir.names, ["two"]);
    equal(await phaseOf(b, second), "SUCCEEDED");
    equal(await phaseOf(b, first), "SUCCEEDED");
  });

  test("U1: an owner that has lost its shard starts no publication", async () => {
    const rig = new Rig();
    const board = new Board();
    board.otherwise = fails;
    const a = await (await rig.node("a", { publisher: board.publisher })).serving();
    await done(a, "one");
    await settle();
    a.journal.down();
    await rig.clock.advance(120_000);
    const tries = board.asked.length;
    await rig.clock.advance(120_000);
    equal(board.asked.length, tries);
    a.journal.up();
    board.otherwise = async () => "done";
    await a.serving();
    await settle();
    equal(await phaseOf(a, 1), "SUCCEEDED");
  });

  test('U2: if the log could not record "done", recording is retried, publishing is not', async () => {
    const rig = new Rig();
    const board = new Board();
    const a = await (await rig.node("a", { publisher: board.publisher })).serving();
    const gate = Promise.withResolvers<"done">();
    board.next(() => gate.promise);
    const job = await done(a, "one");
    a.journal.fail("append", "unavailable", "unavailable");
    gate.resolve("done");
    await rig.clock.advance(10_000);
    equal(await phaseOf(a, job), "SUCCEEDED");
    deepEqual(board.names, ["one"]);
  });

  test("U3: a try that hangs is ended, and a door that hangs does not delay another", async () => {
    const rig = new Rig();
    const board = new Board();
    const outbox = { atOnceMax: 2, tryMsMax: 10_000 };
    const publisher: Publisher = (publication, signal) =>
      publication.door === "slow" && rig.clock.monotonicMs() < slowUntilMs
        ? (void board.publisher(publication, signal), never())
        : board.publisher(publication, signal);
    const slowUntilMs = rig.clock.monotonicMs() + 60_000;
    const a = await (await rig.node("a", { publisher, outbox })).serving();
    for (const name of ["one", "two", "three"]) await done(a, name, { door: "slow" });
    await settle();
    deepEqual(board.names, ["one", "two"]);
    const job = await done(a, "quick");
    await settle();
    equal(await phaseOf(a, job), "SUCCEEDED");
    await rig.clock.advance(10_100);
    deepEqual(board.aborted, ["one", "two"]);
    ok(board.names.includes("three"));
    await rig.clock.advance(200_000);
    for (const slow of [1, 2, 3]) ok(["SUCCEEDED", "rejected"].includes(await phaseOf(a, slow)));
    equal(await unpublished(a), 0);
  });

  test("K9: a result that cannot be published is given up after its job has ended, and reported", async () => {
    const rig = new Rig();
    const board = new Board();
    board.otherwise = later;
    const limits = () => ({ ...defaultLimits, publishMsMax: 60_000 });
    const a = await (await rig.node("a", { publisher: board.publisher, limits })).serving();
    const job = await done(a, "one", { deadlineMs: 5_000 });
    await rig.clock.advance(6_000);
    equal(await phaseOf(a, job), "FAILED");
    equal(await unpublished(a), 1);
    await rig.clock.advance(70_000);
    equal(await unpublished(a), 0);
    ok(rig.reports.some((line) => line.includes("publish results of j0-1: Fault: publish: unavailable (why=given up")));
    const tries = board.asked.length;
    await rig.clock.advance(120_000);
    equal(board.asked.length, tries);
  });

  test("a thousand results are published, a limited number at a time", async () => {
    const rig = new Rig();
    let busy = 0;
    let busiest = 0;
    const publisher: Publisher = async () => {
      busy += 1;
      busiest = Math.max(busiest, busy);
      await rig.clock.sleep(10);
      busy -= 1;
      return "done";
    };
    const a = await (await rig.node("a", { publisher, outbox: { atOnceMax: 16 } })).serving();
    await a.reply(submit({ tasks: 1_000 }));
    const grants = await a.grants(1_000);
    await Promise.all(
      grants.map((grant) => a.reply(commit(grant, { result: { payload: "", digests: [], publish: "p" } }))),
    );
    await rig.clock.advance(2_000);
    equal(busiest, 16);
    equal(await phaseOf(a, 1), "SUCCEEDED");
  });
});
