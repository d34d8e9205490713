// All sockets are read into one piece of memory, and otherwise behave as usual.
import { deepEqual, equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { after, before, describe, test } from "node:test";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { until } from "#testing/until.ts";
import { readShared } from "./shared-reads.ts";
import { selfSigned } from "./testing/peer.ts";

const limited = { timeout: 90_000 };

describe("shared reads", () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket));
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => server.close());

  async function pair(): Promise<readonly [Socket, Socket]> {
    const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
    await once(near, "connect");
    await until("it was accepted", () => accepted.length > 0);
    return [near, accepted.pop() as Socket];
  }

  test("give the same memory to every socket, accepted or connected", limited, async () => {
    const [near, far] = await pair();
    const [other, otherFar] = await pair();
    const memories = new Set<ArrayBufferLike>();
    const texts = ["", "", "", ""];
    for (const [i, socket] of [near, far, other, otherFar].entries())
      ok(
        readShared(socket, (bytes) => {
          memories.add(bytes.buffer);
          texts[i] += bytes.toString();
        }),
        "the Node that we ship has what this needs",
      );
    for (const [i, socket] of [far, near, otherFar, other].entries()) socket.write(`for ${i}`);
    await until("all have come", () => texts.every((text) => text !== ""));
    deepEqual(texts, ["for 0", "for 1", "for 2", "for 3"]);
    equal(memories.size, 1);
    for (const socket of [near, other]) socket.destroy();
  });

  test("deliver data longer than the memory, can be paused, and end", limited, async () => {
    const [near, far] = await pair();
    const sent = Buffer.alloc(5_000_000, "0123456789");
    const got: Buffer[] = [];
    let [bytes, ended, pauses] = [0, false, 0];
    readShared(far, (some) => {
      got.push(Buffer.from(some));
      bytes += some.length;
      if (pauses * 1_000_000 > bytes) return;
      pauses += 1;
      far.pause();
      setImmediate(() => far.resume());
    });
    far.on("end", () => (ended = true));
    near.resume().end(sent);
    await until("all has come", () => bytes === sent.length && ended);
    ok(Buffer.concat(got).equals(sent));
    ok(pauses > 2);
    far.end();
    await until("both are closed", () => near.closed && far.closed);
  });

  test("do not affect TLS or other streams", limited, async (t) => {
    equal(
      readShared(new PassThrough(), () => {}),
      false,
    );
    const certificate = selfSigned();
    if (!certificate) return t.skip("no openssl");
    const secure = createTlsServer(certificate, (socket) => socket.end("hello"));
    secure.listen(0, "127.0.0.1");
    await once(secure, "listening");
    const { port } = secure.address() as AddressInfo;
    const near: TLSSocket = connectTls({ port, host: "127.0.0.1", ca: certificate.cert, servername: "localhost" });
    await once(near, "secureConnect");
    equal(
      readShared(near, () => {}),
      false,
    );
    equal(String(await Array.fromAsync(near)), "hello");
    secure.close();
  });
});
