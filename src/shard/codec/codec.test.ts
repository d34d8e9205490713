import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Event } from "#kernel/model/event.ts";
import type { StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import { decodeEvents, encodeEvents } from "./codec.ts";
import { decodeLines, encodeLine } from "./segment.ts";
import { decodeTexts, encodeText } from "./snapshot.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const jsonOf = (events: readonly Event[]): Uint8Array => bytes(`{"v":1,"events":${JSON.stringify(events)}}`);
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const eventsOf = (log: string): readonly Event[] =>
  readFileSync(new URL(`../../kernel/golden/${log}.ndjson`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);

const goldenEvents = [...eventsOf("v1"), ...eventsOf("v2")];

const hash = "0123456789abcdef".repeat(4);
const template: TaskTemplate = {
  kind: "shell",
  requires: ["os=linux", "pool=ä"],
  leaseMs: 60_000,
  attemptsMax: 3,
  retryOn: "any",
  backoffMs: 1_000,
  backoffMsMax: 60_000,
  queueMs: 86_400_000,
  attemptMs: 3_600_000,
  effects: "outside",
  speculate: false,
  graceMs: 0,
};
const stage: StageSpec = {
  name: "run",
  needs: [],
  after: "end",
  failFast: true,
  mayFail: false,
  parallelMax: 7,
  tasks: { template, tasks: [{ key: "k", spec: "s" }] },
};

describe("the log's encoding", () => {
  test("returns what was written, in either version", () => {
    const events: Event[] = [
      { kind: "took-over", epoch: 3, node: "ä\u2028\u0000", at: 12 },
      { kind: "forgotten", jobs: [1, 2, 3] },
    ];
    deepEqual(decodeEvents(encodeEvents(events)), events);
    deepEqual(decodeEvents(jsonOf(events)), events);
    deepEqual(encodeEvents([]), Uint8Array.of(2, 0));
    deepEqual(decodeEvents(Uint8Array.of(2, 0)), []);
  });

  test("every kind of event survives, alone and all together", () => {
    for (const event of goldenEvents) deepEqual(decodeEvents(encodeEvents([event])), [event]);
    const encoded = encodeEvents(goldenEvents);
    deepEqual(decodeEvents(encoded), goldenEvents);
    ok(encoded.length < jsonOf(goldenEvents).length);
  });

  test("batches written when this encoding and its additions were new are still read as meant", () => {
    const goldenOf = (file: string): readonly Event[] => {
      const golden = readFileSync(new URL(`./golden/${file}.hex`, import.meta.url), "utf8").replaceAll(/\s/g, "");
      return decodeEvents(Buffer.from(golden, "hex"));
    };
    deepEqual(goldenOf("batch-v2"), eventsOf("v1"));
    deepEqual(goldenOf("batch-v2-publish"), eventsOf("v2"));
  });

  test("a trace comes back, in a form that programs from before it can read", () => {
    const facts = { job: 1, firstTask: 1, tenant: "t", door: "shell", name: "j", payloadHash: hash, priority: 0 };
    const event: Event = {
      kind: "job-submitted",
      ...facts,
      spec: "",
      stages: [stage],
      deadlineAtMs: 9,
      trace: "00",
      at: 1,
    };
    const encoded = encodeEvents([event]);
    deepEqual(decodeEvents(encoded), [event]);
    ok(Buffer.from(encoded).includes(JSON.stringify(event)), "as JSON, of which they leave out what they do not know");
  });

  test("a stage or template equal to the one before takes one bit", () => {
    const submitted = (job: number): Event => ({
      kind: "job-submitted",
      job,
      firstTask: job,
      tenant: "t",
      door: "shell",
      name: `job-${job}`,
      payloadHash: hash,
      priority: -5,
      spec: "",
      stages: [
        { ...stage, tasks: { template: { ...template }, tasks: [{ key: "k", spec: "s", affinity: "host" }] } },
        stage,
      ],
      deadlineAtMs: 2_000_000_000_000,
      at: 1_700_000_000_000,
    });
    const one = encodeEvents([submitted(1)]);
    const three = encodeEvents([submitted(1), submitted(2), submitted(3)]);
    deepEqual(decodeEvents(three), [submitted(1), submitted(2), submitted(3)]);
    ok(three.length < 2.5 * one.length, `${one.length} ${three.length}`);
  });

  test("an unexpected number or choice is written as JSON", () => {
    const odd: Event[] = [
      { kind: "claimed", task: 1.5, token: 2, executor: "e", leaseMs: -1, started: true, nonce: "n", at: 3.25 },
      { kind: "stage-ended", job: 1, stage: 0, phase: "NEVER" as "FAILED", reason: "", at: 1 },
      { kind: "started", task: Number.MAX_SAFE_INTEGER, token: -Number.MAX_SAFE_INTEGER, at: 5 },
      { kind: "started", task: 2, token: 7, at: 6 },
    ];
    deepEqual(decodeEvents(encodeEvents(odd)), odd);
  });

  test("every event is read back as it was written", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ minLength: 40, maxLength: 120 }),
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 80 }).map((units) => String.fromCharCode(...units)),
      fc.constantFrom(
        hash,
        hash.toUpperCase(),
        `${hash}/12`,
        `${hash.toUpperCase()}/12`,
        `${hash.slice(1)}/12`,
        `${hash.slice(1)}//1`,
        `${hash}/012`,
        `${hash}/`,
        `blake3:${hash}/3`,
        `${hash}/-1`,
      ),
      fc.constantFrom(`${hash}/0`, `${hash}/9007199254740991`, `${hash}/999999999999999`, `${"\u0430".repeat(64)}/5`),
    );
    const number = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.nat(300));
    const claim = { task: number, token: number, at: number };
    const event = fc.oneof(
      fc.record({
        kind: fc.constant("committed" as const),
        ...claim,
        result: fc.record(
          { payload: text, digests: fc.array(text), publish: text },
          { requiredKeys: ["payload", "digests"] },
        ),
      }),
      fc.record({
        kind: fc.constant("claimed" as const),
        ...claim,
        executor: text,
        leaseMs: number,
        started: fc.boolean(),
        nonce: text,
      }),
      fc.record({
        kind: fc.constant("job-ended" as const),
        job: number,
        phase: fc.constantFrom("FAILED", "SUCCEEDED"),
        reason: text,
        at: number,
      }),
      fc.record({
        kind: fc.constant("signalled" as const),
        job: number,
        stage: number,
        id: text,
        name: text,
        payload: text,
        at: number,
      }),
      fc.record({ kind: fc.constant("forgotten" as const), jobs: fc.array(number) }),
      fc.record({ kind: fc.constant("published" as const), job: number, task: number, generation: number, at: number }),
    );
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const given = events as readonly Event[];
        // As JSON stores them, which has no -0.
        deepEqual(decodeEvents(encodeEvents(given)), asJson(given));
      }),
    );
  });

  test("batches of a newer program are distinguished from corrupt ones", () => {
    throws(() => decodeEvents(bytes('{"v":2,"events":[]}')), /written by a newer Millrace: invalid \(version=2\)/);
    throws(() => decodeEvents(Uint8Array.of(3, 0)), /written by a newer Millrace: invalid \(version=3\)/);
    throws(() => decodeEvents(Uint8Array.of(2, 1, 100)), /newer Millrace: invalid \(code=100\)/);
    throws(
      () => decodeEvents(bytes('{"v":1,"events":[{"kind":"dreamt"}]}')),
      /newer Millrace: invalid \(kind=dreamt\)/,
    );
    for (const text of ["", "{", "null", "[]", '{"v":1}', '{"v":1,"events":[{}]}', '{"v":1,"events":[null]}'])
      throws(() => decodeEvents(bytes(text)), /corrupt/, text);
    throws(() => decodeEvents(Uint8Array.of(0xff, 0xfe)), /corrupt/);
    throws(() => decodeEvents(bytes('{"v":1,"events":[{"kind":"toString"}]}')), /newer/);
  });

  test("a cut or changed batch gives a Fault or other events, and nothing else", () => {
    const whole = encodeEvents(goldenEvents);
    for (let end = 0; end < whole.length; end += 1)
      throws(() => decodeEvents(whole.subarray(0, end)), { name: "Fault" });
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const changed = Uint8Array.from(whole);
        changed[at] = byte;
        try {
          decodeEvents(changed);
        } catch (error) {
          equal((error as Error).name, "Fault");
        }
      }),
    );
  });
});

describe("an archived segment's encoding", () => {
  const records = [
    { seq: 7, epoch: 2, payload: jsonOf(goldenEvents) },
    { seq: 8, epoch: 2, payload: encodeEvents(goldenEvents) },
    { seq: 9, epoch: 3, payload: Uint8Array.of(2, 10, 10, 0x7b) },
    { seq: 10, epoch: 3, payload: jsonOf([]) },
  ];
  const segment = Buffer.concat(records.map(encodeLine));
  const span = { fromSeq: 7, throughSeq: 10 };

  test("returns batches of both encodings", () => {
    deepEqual(
      [...decodeLines(segment, span)].map(({ payload, ...rest }) => ({ ...rest, payload: Uint8Array.from(payload) })),
      records.map(({ payload, ...rest }) => ({ ...rest, payload: Uint8Array.from(payload) })),
    );
  });

  test("detects missing batches", () => {
    for (const end of [segment.length - 1, segment.length - 40, 10, 0])
      throws(() => [...decodeLines(segment.subarray(0, end), span)], /corrupt/);
    throws(() => [...decodeLines(segment, { fromSeq: 7, throughSeq: 9 })], /corrupt/);
    throws(() => [...decodeLines(segment, { fromSeq: 8, throughSeq: 10 })], /corrupt/);
    const garbled = Buffer.from(segment);
    garbled.write("x", segment.indexOf('"bytes":') + 9);
    throws(() => [...decodeLines(garbled, span)], /corrupt/);
  });
});

describe("a snapshot's encoding", () => {
  const texts = ["", "one", "zwei \u00e4", "x".repeat(70_000)];
  const whole = Buffer.concat(texts.map(encodeText));

  async function* cut(size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size);
  }

  test("survives being cut anywhere", async () => {
    for (const size of [1, 3, 4_096, whole.length]) deepEqual(await Array.fromAsync(decodeTexts(cut(size))), texts);
  });

  test("detects a missing end", async () => {
    async function* shortened(): AsyncGenerator<Uint8Array> {
      yield whole.subarray(0, whole.length - 1);
    }
    await rejects(Array.fromAsync(decodeTexts(shortened())), /corrupt/);
  });
});
