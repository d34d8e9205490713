// Long messages are delivered in parts while they arrive; a part stays valid until the handler asks for the next.
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { decode } from "#wire/message.ts";
import { writeRequest } from "#wire/write-request.ts";
import { MessageReader, prefixBytes } from "./message-reader.ts";
import { frame } from "#grpc/outgoing.ts";
import { PartInbox } from "./part-inbox.ts";
import { partMemoryBytes } from "./part-memory.ts";

const inParts = writeRequest.inParts as NonNullable<typeof writeRequest.inParts>;

function patterned(length: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i += 1) bytes[i] = (i * 7 + (i >> 8) + seed) & 0xff;
  return bytes;
}

/** An inbox, and a peer that sends no more than the window allows, from memory that it then overwrites. */
class Upload {
  readonly #reader = new MessageReader(1 << 20);
  readonly #stream: Buffer;
  readonly inbox: PartInbox;
  #sent = 0;
  consumed = 0;
  unconsumedMax = 0;

  constructor(requests: readonly WriteRequest[]) {
    this.#stream = Buffer.concat(requests.map((request) => frame(WriteRequest, request)));
    this.inbox = new PartInbox(inParts, (bytes) => (this.consumed += bytes));
  }

  get bytes(): number {
    return this.#stream.length;
  }

  get isSent(): boolean {
    return this.#sent === this.#stream.length;
  }

  async nextPart(): Promise<WriteRequest> {
    const item = await this.inbox.next();
    ok(item?.part !== undefined);
    return item.part as WriteRequest;
  }

  /** False when the window is full. */
  send(bytes: number, windowBytes = Number.POSITIVE_INFINITY): boolean {
    const unconsumed = this.#sent - this.consumed;
    const length = Math.min(bytes, this.#stream.length - this.#sent, windowBytes - unconsumed);
    const lent = Buffer.from(this.#stream.subarray(this.#sent, this.#sent + length));
    this.#sent += length;
    this.#reader.read(lent, this.inbox);
    this.inbox.came(length);
    lent.fill(0xee);
    this.unconsumedMax = Math.max(this.unconsumedMax, this.#sent - this.consumed);
    if (this.isSent) this.inbox.end();
    return length > 0;
  }
}

const requestOf = (length: number, i: number): WriteRequest => ({
  resourceName: i === 0 ? "blob" : "",
  writeOffset: i * 1_000_000,
  finishWrite: i % 2 === 1,
  data: patterned(length, i),
});

const length = fc.oneof(fc.nat({ max: 10 }), fc.nat({ max: 9_000 }), fc.nat({ max: 3 * partMemoryBytes }));

describe("messages in parts", () => {
  test("are equivalent to the whole messages, at any speed, within the window", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(length, { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 6 }),
        async (lengths, cuts, paces) => {
          const requests = lengths.map(requestOf);
          const upload = new Upload(requests);
          const got = requests.map(() => Buffer.alloc(0));
          let turn = 0;
          const sendSome = (): boolean => upload.send(cuts[(turn += 1) % cuts.length] as number, 65_535);
          if (upload.isSent) upload.inbox.end();
          for (;;) {
            const asked = upload.inbox.next();
            while (!upload.isSent && sendSome()); // as much as the window allows: the handler waits
            const item = await asked;
            if (!item) break;
            const part = item.part === undefined ? decode(writeRequest, item.bytes) : (item.part as WriteRequest);
            const before = Buffer.from(part.data);
            for (let more = paces[turn % paces.length] as number; more > 0 && !upload.isSent; more -= 1) sendSome();
            ok(before.equals(part.data), "it stays as it is until the next is asked for");
            const i = Math.floor(part.writeOffset / 1_000_000);
            equal(part.writeOffset - i * 1_000_000, got[i]?.length);
            got[i] = Buffer.concat([got[i] as Buffer, before]);
            equal(part.finishWrite, i % 2 === 1 && got[i].length === requests[i]?.data.length);
          }
          deepEqual(
            got.map((bytes, i) => bytes.equals(requests[i]?.data ?? Buffer.alloc(0))),
            got.map(() => true),
          );
          equal(upload.consumed, upload.bytes);
          ok(upload.unconsumedMax <= 65_535);
        },
      ),
      { numRuns: 150 },
    );
  });

  test("begin before the message has ended, and the window opens as parts are processed", async () => {
    const upload = new Upload([requestOf(300_000, 0)]);
    upload.send(20_000);
    const { data, finishWrite } = await upload.nextPart();
    ok(data.length > 19_000 && data.length < 20_000);
    equal(finishWrite, false);
    equal(upload.consumed, 0);
    upload.send(1);
    await upload.inbox.next();
    equal(upload.consumed, 20_000);
  });

  test("that are small or compressed arrive whole", async () => {
    const small = new Upload([requestOf(100, 1)]);
    small.send(1_000);
    equal((await small.inbox.next())?.part, undefined);
    const packed = frame(WriteRequest, requestOf(10_000, 1));
    packed[0] = 1;
    const inbox = new PartInbox(inParts, () => {});
    new MessageReader(1 << 20).read(packed, inbox);
    const item = await inbox.next();
    deepEqual([item?.compressed, item?.bytes.length], [true, packed.length - prefixBytes]);
  });

  test("stay valid for their handler when the call fails, and no more arrive", async () => {
    const upload = new Upload([requestOf(200_000, 0)]);
    upload.send(70_000);
    const { data } = await upload.nextPart();
    const before = Buffer.from(data);
    upload.inbox.fail(new Error("gone"));
    const other = new Upload([requestOf(200_000, 7)]);
    other.send(200_000);
    ok(before.equals(data));
    await rejects(upload.inbox.next(), /gone/);
  });
});
