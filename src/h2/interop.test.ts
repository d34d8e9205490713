// Over real sockets on this machine: Node's own HTTP/2, nghttp2's tools and curl, with ours, in both directions.
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { once } from "node:events";
import * as http2 from "node:http2";
import { connect as connectSocket, createServer, type AddressInfo, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { after, before, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { until } from "#testing/until.ts";
import { connectH2 } from "./client.ts";
import { errorCode } from "./frames/error-codes.ts";
import type { HeaderList } from "./hpack/header-list.ts";
import type { HeaderPairs } from "./hpack/hpack-encoder.ts";
import { looksLikeHttp2 } from "./frames/preface.ts";
import { H2Socket } from "./socket.ts";
import type { Stream } from "./connection/stream.ts";
import { echoServer, notInstalled, runProgram, selfSigned, type EchoServer } from "./testing/peer.ts";
import { realClock } from "#testing/real-clock.ts";

const bounded = { timeout: 90_000 };
const host = "127.0.0.1";
const certificate = selfSigned();
const needsOpenssl = certificate === undefined && "needs openssl: no certificate can be made";

type Answer = { status: number; body: Buffer; trailers: http2.IncomingHttpHeaders };

async function nodeAsks(session: http2.ClientHttp2Session, path: string, body: Buffer): Promise<Answer> {
  const stream = session.request({ ":method": "POST", ":path": path });
  const chunks: Buffer[] = [];
  let [status, trailers]: [number, http2.IncomingHttpHeaders] = [0, {}];
  stream.on("response", (headers) => (status = headers[":status"] ?? 0));
  stream.on("trailers", (headers) => (trailers = headers));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.end(body);
  await once(stream, "close");
  return { status, body: Buffer.concat(chunks), trailers };
}

/** A whole request by our client. */
function weAsk(
  client: H2Socket,
  headers: HeaderPairs,
  body: Buffer,
): Promise<{ headers: HeaderList; body: Buffer; trailers: HeaderList | undefined }> {
  const answer = Promise.withResolvers<{ headers: HeaderList; body: Buffer; trailers: HeaderList | undefined }>();
  const chunks: Buffer[] = [];
  let head: HeaderList | undefined;
  const done = (trailers: HeaderList | undefined): void => {
    if (head) answer.resolve({ headers: head, body: Buffer.concat(chunks), trailers });
  };
  const stream = client.request(
    headers,
    {
      onHeaders(_stream, response, ended) {
        head = response;
        if (ended) done(undefined);
      },
      onData(one, bytes, ended) {
        chunks.push(Buffer.from(bytes));
        one.consume(bytes.length);
        if (ended) done(undefined);
      },
      onTrailers: (_stream, trailers) => done(trailers),
      onReset: (_stream, code) => answer.reject(new Error(`reset ${code}`)),
    },
    body.length === 0,
  );
  if (body.length > 0) stream.write(body, { end: true });
  return answer.promise;
}

const post = (path: string, scheme = "http"): HeaderPairs => [
  [":method", "POST"],
  [":scheme", scheme],
  [":path", path],
  [":authority", "localhost"],
];

describe("a node:http2 client and our server", bounded, () => {
  let server: EchoServer;
  let session: http2.ClientHttp2Session;
  before(async () => {
    server = await echoServer(realClock);
    session = http2.connect(`http://${host}:${server.port}`, { maxSessionMemory: 1_000 });
  });
  after(async () => {
    session.destroy();
    await server.close();
  });

  for (const size of [0, 1, 1_000, 16_384, 16_385, 1_000_000, 20_000_000])
    test(`${size} bytes there and back, and trailers`, async () => {
      const body = Buffer.alloc(size, "0123456789abcdef");
      const answer = await nodeAsks(session, "/echo", body);
      equal(answer.status, 200);
      equal(answer.trailers["x-ended"], "well");
      ok(answer.body.equals(body));
    });

  test("500 streams at once on one connection", async () => {
    const bodies = Array.from({ length: 500 }, (_, at) => Buffer.alloc(at * 37, at % 256));
    const answers = await Promise.all(bodies.map((body) => nodeAsks(session, "/echo", body)));
    ok(answers.every(({ body }, at) => body.equals(bodies[at] ?? Buffer.alloc(0))));
  });

  test("a cancelled stream is reported", async () => {
    const stream = session.request({ ":method": "POST", ":path": "/silent" });
    stream.on("error", () => {});
    await until("the request is here", () => server.requests.includes("POST /silent"));
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await until("the reset is here", () => server.resets.includes(errorCode.cancel));
  });

  test("a refused stream is refused", async () => {
    const stream = session.request({ ":path": "/refuse" });
    const [error] = (await once(stream, "error")) as [NodeJS.ErrnoException];
    match(error.message, /REFUSED_STREAM/);
  });

  test("pings are answered", async () => {
    const ponged = Promise.withResolvers<void>();
    session.ping((error) => (error ? ponged.reject(error) : ponged.resolve()));
    await ponged.promise;
  });

  test("a drain lets the open stream end, and then closes", async () => {
    const draining = await echoServer(realClock);
    const client = http2.connect(`http://${host}:${draining.port}`);
    const stream = client.request({ ":method": "POST", ":path": "/echo" });
    await once(stream, "response");
    const closed = draining.close();
    await once(client, "goaway");
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.end("last words");
    await closed;
    equal(Buffer.concat(chunks).toString(), "last words");
    client.destroy();
  });

  test("TLS with ALPN; a client that offers only HTTP/1.1 is disconnected", { skip: needsOpenssl }, async () => {
    const secure = await echoServer(realClock, { tls: { ...certificate } });
    const client = http2.connect(`https://localhost:${secure.port}`, { ca: certificate?.cert });
    const body = Buffer.alloc(3_000_000, "tls");
    ok((await nodeAsks(client, "/echo", body)).body.equals(body));
    client.destroy();
    const other = connectTls({ host, port: secure.port, ca: certificate?.cert, ALPNProtocols: ["http/1.1"] });
    match(String((await once(other, "error")) as unknown[]), /alert|reset|closed/i);
    await secure.close();
  });
});

describe("our client and a node:http2 server", bounded, () => {
  let server: http2.Http2Server;
  let client: H2Socket;
  let cancelled = 0;
  const serve = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void => {
    stream.on("error", () => {});
    if (headers[":path"] === "/silent") return void stream.on("close", () => (cancelled += 1));
    if (headers[":path"] === "/refuse") return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    stream.respond({ ":status": 200, "x-got": String(headers["x-sent"]) }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-ended": "well" }));
    stream.pipe(stream);
  };
  before(async () => {
    server = http2.createServer({ settings: { maxConcurrentStreams: 50 } });
    server.on("stream", serve);
    server.listen(0, host);
    await once(server, "listening");
    client = await connectH2({ host, port: (server.address() as AddressInfo).port, clock: realClock });
  });
  after(() => {
    client.close();
    server.close();
  });

  for (const size of [0, 1, 1_000, 16_384, 16_385, 1_000_000, 20_000_000])
    test(`${size} bytes there and back, and trailers`, async () => {
      const body = Buffer.alloc(size, "0123456789abcdef");
      const answer = await weAsk(client, [...post("/echo"), ["x-sent", String(size)]], body);
      equal(answer.headers.status, 200);
      equal(answer.headers.get("x-got"), String(size));
      equal(answer.trailers?.get("x-ended"), "well");
      ok(answer.body.equals(body));
    });

  test("500 requests at once, of which the server allows 50", async () => {
    const bodies = Array.from({ length: 500 }, (_, at) => Buffer.alloc(1 + at * 37, at % 256));
    const answers = await Promise.all(bodies.map((body) => weAsk(client, post("/echo"), body)));
    ok(answers.every(({ body }, at) => body.equals(bodies[at] ?? Buffer.alloc(0))));
  });

  test("a cancelled request is reported, a refused one says so", async () => {
    const stream = client.request(post("/silent"), { onData() {}, onReset() {} });
    await until("it has an id", () => stream.id !== 0);
    stream.reset();
    await until("the server knows", () => cancelled === 1);
    await rejects(weAsk(client, post("/refuse"), Buffer.alloc(0)), /reset 7/);
  });

  test("TLS with ALPN; a server that is not trusted is refused", { skip: needsOpenssl }, async () => {
    const options = { ...certificate };
    const secure = http2.createSecureServer(options);
    secure.on("stream", serve);
    secure.listen(0, host);
    await once(secure, "listening");
    const { port } = secure.address() as AddressInfo;
    const tls = { ca: certificate?.cert ?? Buffer.alloc(0), servername: "localhost" };
    const ours = await connectH2({ host, port, clock: realClock, tls });
    const body = Buffer.alloc(3_000_000, "tls");
    ok((await weAsk(ours, post("/echo", "https"), body)).body.equals(body));
    await rejects(connectH2({ host, port, clock: realClock, tls: { servername: "localhost" } }), (error) =>
      isFault(error, "unavailable"),
    );
    ours.close();
    secure.close();
  });
});

describe("our client and our server", bounded, () => {
  test("a socket can be handed over with the first bytes that were read from it", async () => {
    const adopted: H2Socket[] = [];
    const server = createServer((socket: Socket) => {
      socket.once("data", (first: Buffer) => {
        equal(looksLikeHttp2(first), "yes");
        socket.pause();
        const handler = {
          onRequest: (stream: Stream) => {
            stream.sendHeaders([[":status", "204"]], true);
            return { onData() {}, onReset() {} };
          },
        };
        adopted.push(new H2Socket(socket, { role: "server", clock: realClock, handler, firstBytes: first }));
      });
    });
    server.listen(0, host);
    await once(server, "listening");
    const client = await connectH2({ host, port: (server.address() as AddressInfo).port, clock: realClock });
    equal((await weAsk(client, post("/"), Buffer.alloc(0))).headers.status, 204);
    await client.drain();
    server.close();
    await Promise.all(adopted.map(({ closed }) => closed));
  });

  test("a reader that stops also stops the writer: buffers stay bounded, and nothing is lost", async () => {
    let unsentMax = 0;
    let sent = 0;
    const total = 32 * 1024 * 1024;
    const chunk = Buffer.alloc(64 * 1024, "x");
    const server = await echoServer(realClock, {
      onRequest(stream) {
        stream.sendHeaders([[":status", "200"]]);
        const go = (): void => {
          for (let room = true; room && sent < total;) {
            sent += chunk.length;
            room = stream.write(chunk, { end: sent === total });
            unsentMax = Math.max(unsentMax, stream.unsentBytes);
          }
        };
        setImmediate(go);
        return { onData() {}, onReset() {}, onWritable: go };
      },
    });
    const client = await connectH2({ host, port: server.port, clock: realClock });
    let got = 0;
    let held = 0;
    let ended = false;
    let reading = false;
    const stream = client.request(
      post("/"),
      {
        onData(one, bytes, end) {
          got += bytes.length;
          ended ||= end;
          if (reading) one.consume(bytes.length);
          else held += bytes.length;
        },
        onReset() {},
      },
      true,
    );
    await until("the window is full", () => held >= 256 * 1024);
    ok(sent < 4 * 1024 * 1024, `${sent} bytes were written for a reader that does not read`);
    reading = true;
    stream.consume(held);
    await until("all is there", () => ended);
    equal(got, total);
    ok(unsentMax <= 256 * 1024 + chunk.length);
    client.close();
    await server.close();
  });

  test("a port without a listener is a fault", async () => {
    await rejects(connectH2({ host, port: 1, clock: realClock }), (error) => isFault(error, "unavailable"));
  });

  test("a peer that speaks another protocol gets an error, and is disconnected", async () => {
    const server = await echoServer(realClock);
    const socket = connectSocket(server.port, host);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(socket, "end");
    equal(Buffer.concat(chunks).at(-1) !== undefined, true);
    socket.destroy();
    await server.close();
  });
});

describe("independent tools against our server", bounded, () => {
  let server: EchoServer;
  before(async () => {
    server = await echoServer(realClock);
  });
  after(async () => await server.close());

  test("curl", { skip: notInstalled("curl") }, async () => {
    const url = `http://${host}:${server.port}/echo`;
    const said = await runProgram(
      "curl",
      "-sS",
      "--http2-prior-knowledge",
      "-d",
      "hello",
      "-w",
      "%{http_code} %{http_version}",
      url,
    );
    equal(said, "hello200 2");
  });

  test("curl over TLS", { skip: notInstalled("curl") || needsOpenssl }, async () => {
    const secure = await echoServer(realClock, { tls: { ...certificate } });
    const said = await runProgram(
      "curl",
      "-sSk",
      "-d",
      "hello",
      "-w",
      "%{http_version}",
      `https://${host}:${secure.port}/echo`,
    );
    equal(said, "hello2");
    await secure.close();
  });

  test("passes all of h2spec in strict mode", { skip: notInstalled("h2spec") }, async () => {
    // It expects an answer with content, sent when the request is complete.
    const answering = await echoServer(realClock, {
      onRequest(stream, _headers, ended) {
        const answer = (): void => stream.sendUnary([[":status", "200"]], Buffer.alloc(200), [["x", "1"]]);
        if (ended) answer();
        return { onData: (_stream, _bytes, last) => last && answer(), onTrailers: answer, onReset() {} };
      },
    });
    const said = await runProgram("h2spec", "--strict", "-h", host, "-p", String(answering.port));
    match(said, /(\d+) tests, \1 passed, 0 skipped, 0 failed/, said.slice(-3_000));
    await answering.close();
  });

  test("nghttp", { skip: notInstalled("nghttp") }, async () => {
    const said = await runProgram("nghttp", "-v", `http://${host}:${server.port}/echo`);
    match(said, /:status: 200/);
    match(said, /x-ended: well/);
  });

  test("h2load: 20,000 requests, 4 connections of 64 streams", { skip: notInstalled("h2load") }, async () => {
    const said = await runProgram(
      "h2load",
      "-n20000",
      "-c4",
      "-m64",
      "-d",
      import.meta.filename,
      `http://${host}:${server.port}/echo`,
    );
    match(said, /20000 succeeded, 0 failed, 0 errored/);
    deepEqual(/status codes: (\d+) 2xx/.exec(said)?.[1], "20000");
  });
});
