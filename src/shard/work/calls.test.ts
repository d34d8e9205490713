import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc, { type Arbitrary } from "fast-check";
import { Fault, isFault } from "#base/fault.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import { type Event, featureOf } from "#kernel/model/event.ts";
import { decode, encode, type Message } from "#wire/message.ts";
import { BadRequest, PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";
import { BatchRequest, CommitRequest, SubmitRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import {
  GetPartitionMapResponse,
  WatchRequest as WatchRequestMessage,
  WatchResponse,
} from "#wire/generated/millrace/work/v1/queries.ts";
import { internalKinds, type WatchMessage } from "#shard/transport/protocol.ts";
import { callOf, workCalls } from "./calls.ts";
import { readMap, writeMap, type PartitionMap } from "./map.ts";
import { errorInfoOf, responseOfStatus, statusOfFault, statusOfRejection } from "./rejections.ts";
import {
  batchExchange,
  clientKinds,
  commandExchange,
  type Exchange,
  jobView,
  queryExchange,
  queryKinds,
  rejected,
  takeExchange,
} from "#shard/testing/work.ts";
import { id, list, maybe, ms, record, shape, shard, stamp, text, yes } from "#shard/testing/work-messages.ts";
import { readWatch, readWatched, writeWatch, writeWatched } from "./watch.ts";

/** Encoded to bytes and decoded again. */
const carried = <T>(type: Message<T>, message: T): T => decode(type, encode(type, message));

function checkExchange({ request, response }: Exchange): void {
  const call = callOf(request);
  deepEqual(call.readRequest(carried(call.method.request, call.writeRequest(request))), request);
  const answered = call.writeResponse(request, response);
  if (answered.ok) deepEqual(call.readResponse(request, carried(call.method.response, answered.message)), response);
  else deepEqual(responseOfStatus(carried(Status, answered.status)), response);
}

describe("the work protocol", () => {
  for (const [what, exchange] of Object.entries({ commandExchange, batchExchange, queryExchange, takeExchange }))
    test(`carries every message unchanged: ${what}`, () => {
      fc.assert(fc.property(exchange, checkExchange), { numRuns: 400 });
    });

  test("carries watches unchanged", () => {
    const request = shape<{ shard: number; job: number }, { tenant: string; after: { epoch: number; seq: number } }>(
      { shard, job: id },
      { tenant: text, after: stamp },
    );
    const event = fc
      .constantFrom(...(Object.keys(featureOf) as Event["kind"][]))
      .chain((kind) => record({ kind: fc.constant(kind), job: id, at: id, reason: text }))
      .map((some) => some as unknown as Event);
    const message: Arbitrary<WatchMessage> = fc.oneof(
      record({ kind: fc.constant("snapshot" as const), stamp, view: jobView }),
      record({ kind: fc.constant("events" as const), stamp, events: list(event) }),
      record({ kind: fc.constantFrom("heartbeat" as const, "end" as const), stamp }),
      record({ kind: fc.constant("moved" as const), hint: maybe(text) }),
      rejected,
    );
    fc.assert(
      fc.property(request, message, (asked, told) => {
        deepEqual(readWatch(carried(WatchRequestMessage, writeWatch(asked))), asked);
        const watched = writeWatched(asked, told);
        if (watched.ok) deepEqual(readWatched(carried(WatchResponse, watched.message)), told);
        else deepEqual(responseOfStatus(carried(Status, watched.status)), told);
      }),
      { numRuns: 300 },
    );
  });

  test("carries the partition map unchanged", () => {
    const map: Arbitrary<PartitionMap> = record({
      cluster: record({ clusterId: text, shards: shard }),
      ownerships: list(
        record({ shard, epoch: id, owner: maybe(text), address: maybe(text), remainingMs: fc.maxSafeInteger() }),
      ),
      nodes: list(
        record({
          node: text,
          address: text,
          state: fc.constantFrom("up" as const, "leaving" as const),
          alive: yes,
          seenAgoMs: ms,
        }),
      ),
    });
    fc.assert(fc.property(map, (one) => deepEqual(readMap(carried(GetPartitionMapResponse, writeMap(one))), one)));
  });

  test("has exactly one method for each request to a shard", () => {
    const paths = workCalls.map(({ method }) => method.path);
    equal(new Set(paths).size, paths.length);
    equal(paths.length, clientKinds.length + queryKinds.length + 2);
  });

  test("carries no command that only a shard's own host may send", () => {
    for (const kind of internalKinds) {
      const command = { kind } as unknown as CommandOf<"tick">;
      throws(() => callOf({ kind: "command", shard: 0, command }), isInvalidAt("command.kind"));
      const batch = { kind: "commands", shard: 0, commands: [command] } as const;
      throws(() => callOf(batch).writeRequest(batch), isInvalidAt("command.kind"));
    }
  });

  test("carries no caller's own evidence for pins and keys (K1, K3)", () => {
    const evidence = { digests: ["x"], pinnedForMs: 9 };
    const commit = {
      kind: "commit",
      executor: "e",
      task: 1,
      token: 1,
      result: { payload: "", digests: ["x"] },
      evidence,
    };
    const request = { kind: "command", shard: 0, command: commit as CommandOf<"commit"> } as const;
    const call = callOf(request);
    const read = call.readRequest(carried(call.method.request, call.writeRequest(request)));
    deepEqual(read, { ...request, command: { ...commit, evidence: { digests: [], pinnedForMs: 0 } } });
  });
});

const isInvalidAt = (path: string) => (error: unknown) => {
  if (!isFault(error, "invalid")) throw error;
  equal(error.facts["path"], path);
  return true;
};

describe("an invalid message is refused with the path of the field", () => {
  const callBy = (name: string) => {
    const call = workCalls.find(({ method }) => method.name === name);
    if (!call) throw new Error(`no method ${name}`);
    return call;
  };
  const stageMessage = {
    name: "s",
    needs: [],
    after: 1,
    tasks: { template: undefined, tasks: [] },
    failFast: false,
    mayFail: false,
    parallelMax: 0,
  };
  const submit = (stages: SubmitRequest["stages"]): SubmitRequest => ({
    shard: 0,
    tenant: "t",
    door: "d",
    name: "",
    payloadHash: "",
    priority: 0,
    spec: "",
    stages,
    deadlineMs: 1,
    reuse: [],
    joinOnly: false,
    notify: [],
    tracked: false,
    tags: [],
  });
  const commit = { shard: 0, executor: "e", task: 1, token: 1 };

  const cases: readonly (readonly [string, string, Message<never>, unknown])[] = [
    ["shard", "Commit", CommitRequest as Message<never>, { ...commit, shard: -1 }],
    ["result", "Commit", CommitRequest as Message<never>, commit],
    ["stages[0].tasks.template", "Submit", SubmitRequest as Message<never>, submit([stageMessage])],
    [
      "stages[1].after",
      "Submit",
      SubmitRequest as Message<never>,
      submit([
        { ...stageMessage, tasks: undefined },
        { ...stageMessage, after: 77 },
      ]),
    ],
    ["commands[0].command", "Batch", BatchRequest as Message<never>, { shard: 0, commands: [{}] }],
    [
      "commands[1].commit.result",
      "Batch",
      BatchRequest as Message<never>,
      {
        shard: 3,
        commands: [
          { command: { kind: "commit", value: { ...commit, shard: 3, result: { payload: "", digests: [] } } } },
          { command: { kind: "commit", value: commit } },
        ],
      },
    ],
    [
      "commands[0].commit.shard",
      "Batch",
      BatchRequest as Message<never>,
      { shard: 3, commands: [{ command: { kind: "commit", value: { ...commit, shard: 4 } } }] },
    ],
  ];
  for (const [path, name, type, message] of cases)
    test(`${name}: ${path}`, () => {
      const bytes = encode(type as Message<unknown>, message);
      const call = callBy(name);
      throws(() => call.readRequest(decode(call.method.request, bytes)), isInvalidAt(path));
    });

  test("and the status says so to clients that know only Google's error details", () => {
    const status = statusOfFault(
      new Fault("invalid", "read message", { path: "stages[0].after", why: "must be there" }),
    );
    equal(status.code, 3);
    deepEqual(
      detail(status, BadRequest)?.fieldViolations.map(({ field }) => field),
      ["stages[0].after"],
    );
  });
});

describe("a rejection as a status", () => {
  const stampOne = { epoch: 3, seq: 4 };

  test("has its kind as the reason and its facts as metadata", () => {
    const status = statusOfRejection(1, { kind: "token-stale", task: 5, offered: 1, current: 2 }, stampOne);
    equal(status.code, 9);
    const { reason, domain, metadata } = errorInfoOf(status) ?? {};
    deepEqual([reason, domain], ["token-stale", "millrace"]);
    deepEqual(Object.fromEntries(metadata ?? []), { epoch: "3", seq: "4", task: "5", offered: "1", current: "2" });
  });

  test("says when to try again, and which blob is missing, in Google's error details too", () => {
    const full = statusOfRejection(1, { kind: "shard-full", what: "jobs", retryAfterMs: 1_250 }, stampOne);
    deepEqual(detail(full, RetryInfo)?.retryDelay, { seconds: 1, nanos: 250_000_000 });
    const missing = statusOfRejection(1, { kind: "evidence-missing", digest: "aa/1" }, stampOne);
    deepEqual(detail(missing, PreconditionFailure)?.violations, [
      { type: "MISSING", subject: "blobs/aa/1", description: "not in the store" },
    ]);
  });

  test("a foreign status becomes a Fault by its code", () => {
    throws(
      () => responseOfStatus({ code: 8, message: "no", details: [] }),
      (error) => isFault(error, "exhausted"),
    );
    throws(
      () => responseOfStatus({ code: 14, message: "gone", details: [] }),
      (error) => isFault(error, "unknown-outcome"),
    );
  });

  test("a Fault stays the same Fault", () => {
    const fault = new Fault("unavailable", "reach shard", { shard: 7, why: "down" });
    throws(
      () => responseOfStatus(carried(Status, statusOfFault(fault))),
      (error) => isFault(error, "unavailable") && error.doing === "reach shard" && Number(error.facts["shard"]) === 7,
    );
  });

  test("fits into a header however long its texts are", () => {
    const status = statusOfRejection(
      0,
      { kind: "executor-drained", executor: "e", reason: "x".repeat(60_000) },
      stampOne,
    );
    equal(encode(Status, status).length < 4_096, true);
  });
});

function detail<T>({ details }: Status, type: Message<T>): T | undefined {
  const found = details.find(({ typeUrl }) => typeUrl.endsWith(`/${type.typeName}`));
  return found && decode(type, found.value);
}
