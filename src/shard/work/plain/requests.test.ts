/** Requests decoded directly from the wire must equal those decoded through the generated messages. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc, { type Arbitrary } from "fast-check";
import { Fault, isFault } from "#base/fault.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import { CommitRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { StageSpec, TaskSet, TaskTemplate } from "#wire/generated/millrace/work/v1/model.ts";
import { decode, encode } from "#wire/message.ts";
import { Writer } from "#wire/writer.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";
import { callOf, workCalls, type WorkCall } from "#shard/work/calls.ts";
import { writeStage, writeTaskSet, writeTemplate } from "#shard/work/model.ts";
import { requestMessage } from "./requests.ts";
import { batchExchange, commandExchange, commandOf } from "#shard/testing/work.ts";
import { stage, taskSet } from "#shard/testing/work-messages.ts";

/** Distinguishes refused messages from bytes that cannot be decoded. */
class Refused extends Error {}

const refused = (error: unknown): unknown => (isFault(error) ? new Refused(error.message) : error);

type Outcome = { readonly request: ShardRequest } | { readonly failed: string; readonly isRefused: boolean };

function outcomeOf(read: () => ShardRequest): Outcome {
  try {
    return { request: read() };
  } catch (error) {
    if (error instanceof Refused) return { failed: error.message, isRefused: true };
    if (isFault(error, "invalid")) return { failed: error.message, isRefused: false };
    throw error;
  }
}

const plainly = (call: WorkCall, bytes: Uint8Array): Outcome =>
  outcomeOf(() => decode(requestMessage(call, refused), bytes));

const byMessages = (call: WorkCall, bytes: Uint8Array): Outcome =>
  outcomeOf(() => {
    const message = decode(call.method.request, bytes);
    try {
      return call.readRequest(message);
    } catch (error) {
      throw refused(error);
    }
  });

const bytesOf = (request: ShardRequest): Buffer => {
  const call = callOf(request);
  return encode(call.method.request, call.writeRequest(request));
};

const request: Arbitrary<ShardRequest> = fc.oneof(
  commandExchange.map((exchange) => exchange.request),
  batchExchange.map((exchange) => exchange.request),
);

/** Bytes changed, removed, inserted or repeated, anywhere. */
type Change = { readonly at: number; readonly length: number; readonly bytes: Uint8Array; readonly again: boolean };
const change: Arbitrary<Change> = fc.record({
  at: fc.nat(),
  length: fc.oneof(fc.constantFrom(0, 1, 1, 2), fc.nat({ max: 30 })),
  bytes: fc.oneof(fc.uint8Array({ maxLength: 3 }), fc.uint8Array({ maxLength: 3, max: 20 })),
  again: fc.boolean(),
});

function changed(bytes: Buffer, { at, length, bytes: put, again }: Change): Buffer {
  const start = at % (bytes.length + 1);
  const end = Math.min(bytes.length, start + length);
  const middle = again ? [bytes.subarray(start, end), bytes.subarray(start, end)] : [put];
  return Buffer.concat([bytes.subarray(0, start), ...middle, bytes.subarray(end)]);
}

/** A field with these bytes, concatenated: protobuf merges several messages into one. */
function field(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const to = new Writer();
  to.data(tag, Buffer.concat(parts));
  return to.bytes.subarray(0, to.pos);
}

const afterSuccess = Buffer.from([24, 1]);

function checkBoth(kind: "batch" | "submit" | "commit", bytes: Uint8Array): void {
  const asked: ShardRequest =
    kind === "batch"
      ? { kind: "commands", shard: 0, commands: [] }
      : { kind: "command", shard: 0, command: kind === "submit" ? submit : commit };
  deepEqual(plainly(callOf(asked), bytes), byMessages(callOf(asked), bytes));
}

const commit: CommandOf<"commit"> = {
  kind: "commit",
  executor: "e",
  task: 7,
  token: 8,
  result: { payload: "p", digests: ["d"] },
  evidence: { digests: [], pinnedForMs: 0 },
};
const template = {
  kind: "shell",
  requires: ["os=linux", "pool=default"],
  leaseMs: 60_000,
  attemptsMax: 3,
  retryOn: "any",
  backoffMs: 1,
  backoffMsMax: 2,
  queueMs: 3,
  attemptMs: 4,
  effects: "pure",
  speculate: true,
  graceMs: 5,
} as const;
const submit: CommandOf<"submit"> = {
  kind: "submit",
  tenant: "t",
  door: "d",
  name: "n",
  payloadHash: "h",
  priority: 1,
  spec: "s",
  deadlineMs: 9,
  stages: [
    {
      name: "run",
      needs: [],
      after: "success",
      failFast: true,
      mayFail: false,
      parallelMax: 0,
      tasks: { template, tasks: [{ key: "k", spec: "s" }] },
    },
  ],
};

describe("a request decoded directly from the wire", () => {
  test("equals what the generated messages decode, for any request", () => {
    fc.assert(
      fc.property(request, (asked) => {
        const bytes = bytesOf(asked);
        deepEqual(plainly(callOf(asked), bytes), { request: asked });
        deepEqual(byMessages(callOf(asked), bytes), { request: asked });
      }),
      { numRuns: 600 },
    );
  });

  test("equals it, or is refused with the same text, for any bytes", () => {
    fc.assert(
      fc.property(request, fc.array(change, { minLength: 1, maxLength: 3 }), (asked, changes) => {
        const bytes = changes.reduce(changed, bytesOf(asked));
        deepEqual(plainly(callOf(asked), bytes), byMessages(callOf(asked), bytes));
      }),
      { numRuns: 3_000 },
    );
  });

  test("equals it when its parts come twice, or the calls are confused", () => {
    const calls = fc.constantFrom(...workCalls);
    fc.assert(
      fc.property(request, request, calls, (one, other, call) => {
        const bytes = Buffer.concat([bytesOf(one), bytesOf(other)]);
        deepEqual(plainly(callOf(one), bytes), byMessages(callOf(one), bytes));
        deepEqual(plainly(call, bytes), byMessages(call, bytes));
      }),
      { numRuns: 600 },
    );
  });

  test("equals it when a part is given twice and both merge into one", () => {
    const submits = fc.tuple(commandOf("submit"), commandOf("submit"));
    const commits = fc.tuple(commandOf("commit"), commandOf("commit"));
    fc.assert(
      fc.property(
        fc.oneof(submits, commits),
        fc.tuple(stage, stage),
        fc.tuple(taskSet, taskSet),
        (both, stages, sets) => {
          const [one, other] = both.map((command) => bytesOf({ kind: "command", shard: 0, command }));
          const kind = both[0].kind === "submit" ? "submit" : "commit";
          checkBoth(kind, Buffer.concat([one as Buffer, other as Buffer]));
          checkBoth("submit", field(98, ...stages.map((each) => encode(StageSpec, writeStage(each)))));
          const setsTwice = field(34, ...sets.map((each) => encode(TaskSet, writeTaskSet(each))));
          checkBoth("submit", field(98, afterSuccess, setsTwice));
          const templates = sets.map(({ template: each }) => encode(TaskTemplate, writeTemplate(each)));
          checkBoth("submit", field(98, afterSuccess, field(34, field(10, ...templates))));
          checkBoth("submit", field(98, afterSuccess, field(34, ...templates.map((each) => field(10, each)))));
          const tag = kind === "submit" ? 10 : 74;
          const commands = [one, other].map((bytes) => field(tag, bytes as Buffer));
          checkBoth("batch", field(18, ...commands));
          checkBoth("batch", field(18, ...commands, field(50)));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("is refused with the same text where a command of a batch names a shard, or is missing", () => {
    const named = encode(CommitRequest, {
      shard: 3,
      executor: "e",
      task: 1,
      token: 2,
      result: { payload: "", digests: [] },
    });
    const minusOne = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    for (const shard of [[], [8, 3], [8, 4], minusOne])
      for (const command of [
        field(74, named),
        field(74, named, Buffer.from([8, 0])),
        field(74, named, Buffer.from(minusOne)),
        Buffer.alloc(0),
        field(98),
      ])
        for (const parts of [
          [Buffer.from(shard), field(18, command)],
          [field(18, command), Buffer.from(shard)],
        ])
          checkBoth("batch", Buffer.concat(parts));
  });

  test("can be written and read back by the same message", () => {
    const asked: ShardRequest = { kind: "commands", shard: 3, commands: [submit, commit] };
    const message = requestMessage(callOf(asked), refused);
    deepEqual(decode(message, encode(message, asked)), asked);
  });

  test("is limited as all messages are", () => {
    const asked: ShardRequest = { kind: "command", shard: 0, command: submit };
    const call = callOf(asked);
    const bytes = bytesOf(asked);
    // Stage, tasks, template, its two labels and the task.
    const items = 6;
    decode(requestMessage(call, refused), bytes); // Now the template is cached.
    for (const itemsMax of [items, items - 1, items - 2, 0])
      for (const depthMax of [3, 2, 0]) {
        const limits = { itemsMax, depthMax };
        const outcomes = [call.method.request, requestMessage(call, refused)].map((type) => {
          try {
            return typeof decode(type, bytes, limits);
          } catch (error) {
            if (isFault(error, "invalid")) return error.message;
            throw error;
          }
        });
        equal(outcomes[0], outcomes[1]);
        equal(outcomes[0] === "object", itemsMax >= items && depthMax >= 3);
      }
  });
});

describe("a template", () => {
  const read = (command: CommandOf<"submit">) => {
    const asked: ShardRequest = { kind: "commands", shard: 0, commands: [command] };
    const got = decode(requestMessage(callOf(asked), refused), bytesOf(asked));
    ok(got.kind === "commands");
    return (got.commands[0] as CommandOf<"submit">).stages[0]?.tasks?.template;
  };
  const withTemplate = (change: object): CommandOf<"submit"> => {
    const [stage] = submit.stages;
    ok(stage?.tasks);
    return { ...submit, stages: [{ ...stage, tasks: { ...stage.tasks, template: { ...template, ...change } } }] };
  };

  test("decoded before is the same object, and cannot be changed", () => {
    const one = read(submit);
    ok(one !== undefined && one === read(submit));
    ok(Object.isFrozen(one));
  });

  test("with other bytes is another object, however many there are", () => {
    for (let i = 0; i < 2_000; i += 1) {
      const change = { kind: `kind-${i}`, leaseMs: i };
      deepEqual(read(withTemplate(change)), { ...template, ...change });
    }
    deepEqual(read(submit), template);
  });

  test("that is too long for the cache is still decoded", () => {
    const change = { requires: Array.from({ length: 300 }, (_, i) => `label-${i}=x`) };
    deepEqual(read(withTemplate(change)), { ...template, ...change });
    ok(read(withTemplate(change)) !== read(withTemplate(change)));
  });

  test("with unknown fields is decoded again each time: their allowed depth depends on the position", () => {
    const to = new Writer();
    to.string(10, "kind");
    to.int32(40, 1);
    to.int32(80, 1);
    to.string(250, "unknown");
    const templateBytes = to.bytes.subarray(0, to.pos);
    const wrap = (tag: number, bytes: Uint8Array, before?: (to: Writer) => void): Buffer => {
      const around = new Writer();
      before?.(around);
      around.data(tag, bytes);
      return around.bytes.subarray(0, around.pos);
    };
    const stage = wrap(34, wrap(10, templateBytes), (around) => around.int32(24, 1));
    const bytes = wrap(98, stage);
    const call = callOf({ kind: "command", shard: 0, command: submit });
    const templates = [1, 2].map(() => {
      const outcome = plainly(call, bytes);
      if (!("request" in outcome)) throw new Fault("internal", outcome.failed);
      deepEqual(outcome, byMessages(call, bytes));
      const { command } = outcome.request as { command: CommandOf<"submit"> };
      return command.stages[0]?.tasks?.template;
    });
    ok(templates[0] !== templates[1]);
  });
});
