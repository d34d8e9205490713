import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { settle } from "#base/testing/manual-clock.ts";
import { commit, Rig, submit, type TestNode } from "#shard/testing/host.ts";
import type { Stamp, WatchMessage } from "#shard/transport/protocol.ts";

/** Reads a watch in the background and records its messages. */
function listen(node: TestNode, job: number, after?: Stamp) {
  const heard: WatchMessage[] = [];
  const gone = new AbortController();
  let ended = false;
  const request = { shard: 0, job, ...(after === undefined ? {} : { after }) };
  const done = (async () => {
    for await (const message of node.node.watch(request, gone.signal)) heard.push(message);
    ended = true;
  })();
  return { heard, gone, done, kinds: () => heard.map(({ kind }) => kind), hasEnded: () => ended };
}

describe("watching a job", () => {
  test("a snapshot, then events, then the end", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    const watch = listen(a, job);
    await settle();
    deepEqual(watch.kinds(), ["snapshot"]);
    const [grant] = await a.grants();
    await a.reply(commit(must(grant, "grant")));
    await watch.done;
    deepEqual(watch.kinds(), ["snapshot", "events", "events", "end"]);
    const events = watch.heard.flatMap((message) => (message.kind === "events" ? message.events : []));
    equal(events[0]?.kind, "claimed");
    equal(events.at(-1)?.kind, "job-ended");
  });

  test("nothing is delivered before it is durable (K7)", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    const watch = listen(a, job);
    await settle();
    a.journal.fail("append", "late");
    const grants = a.grants();
    const late = listen(a, job);
    await settle();
    deepEqual(watch.kinds(), ["snapshot"]);
    deepEqual(late.kinds(), [], "its snapshot shows what is not durable yet");
    a.journal.deliver();
    await grants;
    await settle();
    deepEqual(watch.kinds(), ["snapshot", "events"]);
    deepEqual(late.kinds(), ["snapshot"], "the events of its batch are in the snapshot already");
  });

  test("continues where it stopped, also at another owner", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit({ tasks: 2 }));
    const first = listen(a, job);
    await settle();
    first.gone.abort();
    await first.done;
    const [one, two] = await a.grants();
    a.node.kill();
    const b = await (await rig.node("a")).serving();
    const second = listen(b, job, first.heard[0]?.kind === "snapshot" ? first.heard[0].stamp : undefined);
    await settle();
    deepEqual(second.kinds(), ["events"]);
    await b.reply(commit(must(one, "grant")));
    await b.reply(commit(must(two, "grant")));
    await second.done;
    deepEqual(second.kinds(), ["events", "events", "events", "end"]);
  });

  test("begins with a snapshot if the ring does not reach back far enough", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { ringBatchesMax: 2 } })).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    for (let i = 0; i < 5; i += 1) await a.reply(submit());
    const watch = listen(a, job, { epoch: 1, seq: 2 });
    await settle();
    deepEqual(watch.kinds(), ["snapshot"]);
  });

  test("of a job that has ended: the snapshot and the end", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    await a.reply(commit(must((await a.grants())[0], "grant")));
    const watch = listen(a, job);
    await watch.done;
    deepEqual(watch.kinds(), ["snapshot", "end"]);
    const last = must(watch.heard.at(-1), "end");
    ok(last.kind === "end");
    const again = listen(a, job, last.stamp);
    await again.done;
    deepEqual(again.kinds(), ["end"]);
  });

  test("of an unknown job is refused under a confirmed epoch", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const watch = listen(a, 77);
    await watch.done;
    const [message] = watch.heard;
    equal(message?.kind === "rejected" && message.rejection.kind, "job-unknown");
    equal(a.journal.count("confirm"), 1);
  });

  test("a slow reader gets a new snapshot instead of an ever longer queue", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { unreadMax: 2 } })).serving();
    const { job } = await a.reply<{ job: number }>(submit({ tasks: 10 }));
    const reading = a.node.watch({ shard: 0, job }, new AbortController().signal)[Symbol.asyncIterator]();
    const read = async (): Promise<WatchMessage> => (await reading.next()).value as WatchMessage;
    equal((await read()).kind, "snapshot");
    for (let i = 0; i < 6; i += 1) await a.grants(1);
    const message = await read();
    ok(message.kind === "snapshot");
    equal(message.view.stages[0]?.running, 6);
    await a.grants(1);
    equal((await read()).kind, "events");
  });

  test("learns that the owner is alive, and that the shard has moved", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    const watch = listen(a, job);
    await rig.clock.advance(5_100);
    deepEqual(watch.kinds(), ["snapshot", "heartbeat"]);
    a.node.host.drop(0, "moved", "mem://b");
    await watch.done;
    deepEqual(watch.heard.at(-1), { kind: "moved", hint: "mem://b" });
  });

  test("ends when the watcher leaves", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    const watch = listen(a, job);
    await settle();
    equal(a.node.status().shards[0]?.watchers, 1);
    watch.gone.abort();
    await watch.done;
    equal(a.node.status().shards[0]?.watchers, 0);
  });
});
