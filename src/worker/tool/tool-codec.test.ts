import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Fault, isFault } from "#base/fault.ts";
import { WorkRequest, WorkResponse } from "#wire/generated/blaze/worker/worker_protocol.ts";
import { decode, encode } from "#wire/message.ts";
import { AnswerReader, requestBytes, type ToolAnswer, type ToolProtocol } from "./tool-codec.ts";

const text = fc.string({ unit: "grapheme" });
const plain = { noNullPrototype: true };
const answers = fc.record({ exitCode: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), output: text }, plain);
const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
const protocols: readonly ToolProtocol[] = ["proto", "json"];

function answerBytes({ exitCode, output }: ToolAnswer, protocol: ToolProtocol, more: object = {}): Buffer {
  const whole = { exitCode, output, requestId: 0, wasCancelled: false, ...more };
  if (protocol === "json") return Buffer.from(JSON.stringify(whole));
  const message = encode(WorkResponse, whole);
  const length: number[] = [];
  let rest = message.length;
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), message]);
}

/** Reads in pieces of these sizes, repeated. */
function readIn(bytes: Buffer, sizes: readonly number[], protocol: ToolProtocol): ToolAnswer | undefined {
  const reader = new AnswerReader(protocol);
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    const answer = reader.push(bytes.subarray(at, at + size));
    at += size;
    if (answer) return at >= bytes.length ? answer : undefined;
  }
  return undefined;
}

describe("an answer of a tool", () => {
  for (const protocol of protocols) {
    test(`${protocol}: is decoded whatever the sizes of the pieces`, () => {
      fc.assert(
        fc.property(answers, cuts, (answer, sizes) => {
          deepEqual(readIn(answerBytes(answer, protocol), sizes, protocol), answer);
        }),
      );
    });

    test(`O1, ${protocol}: any bytes give an answer, a Fault, or a wait for more`, () => {
      const anything = fc.uint8Array({ maxLength: 200 });
      fc.assert(
        fc.property(anything, cuts, (bytes, sizes) => {
          try {
            readIn(Buffer.from(bytes), sizes, protocol);
          } catch (error) {
            ok(isFault(error, "invalid"), String(error));
          }
        }),
        { numRuns: 1_000 },
      );
    });

    const refused = (what: string, bytes: Buffer): void => {
      throws(() => readIn(bytes, [bytes.length], protocol), Fault, what);
    };
    const good = { exitCode: 0, output: "fine" };

    test(`${protocol}: an unrequested answer is refused`, () => {
      refused("another number", answerBytes(good, protocol, { requestId: 7 }));
      refused("cancelled", answerBytes(good, protocol, { wasCancelled: true }));
      refused("two of them", Buffer.concat([answerBytes(good, protocol), answerBytes(good, protocol)]));
    });

    test(`O1, ${protocol}: an endless answer is not held`, () => {
      const begin = protocol === "json" ? `{"output":"` : Buffer.from([0xff, 0xff, 0xff, 0x07]);
      const reader = new AnswerReader(protocol);
      const piece = Buffer.alloc(1024 * 1024, "x");
      throws(() => {
        reader.push(Buffer.from(begin));
        for (let count = 0; count < 32; count += 1) reader.push(piece);
      }, /read the answer of a tool: invalid/);
    });
  }

  test("json: white space around it is ignored, other text is not", () => {
    deepEqual(readIn(Buffer.from(`\n {"exitCode": 3, "x": "}\\"}"} \n`), [100], "json"), { exitCode: 3, output: "" });
    throws(() => readIn(Buffer.from("Picked up options"), [100], "json"), Fault);
    throws(() => readIn(Buffer.from(`{"exitCode": "no"}`), [100], "json"), Fault);
  });

  test("proto: text printed instead of an answer is refused", () => {
    throws(() =>
      readIn(
        Buffer.from("Picked up JAVA_TOOL_OPTIONS: -Xmx1g -Xss2m, and a few more of the like, as they say\n"),
        [100],
        "proto",
      ),
    );
  });
});

describe("a request to a tool", () => {
  const bytes = fc.uint8Array().map((some) => Buffer.from(some));
  const input = fc.record({ path: text, digest: bytes }, plain);
  const requests = fc.record({ arguments: fc.array(text), inputs: fc.array(input) }, plain);

  test("proto: is the message with its length before it", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const said = requestBytes(request, "proto");
        const first = said.findIndex((byte) => byte < 128);
        const told = decode(WorkRequest, said.subarray(first + 1));
        deepEqual(told, { ...request, requestId: 0, cancel: false, verbosity: 0, sandboxDir: "" });
      }),
    );
  });

  test("json: is one line, with bytes in base64", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const line = requestBytes(request, "json").toString();
        equal(line.indexOf("\n"), line.length - 1);
        const { arguments: words, inputs, requestId } = JSON.parse(line) as WorkRequest;
        const digests = inputs.map(({ path, digest }) => ({ path, digest: Buffer.from(String(digest), "base64") }));
        deepEqual({ arguments: words, inputs: digests, requestId }, { ...request, requestId: 0 });
      }),
    );
  });
});
