import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream } from "#h2/connection/stream.ts";
import { prefixBytes, writePrefix } from "./message-reader.ts";
import { GrpcServer } from "#grpc/server.ts";
import { grpcCode } from "#grpc/status.ts";
import type { Method } from "#wire/message.ts";

const bytesType = { typeName: "test.Bytes", read: () => ({}), write: () => {} };
const path = "/test.Service/Take";

/** A stream as the server sees it. */
class FakeStream {
  tag: unknown;
  isOpen = true;
  unsentBytes = 0;
  status: number | undefined;
  message = "";

  consume(): void {}
  write(): boolean {
    return true;
  }
  reset(): void {
    this.isOpen = false;
  }
  sendHeaders(fields: readonly (readonly [string, string])[]): void {
    this.#note(fields);
  }
  sendTrailers(fields: readonly (readonly [string, string])[]): void {
    this.#note(fields);
  }
  #note(fields: readonly (readonly [string, string])[]): void {
    const found = Object.fromEntries(fields);
    if (found["grpc-status"] !== undefined) this.status = Number(found["grpc-status"]);
    this.message = found["grpc-message"] ?? this.message;
  }
}

class Scene {
  readonly clock = new ManualClock();
  readonly server: GrpcServer<undefined>;

  constructor(streams: "none" | "client" = "none") {
    this.server = new GrpcServer<undefined>({ clock: this.clock, admit: () => undefined, bodyBytesMax: 100_000 });
    const method = { path, streams, request: bytesType, response: bytesType } as unknown as Method<unknown, unknown>;
    this.server.addMethod(method, () => new Promise(() => {}));
  }

  /** Starts a message of this many bytes, and sends a few of them. */
  begin(peer: object, length: number): FakeStream {
    const stream = new FakeStream();
    const fields: Record<string, string> = { "content-type": "application/grpc" };
    const headers = { method: "POST", path, get: (name: string) => fields[name] } as unknown as HeaderList;
    this.server.open(stream as unknown as Stream, headers, false, peer);
    const bytes = Buffer.alloc(prefixBytes + 10);
    writePrefix(bytes, 0, length, false);
    this.server.onData(stream as unknown as Stream, bytes, false);
    return stream;
  }

  send(stream: FakeStream, length: number): void {
    this.server.onData(stream as unknown as Stream, Buffer.alloc(length), false);
  }
}

describe("incomplete messages", () => {
  test("are limited for all connections together; each may hold at most what is left for the others", () => {
    const scene = new Scene();
    const [one, two] = [{}, {}];
    deepEqual([scene.begin(one, 50_000).status, scene.server.bodies.bytes], [undefined, 50_000]);
    const refused = scene.begin(one, 1_000);
    equal(refused.status, grpcCode.unavailable);
    match(refused.message, /try again in a moment/);
    equal(scene.begin(two, 25_000).status, undefined);
    equal(scene.begin(two, 1_000).status, grpcCode.unavailable);
    equal(scene.server.bodies.bytes, 75_000);
  });

  test("are released when their call ends, however it ends", () => {
    const scene = new Scene();
    const stream = scene.begin({}, 50_000);
    scene.server.onReset(stream as unknown as Stream, 8);
    equal(scene.server.bodies.bytes, 0);
  });

  test("have a time limit", async () => {
    const scene = new Scene();
    const stream = scene.begin({}, 50_000);
    await scene.clock.advance(119_000);
    equal(stream.status, undefined);
    await scene.clock.advance(2_000);
    equal(stream.status, grpcCode.deadlineExceeded);
    equal(scene.server.bodies.bytes, 0);
  });

  test("of a call with many messages count one at a time", async () => {
    const scene = new Scene("client");
    const stream = scene.begin({}, 20_000);
    equal(scene.server.bodies.bytes, 20_000);
    scene.send(stream, 20_000 - 10);
    equal(scene.server.bodies.bytes, 0);
    await scene.clock.advance(300_000);
    equal(stream.status, undefined);
  });

  test("that arrive in one piece are not counted", () => {
    const scene = new Scene();
    scene.begin({}, 10);
    equal(scene.server.bodies.bytes, 0);
  });
});
