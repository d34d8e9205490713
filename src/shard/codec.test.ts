import { deepEqual, rejects, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Event } from "#kernel/event.ts";
import { decodeEvents, encodeEvents } from "./codec.ts";
import { decodeTexts, encodeText } from "./codec-snapshot.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("the log's encoding", () => {
  test("gives back what was written", () => {
    const events: Event[] = [
      { kind: "took-over", epoch: 3, node: "ä\u2028\u0000", at: 12 },
      { kind: "forgotten", jobs: [1, 2, 3] },
    ];
    deepEqual(decodeEvents(encodeEvents(events)), events);
    deepEqual(new TextDecoder().decode(encodeEvents([])), '{"v":1,"events":[]}');
  });

  test("what a newer program wrote is told from what nobody wrote", () => {
    throws(() => decodeEvents(bytes('{"v":2,"events":[]}')), /written by a newer Millrace: invalid \(version=2\)/);
    throws(
      () => decodeEvents(bytes('{"v":1,"events":[{"kind":"dreamt"}]}')),
      /newer Millrace: invalid \(kind=dreamt\)/,
    );
    for (const text of ["", "{", "null", "[]", '{"v":1}', '{"v":1,"events":[{}]}', '{"v":1,"events":[null]}'])
      throws(() => decodeEvents(bytes(text)), /corrupt/, text);
    throws(() => decodeEvents(Uint8Array.of(0xff, 0xfe)), /corrupt/);
    throws(() => decodeEvents(bytes('{"v":1,"events":[{"kind":"toString"}]}')), /newer/);
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

  test("notices that its end is missing", async () => {
    async function* shortened(): AsyncGenerator<Uint8Array> {
      yield whole.subarray(0, whole.length - 1);
    }
    await rejects(Array.fromAsync(decodeTexts(shortened())), /corrupt/);
  });
});
