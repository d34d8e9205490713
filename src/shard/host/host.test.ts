import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { settle } from "#base/testing/manual-clock.ts";
import { requestKeyOf } from "#kernel/apply/job.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import { journalKeyOf } from "./prepare.ts";
import { commit, joining, replyOf, reserve, Rig, submit } from "#shard/testing/host.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";

/** The response if the promise is settled by now. */
async function said(promise: Promise<ShardResponse>): Promise<ShardResponse | "nothing yet"> {
  await settle();
  return Promise.race([promise, Promise.resolve("nothing yet" as const)]);
}

const sealed = async (rig: Rig, promise: Promise<ShardResponse>): Promise<ShardResponse> => {
  const response = await said(promise);
  if (response === "nothing yet") throw new Error(`not answered: ${rig.reports.join("; ")}`);
  return response;
};

describe("the host answers only with what is durable (K7)", () => {
  test("a reply waits for its append", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "late");
    const submitted = a.ask(submit());
    equal(await said(submitted), "nothing yet");
    a.journal.deliver();
    equal((await sealed(rig, submitted)).kind, "reply");
  });

  test("a read that saw an event that is not durable yet waits for it", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "late");
    const submitted = a.ask(submit());
    await settle();
    const read = a.query({ kind: "job", job: 1 });
    equal(await said(read), "nothing yet");
    a.journal.deliver();
    const [first, second] = [await sealed(rig, submitted), await sealed(rig, read)];
    ok(first.kind === "reply" && second.kind === "answer");
    deepEqual(second.stamp, first.stamp, "it left with the batch that it had seen");
  });

  test("requests that arrive during an append go with the next one, together", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "late");
    const before = a.journal.count("append");
    const first = a.ask(submit());
    await settle();
    const others = Array.from({ length: 50 }, () => a.ask(submit()));
    await settle();
    a.journal.deliver();
    await Promise.all([first, ...others]);
    equal(a.journal.count("append") - before, 2);
  });

  test("one append carries the batches of several shards", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster: { shards: 4, clusterId: "test" } })).serving([0, 1, 2, 3]);
    await rig.clock.advance(1_000);
    const before = a.journal.count("append");
    const commands = [0, 1, 2, 3].map((shard) => a.node.request({ kind: "command", shard, command: submit() }));
    const responses = await Promise.all(commands);
    ok(responses.every(({ kind }) => kind === "reply"));
    equal(a.journal.count("append") - before, 1);
  });

  test("every answer says how fresh it is", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const first = await a.ask(submit());
    const read = await a.query({ kind: "stats" });
    const second = await a.ask(submit());
    ok(first.kind === "reply" && read.kind === "answer" && second.kind === "reply");
    deepEqual(first.stamp, { epoch: 1, seq: 2 }, "after the take-over");
    deepEqual(read.stamp, first.stamp);
    deepEqual(second.stamp, { epoch: 1, seq: 3 });
  });
});

describe("an append that fails", () => {
  test("unavailable: the same batch is sent again", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "unavailable", "unavailable");
    const submitted = a.ask(submit());
    equal(await said(submitted), "nothing yet");
    await rig.clock.advance(100);
    equal((await submitted).kind, "reply");
  });

  test("unknown outcome, and it was written: it is found at the tail and not sent again", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const before = a.journal.count("append");
    a.journal.fail("append", "lost");
    const submitted = a.ask(submit());
    await rig.clock.advance(100);
    const response = await submitted;
    ok(response.kind === "reply");
    equal(a.journal.count("append") - before, 1);
    deepEqual((await rig.store.connect().tail(0)).seq, response.stamp.seq);
  });

  test("unknown outcome, and it was not written: it is sent again, unchanged", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "unknown-outcome");
    const submitted = a.ask(submit());
    await rig.clock.advance(100);
    equal((await submitted).kind, "reply");
    equal((await a.ask(submit())).kind, "reply");
  });

  test('unknown outcome, and the tail cannot be read: callers hear "unknown", and the shard is given up', async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "lost");
    a.journal.fail("tail", ...Array.from({ length: 1_000 }, () => "unavailable" as const));
    a.journal.fail("renew", ...Array.from({ length: 1_000 }, () => "unavailable" as const));
    const submitted = a.ask(submit());
    await settle();
    const waiting = a.ask(submit());
    await rig.clock.advance(6_000);
    equal((await submitted).kind, "interrupted");
    equal((await waiting).kind, "not-owner", "it was never sent: surely nothing was done");
  });

  test("it never returns: the lease expires, the shard is acquired again and serves", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "stuck");
    a.journal.fail("renew", ...Array.from({ length: 30 }, () => "unavailable" as const));
    const submitted = a.ask(submit());
    await rig.clock.advance(6_000);
    equal((await submitted).kind, "interrupted");
    await a.serving();
    equal((await a.ask(submit())).kind, "reply");
  });

  test("fenced: nothing was done, and the shard is no longer served", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await rig.store.connect().release(0, 1);
    const submitted = await a.ask(submit());
    deepEqual(submitted, { kind: "not-owner", shard: 0, hint: undefined });
    equal(a.node.host.shards.size, 0);
  });

  test("an answer whose lease expired meanwhile is not sent (K8)", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    a.journal.fail("append", "late");
    const submitted = a.ask(submit());
    const held = must(a.node.host.shards.get(0), "shard");
    await settle();
    held.lease.untilMono = rig.clock.monotonicMs();
    a.journal.deliver();
    equal((await sealed(rig, submitted)).kind, "interrupted");
    const read = await a.query({ kind: "job", job: 1 });
    ok(read.kind === "answer" && read.stamp.epoch > 1, "it was durable, and who owns the shard now can say so");
  });
});

describe("that something does not exist", () => {
  test("is answered under a confirmed epoch, once per batch", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const asked = [7, 8, 9].map((job) => a.query({ kind: "job", job }));
    const responses = await Promise.all(asked);
    deepEqual(
      responses.map((response) => response.kind === "rejected" && response.rejection.kind),
      ["job-unknown", "job-unknown", "job-unknown"],
    );
    equal(a.journal.count("confirm"), 1);
  });

  test("the append of the same batch is confirmation enough", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const [first, second] = await Promise.all([a.ask(submit()), a.query({ kind: "job", job: 99 })]);
    deepEqual([first.kind, second.kind], ["reply", "rejected"]);
    equal(a.journal.count("confirm"), 0);
  });

  test("is not answered by a node that has lost its epoch", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await rig.store.connect().release(0, 1);
    equal((await a.query({ kind: "stats" })).kind, "answer", "the lease stands, and nothing is denied");
    equal((await a.query({ kind: "job", job: 7 })).kind, "not-owner");
    equal((await a.ask(joining("m"))).kind, "not-owner");
  });

  test("that there is no job to join is answered under a confirmed epoch too", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const refused = await a.ask(joining("m"));
    deepEqual(refused.kind === "rejected" && refused.rejection, { kind: "nothing-to-join", mergeKey: "m" });
    equal(a.journal.count("confirm"), 1);
    equal((await a.ask(submit({ mergeKey: "m" }))).kind, "reply");
    const joined = await a.ask(joining("m"));
    deepEqual(joined.kind === "reply" && joined.reply, { job: 1, created: false, merged: true });
  });

  test("a lost claim is reported under a confirmed epoch too", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const renewed = await a.ask({ kind: "renew", executor: "e1", claims: [{ task: 5, token: 5 }] });
    equal(renewed.kind, "reply");
    equal(a.journal.count("confirm"), 1);
  });
});

describe("accepting requests", () => {
  test("is limited by count", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { requestsMax: 3 } })).serving();
    a.journal.fail("append", "late");
    const asked = Array.from({ length: 5 }, () => a.ask(submit()));
    await settle();
    a.journal.deliver();
    const kinds = (await Promise.all(asked)).map(({ kind }) => kind);
    deepEqual(kinds, ["reply", "reply", "reply", "overloaded", "overloaded"]);
    equal((await a.ask(submit())).kind, "reply", "there is room again");
  });

  test("is limited in bytes, and one large command is still accepted", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { requestBytesMax: 1_000 } })).serving();
    const large = submit({ spec: "x".repeat(5_000) });
    const kinds = (await Promise.all([a.ask(large), a.ask(large)])).map(({ kind }) => kind);
    deepEqual(kinds, ["reply", "overloaded"]);
  });

  test("refuses commands that only the host itself may send", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const commands = [
      { kind: "tick" },
      { kind: "forget", jobs: [1] },
      { kind: "take-over", epoch: 9, node: "z" },
      { kind: "take-quota", tenant: "t", slots: 1_000, forMs: 1_000 },
    ] as const;
    for (const command of commands) {
      const response = await a.ask(command);
      equal(response.kind === "rejected" && response.rejection.kind, "invalid", command.kind);
    }
  });

  test("redirects callers whose shard is not here", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const request = { kind: "query", shard: 7, query: { kind: "stats" } } as const;
    deepEqual(await a.node.host.request(request), { kind: "not-owner", shard: 7, hint: undefined });
    const response = await a.node.request(request);
    equal(response.kind === "rejected" && response.rejection.kind, "invalid", "there are not that many");
  });
});

describe("evidence (K3)", () => {
  const bytes = new TextEncoder().encode("output");
  const digest = `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
  const result = { payload: "done", digests: [digest] };

  test("comes from the store and never from the caller", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    const claimed = { result, evidence: { digests: [digest], pinnedForMs: 1_000_000 } };
    const refused = await a.ask(commit(grant, claimed));
    deepEqual(refused.kind === "rejected" && refused.rejection, { kind: "evidence-missing", digest });

    await rig.blobs.write(digest, bytes);
    deepEqual(await a.reply(commit(grant, { result })), { committed: true, generation: 1 });
    equal(rig.blobs.evict(digest), false, "pinned");
  });

  test("a repeated commit gets its first answer although the blob is gone since", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { pinMs: 2_000 } })).serving();
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    await rig.blobs.write(digest, bytes);
    await a.reply(commit(grant, { result }));
    await rig.clock.advance(5_000);
    ok(rig.blobs.evict(digest));
    deepEqual(await a.reply(commit(grant, { result })), { committed: true, generation: 1 });
  });

  test("counts from before the store was asked: evidence that comes too late does not count", async () => {
    const rig = new Rig();
    let answerMs = 3_000;
    const slow = {
      ...rig.blobs,
      pin: async (...asked: Parameters<typeof rig.blobs.pin>) => {
        const pinned = await rig.blobs.pin(...asked);
        await rig.clock.sleep(answerMs);
        return pinned;
      },
    };
    const a = await (await rig.node("a", { blobs: slow, host: { pinMs: 2_000 } })).serving();
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    await rig.blobs.write(digest, bytes);
    const late = a.ask(commit(grant, { result }));
    await rig.clock.advance(answerMs);
    const refused = await late;
    deepEqual(refused.kind === "rejected" && refused.rejection.kind, "evidence-expired");

    answerMs = 100;
    const soon = a.ask(commit(grant, { result }));
    await rig.clock.advance(answerMs);
    equal((await soon).kind, "reply");
  });

  test("a submission may reuse more blobs in total than one result may name", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await rig.blobs.write(digest, bytes);
    const many = { payload: "", digests: Array.from({ length: defaultLimits.digestsMax }, () => digest) };
    const reuse = ["k0", "k1", "k2"].map((key) => ({ stage: "s", key, spec: "", result: many }));
    equal((await a.ask({ ...submit(), reuse })).kind, "reply");

    const tooMany = { ...many, digests: [...many.digests, digest] };
    const refused = await a.ask({ ...submit(), reuse: [{ stage: "s", key: "k", spec: "", result: tooMany }] });
    equal(refused.kind === "rejected" && refused.rejection.kind, "limit");
  });

  test("a commit with a missing blob does not fail the others", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit({ tasks: 2 }));
    const [one, two] = await a.grants();
    await rig.blobs.write(digest, bytes);
    const missing = `${"0".repeat(64)}/1`;
    const [good, bad] = await Promise.all([
      a.ask(commit(must(one, "grant"), { result })),
      a.ask(commit(must(two, "grant"), { result: { payload: "", digests: [digest, missing] } })),
    ]);
    equal(good.kind, "reply");
    deepEqual(bad.kind === "rejected" && bad.rejection, { kind: "evidence-missing", digest: missing });
  });
});

describe("request keys (K1)", () => {
  test("are found in the journal when memory has dropped them", async () => {
    const rig = new Rig();
    const limits = () => ({ ...defaultLimits, keysInMemoryMax: 1 });
    const a = await (await rig.node("a", { limits })).serving();
    const first = await a.reply(submit({ requestKey: "one" }));
    await a.reply(submit({ requestKey: "two" }));
    await a.reply(submit({ requestKey: "three" }));
    await rig.clock.advance(500);
    ok(must(a.node.host.shards.get(0), "shard").state.keysElsewhereUntilMs > 0);
    const again = await a.reply<{ job: number; created: boolean }>(submit({ requestKey: "one" }));
    deepEqual(again, { ...(first as object), created: false });
    const other = await a.ask(submit({ requestKey: "one", payloadHash: "other" }));
    equal(other.kind === "rejected" && other.rejection.kind, "key-reused");
    const forged = await a.ask(submit({ requestKey: "new", keyFound: { job: 1, payloadHash: "h" } }));
    ok(forged.kind === "reply" && "created" in forged.reply && forged.reply.created, "a caller's word is ignored");
  });

  test("are found in the batch that binds them when memory has dropped them before it is durable", async () => {
    const rig = new Rig();
    const limits = () => ({ ...defaultLimits, keysInMemoryMax: 1 });
    const a = await (await rig.node("a", { limits })).serving();
    for (const requestKey of ["x", "y"]) await a.reply(submit({ requestKey }));
    a.journal.fail("append", "late");
    const first = a.ask(submit({ requestKey: "one" }));
    const between = a.ask(submit({ requestKey: "two" }));
    await rig.clock.advance(500);
    const { state } = must(a.node.host.shards.get(0), "shard");
    ok(![...state.keys.keys()].some((key) => key.endsWith("one")), "memory has let go of it");
    const again = a.ask(submit({ requestKey: "one" }));
    await settle();
    a.journal.deliver();
    const [one, , repeated] = await Promise.all([first, between, again]);
    const jobOf = (response: ShardResponse): unknown =>
      response.kind === "reply" && "job" in response.reply && response.reply.job;
    ok(jobOf(one));
    equal(jobOf(repeated), jobOf(one));
  });

  test("are looked up again when one was bound and dropped while the journal was being read", async () => {
    const rig = new Rig();
    const limits = () => ({ ...defaultLimits, keysInMemoryMax: 1 });
    const a = await (await rig.node("a", { limits })).serving();
    for (const requestKey of ["x", "y"]) await a.reply(submit({ requestKey }));
    await rig.clock.advance(500);
    a.journal.fail("findKeys", "answered late");
    const early = a.ask(submit({ requestKey: "one" }));
    await settle();
    const { job } = await a.reply<{ job: number }>(submit({ requestKey: "one" }));
    await a.reply(submit({ requestKey: "z" }));
    await rig.clock.advance(500);
    const { state } = must(a.node.host.shards.get(0), "shard");
    ok(![...state.keys.keys()].some((key) => key.endsWith("one")), "memory has let go of it");
    a.journal.deliver();
    deepEqual(replyOf(await early), { job, created: false, merged: false });
  });

  test("are looked up again when one was bound and dropped while long texts were being stored", async () => {
    for (const isElsewhere of [false, true]) {
      const rig = new Rig();
      const limits = () => ({ ...defaultLimits, keysInMemoryMax: 1 });
      const a = await (await rig.node("a", { limits, inlineLengthMax: 100 })).serving();
      if (isElsewhere) for (const requestKey of ["x", "y"]) await a.reply(submit({ requestKey }));
      await rig.clock.advance(500);
      const stored = Promise.withResolvers<void>();
      const write = rig.blobs.write.bind(rig.blobs);
      rig.blobs.write = async (...given) => {
        rig.blobs.write = write;
        await stored.promise;
        await write(...given);
      };
      const long = () => submit({ requestKey: "one", spec: "s".repeat(300) });
      const early = a.ask(long());
      await settle();
      const { job } = await a.reply<{ job: number }>(long());
      for (const requestKey of ["z", "zz"]) await a.reply(submit({ requestKey }));
      await rig.clock.advance(500);
      const { state } = must(a.node.host.shards.get(0), "shard");
      ok(![...state.keys.keys()].some((key) => key.endsWith("one")), "memory has let go of it");
      stored.resolve();
      deepEqual(replyOf(await early), { job, created: false, merged: false });
    }
  });

  test("stay in the journal for their time, whatever is trimmed", async () => {
    const rig = new Rig();
    const soon = { snapshots: { logBytesMin: 2_000, stateShare: 0 }, archiver: { segmentBytes: 1_000 } };
    const a = await (await rig.node("a", soon)).serving();
    await a.reply(submit({ requestKey: "one" }));
    for (let i = 0; i < 40; i += 1) await a.reply(submit());
    await rig.clock.advance(20_000);
    for (let i = 0; i < 40; i += 1) await a.reply(submit());
    await rig.clock.advance(20_000);
    ok(a.journal.count("trimKeys") > 0);
    const { state } = must(a.node.host.shards.get(0), "shard");
    const key = journalKeyOf(requestKeyOf("t", "shell", "one"));
    const find = async (atMs: number) => (await rig.store.connect().findKeys(0, [key], atMs)).length;
    const hourMs = 3_600_000;
    deepEqual([await find(state.nowMs + 23 * hourMs), await find(state.nowMs + 24 * hourMs)], [1, 0]);
  });

  test("stay in the journal as long as the shard counts them, although the store's clock was set back", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    rig.clock.wallAheadMs = -20_000;
    await a.reply(submit());
    await rig.clock.advance(5_000);
    await a.reply(submit({ requestKey: "one" }));
    const name = requestKeyOf("t", "shell", "one");
    const { untilMs } = must(must(a.node.host.shards.get(0), "shard").state.keys.get(name), "key");
    const find = async (atMs: number) => (await rig.store.connect().findKeys(0, [journalKeyOf(name)], atMs)).length;
    deepEqual([await find(untilMs - 1), await find(untilMs)], [1, 0]);
  });

  test("a shard that has all keys in memory never asks the journal", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit({ requestKey: "one" }));
    await a.reply(submit({ requestKey: "one" }));
    equal(a.journal.count("findKeys"), 0);
  });
});

describe("bugs in our own code", () => {
  test("a command that breaks the shard is refused for good, and the shard is rebuilt", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit({ name: "before" }));
    const { state } = must(a.node.host.shards.get(0), "shard");
    state.ready.enqueue = () => {
      throw new Error("a bug of ours");
    };
    const poison = submit({ name: "poison" });
    const response = await a.ask(poison);
    equal(response.kind === "rejected" && response.rejection.kind, "broken");
    match(rig.reports.join(), /broke on submit/);

    await a.serving();
    equal((await a.query({ kind: "job", job: 1 })).kind, "answer", "what was acknowledged is still there");
    equal((await a.query({ kind: "job", job: 2 })).kind, "rejected", "what was refused is not");
    const again = await a.ask(poison);
    equal(again.kind === "rejected" && again.rejection.kind, "broken");
    equal(a.node.host.shards.get(0)?.phase, "serving");
    equal((await a.ask(submit({ name: "after" }))).kind, "reply");
  });

  test("a value that is not a result or a list is left to the kernel, which refuses it with its path", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const path = async (twisted: object): Promise<unknown> => {
      const got = await a.ask(twisted as ReturnType<typeof submit>);
      return got.kind === "rejected" && got.rejection.kind === "invalid" && got.rejection.path;
    };
    const claim = { kind: "commit", executor: "e", task: 1, token: 1 };
    equal(await path({ ...claim, result: null }), "result");
    equal(await path({ ...claim, result: { payload: "", digests: "all" } }), "result.digests");
    equal(await path({ ...submit(), reuse: "everything" }), "reuse");
    equal(await path({ ...submit(), reuse: [{ stage: "s", key: "k", spec: "", result: null }] }), "reuse[0].result");
  });

  test("a command that cannot be encoded is refused, and the others of its batch may try again", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const unwritable = Object.assign(
      { name: "l", limit: 1, queueMax: 1, cancelInProgress: false },
      {
        toJSON: () => {
          throw new Error("cannot be written");
        },
      },
    );
    const [bad, good] = await Promise.all([a.ask(submit({ lock: unwritable })), a.ask(submit())]);
    equal(bad.kind === "rejected" && bad.rejection.kind, "broken");
    equal(good.kind, "overloaded");
    await a.serving();
    equal((await a.ask(submit())).kind, "reply");
  });

  test("a shard that breaks again and again is retried more and more slowly", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    let takes = 0;
    const sabotage = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 50) {
        const shard = a.node.host.shards.get(0);
        if (shard?.phase === "serving") {
          takes += 1;
          shard.state.agenda.take = () => {
            throw new Error("a bug in every tick");
          };
        }
        await rig.clock.advance(50);
      }
    };
    await sabotage(60_000);
    ok(takes > 2 && takes < 200, `taken over ${takes} times in a minute`);
  });
});

describe("claims survive the loss of the database (section 3)", () => {
  test("after an outage of several leases, running tasks are not run again", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    a.journal.down();
    await rig.clock.advance(30_000);
    equal(a.node.host.shards.size, 0, "stepped down");
    equal((await a.ask({ kind: "start", executor: "e1", task: 1, token: 1 })).kind, "not-owner");
    a.journal.up();
    await a.serving();
    deepEqual(await a.grants(), [], "the claim got a fresh lease");
    const renewed = await a.reply<{ lost: unknown[] }>({ kind: "renew", executor: "e1", claims: [grant] });
    deepEqual(renewed.lost, []);
    deepEqual(await a.reply(commit(grant)), { committed: true, generation: 1 });
  });

  test("renewals write nothing to the log", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    const before = await rig.store.connect().tail(0);
    for (let i = 0; i < 10; i += 1) {
      await a.reply({ kind: "renew", executor: "e1", claims: [grant] });
      await rig.clock.advance(1_000);
    }
    deepEqual(await rig.store.connect().tail(0), before);
    deepEqual(await a.reply(reserve({ nonce: "later" })), { grants: [] });
  });
});
