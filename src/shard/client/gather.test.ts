import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault } from "#base/fault.ts";
import { settle } from "#base/testing/manual-clock.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import { gathering } from "./gather.ts";
import type { CommandOutcome, ShardRequest } from "#shard/transport/protocol.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { AskOptions, Router, Settled } from "#shard/router/router.ts";

const stamp = { epoch: 1, seq: 1 };
const start = (task: number): CommandOf<"start"> => ({ kind: "start", executor: "e", task, token: 1 });

type Asked = {
  readonly request: ShardRequest;
  readonly options: AskOptions | undefined;
  answer(settled: Settled): void;
  fail(error: Error): void;
};

/** A router whose answers the test gives. */
function scripted(): { readonly router: Router; readonly asked: Asked[] } {
  const asked: Asked[] = [];
  const router: Router = {
    request(request, options) {
      const { promise, resolve, reject } = Promise.withResolvers<Settled>();
      asked.push({ request, options, answer: resolve, fail: reject });
      return promise;
    },
    watch: () => {
      throw new Error("nobody watches here");
    },
    seen: () => undefined,
  };
  return { router, asked };
}

const granted = (leaseMs: number): CommandOutcome => ({ kind: "reply", stamp, reply: { leaseMs } });
const tasksOf = (request: ShardRequest | undefined): readonly number[] =>
  request?.kind === "commands"
    ? request.commands.map((command) => (command as CommandOf<"start">).task)
    : request?.kind === "command"
      ? [(request.command as CommandOf<"start">).task]
      : [];

describe("commands for one shard", () => {
  test("are sent at once while few are in flight, and together with others afterwards", async () => {
    const { router, asked } = scripted();
    const ask = gathering(router, 2);
    const replies = [1, 2, 3, 4, 5].map((task) => ask(7, start(task)));
    deepEqual(
      asked.map(({ request }) => tasksOf(request)),
      [[1], [2]],
    );
    asked[0]?.answer(granted(1));
    await settle();
    deepEqual(tasksOf(asked[2]?.request), [3, 4, 5]);
    asked[2]?.answer({ kind: "said", stamp, said: [granted(3), granted(4), granted(5)] });
    asked[1]?.answer(granted(2));
    deepEqual(
      (await Promise.all(replies)).map(({ leaseMs }) => leaseMs),
      [1, 2, 3, 4, 5],
    );
  });

  test("are rejected one by one", async () => {
    const { router, asked } = scripted();
    const ask = gathering(router, 1);
    const first = ask(0, start(1));
    const good = ask(0, start(2));
    const bad = ask(0, start(3));
    asked[0]?.answer(granted(1));
    await settle();
    await first;
    const refused: CommandOutcome = { kind: "rejected", stamp, rejection: { kind: "task-unknown", task: 3 } };
    asked[1]?.answer({ kind: "said", stamp, said: [granted(2), refused] });
    equal((await good).leaseMs, 2);
    await rejects(bad, (error) => isRejected(error, "task-unknown"));
  });

  test("fail together when their request fails, and the next ones are still sent", async () => {
    const { router, asked } = scripted();
    const ask = gathering(router, 1);
    const all = [ask(0, start(1)), ask(0, start(2)), ask(0, start(3))];
    asked[0]?.fail(new Fault("unavailable", "ask", {}));
    await rejects(all[0] ?? Promise.resolve(), /ask/);
    await settle();
    asked[1]?.fail(new Fault("unknown-outcome", "ask", {}));
    await rejects(all[1] ?? Promise.resolve(), /ask/);
    await rejects(all[2] ?? Promise.resolve(), /ask/);
    await settle();
    const next = ask(0, start(4));
    deepEqual(tasksOf(asked[2]?.request), [4]);
    asked[2]?.answer(granted(4));
    equal((await next).leaseMs, 4);
  });

  test("with different deadlines or abort signals do not share a request", async () => {
    const { router, asked } = scripted();
    const ask = gathering(router, 1);
    const { signal } = new AbortController();
    const first = ask(0, start(1));
    const others = [ask(0, start(2), { deadlineMs: 5 }), ask(0, start(3), { signal }), ask(0, start(4), { signal })];
    asked[0]?.answer(granted(1));
    await settle();
    await first;
    deepEqual(tasksOf(asked[1]?.request), [2]);
    equal(asked[1]?.options?.deadlineMs, 5);
    asked[1]?.answer(granted(2));
    await settle();
    await others[0];
    deepEqual(tasksOf(asked[2]?.request), [3, 4]);
    equal(asked[2]?.options?.signal, signal);
    asked[2]?.answer({ kind: "said", stamp, said: [granted(3), granted(4)] });
    await Promise.all(others);
  });

  test("that name very many blobs are sent alone, so that the message is not too large", async () => {
    const { router, asked } = scripted();
    const ask = gathering(router, 1);
    const commit = (task: number, count: number): CommandOf<"commit"> => ({
      ...start(task),
      kind: "commit",
      evidence: { digests: [], pinnedForMs: 0 },
      result: { payload: "", digests: Array.from({ length: count }, () => "d") },
    });
    const replies = [start(1), commit(2, 50_000), commit(3, 30_000), commit(4, 30_000), start(5)].map((one) =>
      ask(7, one),
    );
    const told: (readonly number[])[] = [];
    for (let i = 0; i < 4; i += 1) {
      const tasks = tasksOf(asked[i]?.request);
      told.push(tasks);
      asked[i]?.answer(tasks.length === 1 ? granted(1) : { kind: "said", stamp, said: tasks.map(() => granted(1)) });
      await settle();
    }
    deepEqual(told, [[1], [2, 5], [3], [4]]);
    await Promise.all(replies);
  });

  test("of different shards do not wait for each other", () => {
    const { router, asked } = scripted();
    const ask = gathering(router, 1);
    for (const shard of [0, 1, 2]) void ask(shard, start(shard)).catch(() => {});
    deepEqual(
      asked.map(({ request }) => request.shard),
      [0, 1, 2],
    );
  });
});
