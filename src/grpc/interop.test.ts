/** Our server and our client with each other, and each with an independent implementation. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { realClock as systemClock } from "#testing/real-clock.ts";
import { connectH2 } from "#h2/client.ts";
import { listenH2, type H2Server } from "#h2/server.ts";
import { decode, encode, type Message, type Method, type Service } from "#wire/message.ts";
import { BytesValue, StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { ErrorInfo } from "#wire/generated/google/rpc/error_details.ts";
import { GrpcClient } from "./client.ts";
import { GrpcServer, type EndedCall } from "./server.ts";
import { detail, detailsOf, grpcCode, GrpcError } from "./status.ts";

/** A service with one method of each kind, and some that fail. */
const Echo = {
  typeName: "millrace.test.Echo",
  methods: {
    say: method("Say", "none"),
    sayLater: method("SayLater", "none"),
    count: method("Count", "server"),
    gather: method("Gather", "client"),
    talk: method("Talk", "both"),
    fail: method("Fail", "none"),
    break: method("Break", "none"),
    hang: method("Hang", "none"),
    bytes: { ...method("Bytes", "server"), response: BytesValue },
  },
} as const satisfies Service;

function method<S extends Method<unknown, unknown>["streams"]>(name: string, streams: S) {
  return { name, path: `/millrace.test.Echo/${name}`, request: StringValue, response: StringValue, streams } as const;
}

const text = (value: string): StringValue => ({ value });
const bulkBytes = 3 * 1024 * 1024;

type Seen = { hung: number; left: number; ended: { path: string; code: number }[] };

async function serve(seen: Seen, port = 0): Promise<H2Server> {
  const server = new GrpcServer<string>({
    clock: systemClock,
    admit: (_path, headers) => {
      const who = headers.get("authorization") ?? "anonymous";
      if (who === "nobody") throw new GrpcError(grpcCode.unauthenticated, "say who you are");
      return who === "slow" ? new Promise((known) => setImmediate(() => known("slowly"))) : who;
    },
    ended: ({ path, code }: EndedCall) => void seen.ended.push({ path, code }),
  }).add(Echo, {
    say: ({ value }, call) => text(`${call.caller}: ${value}`),
    sayLater: async ({ value }, call) => {
      call.sendMetadata([["x-said", value]]);
      call.sendTrailers([["x-done-bin", Buffer.from([0, 1, 255])]]);
      return text(`${call.caller} later: ${value}`);
    },
    async *count({ value }, call) {
      for (let i = 0; i < Number(value); i += 1) {
        if (call.signal.aborted) return void (seen.left += 1);
        yield text(`${i}`);
        if (i % 100 === 99) await new Promise((next) => setImmediate(next));
      }
    },
    async gather(requests) {
      const got: string[] = [];
      for await (const { value } of requests) got.push(value);
      return text(got.join("+"));
    },
    async *talk(requests) {
      for await (const { value } of requests) yield text(value.toUpperCase());
    },
    fail: ({ value }) => {
      const info = { reason: "BECAUSE", domain: "millrace", metadata: new Map([["what", value]]) };
      throw new GrpcError(grpcCode.failedPrecondition, `nicht möglich: ${value}`, [detail(ErrorInfo, info)]);
    },
    break: () => {
      throw new Error("a secret in our own code");
    },
    hang: (_request, call) => {
      seen.hung += 1;
      return new Promise((_done, gone) => {
        call.signal.addEventListener("abort", () => {
          seen.left += 1;
          gone(call.signal.reason as Error);
        });
      });
    },
    async *bytes({ value }) {
      for (let i = 0; i < Number(value); i += 1) yield { value: Buffer.alloc(64 * 1024, i) };
    },
  });
  return await listenH2({
    host: "127.0.0.1",
    port,
    clock: systemClock,
    onRequest: (stream, headers, ended) => server.open(stream, headers, ended),
  });
}

async function* several(...values: readonly string[]): AsyncGenerator<StringValue> {
  for (const value of values) yield text(value);
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = [];
  for await (const one of stream) got.push(one);
  return got;
}

async function until(done: () => boolean): Promise<void> {
  for (let turns = 0; !done() && turns < 10_000; turns += 1) await new Promise((next) => setImmediate(next));
  ok(done(), "it came to pass");
}

describe("our client and our server", () => {
  const seen: Seen = { hung: 0, left: 0, ended: [] };
  let server: H2Server;
  let client: GrpcClient;

  before(async () => {
    server = await serve(seen);
    client = clientOf(server.port);
  });
  after(async () => {
    client.close();
    await server.close();
  });

  test("one message each way, answered at once or later", async () => {
    equal((await client.unary(Echo.methods.say, text("hello"))).value, "anonymous: hello");
    equal((await client.unary(Echo.methods.sayLater, text("hello"))).value, "anonymous later: hello");
    const options = { metadata: [["authorization", "slow"]] as const, deadlineMs: 5_000 };
    equal((await client.unary(Echo.methods.say, text(""), options)).value, "slowly: ");
  });

  test("a thousand at once", async () => {
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) =>
        client.unary(i % 2 ? Echo.methods.say : Echo.methods.sayLater, text(`${i}`)),
      ),
    );
    deepEqual(
      answers.map(({ value }) => Number(value.split(": ")[1])),
      Array.from({ length: 1_000 }, (_, i) => i),
    );
  });

  test("streams from the server, from the client, and both ways", async () => {
    const counted = await all(client.serverStream(Echo.methods.count, text("1000")));
    deepEqual([counted.length, counted.at(-1)?.value], [1_000, "999"]);
    equal((await client.clientStream(Echo.methods.gather, several("a", "b", "c"))).value, "a+b+c");
    deepEqual(await all(client.duplex(Echo.methods.talk, several("x", "y"))), [text("X"), text("Y")]);
    deepEqual(await all(client.serverStream(Echo.methods.count, text("0"))), []);
  });

  test("many bytes, slowly read", async () => {
    let bytes = 0;
    for await (const { value } of client.serverStream(Echo.methods.bytes, text(`${bulkBytes / 65_536}`))) {
      bytes += value.length;
      if (bytes % (16 * 65_536) === 0) await new Promise((next) => setImmediate(next));
    }
    equal(bytes, bulkBytes);
  });

  test("a refusal arrives with its code, message and details", async () => {
    const error = await client.unary(Echo.methods.fail, text("x")).catch((thrown: unknown) => thrown);
    ok(error instanceof GrpcError);
    equal(error.code, grpcCode.failedPrecondition);
    equal(error.message, "nicht möglich: x");
    equal(detailsOf(error, ErrorInfo)[0]?.metadata.get("what"), "x");
  });

  test("internal errors are not revealed", async () => {
    await rejects(client.unary(Echo.methods.break, text("")), (error: GrpcError) => {
      equal(error.code, grpcCode.internal);
      return !error.message.includes("secret");
    });
  });

  test("a caller without permission gets a refusal, and so does an unknown method", async () => {
    const options = { metadata: [["authorization", "nobody"]] as const };
    await rejects(client.unary(Echo.methods.say, text(""), options), { code: grpcCode.unauthenticated });
    const unknown = { ...Echo.methods.say, path: "/millrace.test.Echo/Nothing" };
    await rejects(client.unary(unknown, text("")), { code: grpcCode.unimplemented });
  });

  test("a deadline ends the call on both sides", async () => {
    const { left } = seen;
    await rejects(client.unary(Echo.methods.hang, text(""), { deadlineMs: 30 }), { code: grpcCode.deadlineExceeded });
    await until(() => seen.left > left);
  });

  test("the server notices a client that disconnects", async () => {
    const { left, hung } = seen;
    const leaving = new AbortController();
    const asked = client.unary(Echo.methods.hang, text(""), { signal: leaving.signal });
    await until(() => seen.hung > hung);
    leaving.abort();
    await rejects(asked, { code: grpcCode.cancelled });
    await until(() => seen.left > left);
    for await (const { value } of client.serverStream(Echo.methods.count, text("1000000"))) if (value === "10") break;
    await until(() => seen.left > left + 1);
  });

  test("a message that is too large is refused by its length", async () => {
    const large = text("x".repeat(5 * 1024 * 1024));
    await rejects(client.unary(Echo.methods.say, large), { code: grpcCode.resourceExhausted });
    equal((await client.unary(Echo.methods.say, text("still here"))).value, "anonymous: still here");
  });

  test("a restarted server is found again", async () => {
    const first = await serve({ hung: 0, left: 0, ended: [] });
    const again = clientOf(first.port);
    equal((await again.unary(Echo.methods.say, text("1"))).value, "anonymous: 1");
    await first.close();
    await rejects(again.unary(Echo.methods.say, text("2")), { code: grpcCode.unavailable });
    const second = await serve({ hung: 0, left: 0, ended: [] }, first.port);
    equal((await again.unary(Echo.methods.say, text("3"))).value, "anonymous: 3");
    again.close();
    await second.close();
  });
});

const clientOf = (port: number): GrpcClient =>
  new GrpcClient({
    clock: systemClock,
    authority: `127.0.0.1:${port}`,
    connect: () => connectH2({ host: "127.0.0.1", port, clock: systemClock }),
  });

/** Our service as a grpc-js definition. */
const definition = Object.fromEntries(
  Object.entries(Echo.methods).map(([name, { path, request, response, streams }]) => [
    name,
    {
      path,
      requestStream: streams === "client" || streams === "both",
      responseStream: streams === "server" || streams === "both",
      requestSerialize: (message: unknown) => encode(request as Message<unknown>, message),
      requestDeserialize: (bytes: Buffer) => decode(request as Message<unknown>, bytes),
      responseSerialize: (message: unknown) => encode(response as Message<unknown>, message),
      responseDeserialize: (bytes: Buffer) => decode(response as Message<unknown>, bytes),
    },
  ]),
) as unknown as grpc.ServiceDefinition;

type JsClient = grpc.Client & Record<string, (...args: unknown[]) => grpc.ClientDuplexStream<StringValue, StringValue>>;

describe("grpc-js calls our server", () => {
  const seen: Seen = { hung: 0, left: 0, ended: [] };
  let server: H2Server;
  let client: JsClient;

  before(async () => {
    server = await serve(seen);
    const Client = grpc.makeGenericClientConstructor(definition, "Echo");
    client = new Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure()) as unknown as JsClient;
  });
  after(async () => {
    client.close();
    await server.close();
  });

  const unary = (name: string, message: StringValue, ...more: unknown[]): Promise<StringValue> =>
    new Promise((resolve, reject) =>
      client[name]?.(message, ...more, (error: Error | null, answer: StringValue) =>
        error ? reject(error) : resolve(answer),
      ),
    );

  test("one message each way", async () => {
    equal((await unary("say", text("hi"))).value, "anonymous: hi");
    const metadata = new grpc.Metadata();
    metadata.set("authorization", "slow");
    equal((await unary("sayLater", text("hi"), metadata, { deadline: Date.now() + 5_000 })).value, "slowly later: hi");
  });

  test("compressed with gzip, both ways", async () => {
    const Client = grpc.makeGenericClientConstructor(definition, "Echo");
    const options = { "grpc.default_compression_algorithm": 2 };
    const packing = new Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure(), options);
    const large = "pack me ".repeat(2_000);
    const answer = await new Promise<StringValue>((resolve, reject) =>
      (packing as unknown as JsClient)["say"]?.(text(large), (error: Error | null, got: StringValue) =>
        error ? reject(error) : resolve(got),
      ),
    );
    equal(answer.value, `anonymous: ${large}`);
    packing.close();
  });

  test("streams of all kinds", async () => {
    const counted = await all(client["count"]?.(text("500")) as unknown as AsyncIterable<StringValue>);
    equal(counted.length, 500);
    const gathered = await new Promise<StringValue>((resolve, reject) => {
      const call = client["gather"]?.((error: Error | null, got: StringValue) =>
        error ? reject(error) : resolve(got),
      );
      call?.write(text("a"));
      call?.write(text("b"));
      call?.end();
    });
    equal(gathered.value, "a+b");
    const talk = client["talk"]?.();
    talk?.write(text("q"));
    talk?.end();
    deepEqual(await all(talk as unknown as AsyncIterable<StringValue>), [text("Q")]);
    let bytes = 0;
    const chunks = await all(client["bytes"]?.(text("32")) as unknown as AsyncIterable<BytesValue>);
    for (const { value } of chunks) bytes += value.length;
    equal(bytes, 32 * 65_536);
  });

  test("refusals, deadlines and disconnects", async () => {
    await rejects(unary("fail", text("x")), (error: grpc.ServiceError) => {
      equal(error.code, grpc.status.FAILED_PRECONDITION);
      equal(error.details, "nicht möglich: x");
      return error.metadata.get("grpc-status-details-bin").length === 1;
    });
    await rejects(unary("hang", text(""), new grpc.Metadata(), { deadline: Date.now() + 50 }), {
      code: grpc.status.DEADLINE_EXCEEDED,
    });
    await until(() => seen.left > 0);
  });
});

describe("our client calls grpc-js", () => {
  const server = new grpc.Server();
  let client: GrpcClient;

  before(async () => {
    server.addService(definition, {
      say: (call: grpc.ServerUnaryCall<StringValue, StringValue>, done: grpc.sendUnaryData<StringValue>) =>
        done(null, text(`js: ${call.request.value}`)),
      count: (call: grpc.ServerWritableStream<StringValue, StringValue>) => {
        for (let i = 0; i < Number(call.request.value); i += 1) call.write(text(`${i}`));
        call.end();
      },
      gather: (call: grpc.ServerReadableStream<StringValue, StringValue>, done: grpc.sendUnaryData<StringValue>) => {
        const got: string[] = [];
        call.on("data", ({ value }: StringValue) => got.push(value));
        call.on("end", () => done(null, text(got.join("+"))));
      },
      talk: (call: grpc.ServerDuplexStream<StringValue, StringValue>) => {
        call.on("data", ({ value }: StringValue) => call.write(text(value.toUpperCase())));
        call.on("end", () => call.end());
      },
      fail: (_call: unknown, done: grpc.sendUnaryData<StringValue>) =>
        done({ code: grpc.status.NOT_FOUND, details: "nicht da: 100 %" }),
      hang: () => {},
    });
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    client = clientOf(port);
  });
  after(() => {
    client.close();
    server.forceShutdown();
  });

  test("all kinds of calls, refusals and deadlines", async () => {
    equal((await client.unary(Echo.methods.say, text("x"))).value, "js: x");
    equal((await all(client.serverStream(Echo.methods.count, text("300")))).length, 300);
    equal((await client.clientStream(Echo.methods.gather, several("1", "2"))).value, "1+2");
    deepEqual(await all(client.duplex(Echo.methods.talk, several("a"))), [text("A")]);
    await rejects(client.unary(Echo.methods.fail, text("")), { code: grpcCode.notFound, message: "nicht da: 100 %" });
    await rejects(client.unary(Echo.methods.hang, text(""), { deadlineMs: 50 }), { code: grpcCode.deadlineExceeded });
    await rejects(client.unary({ ...Echo.methods.say, path: "/no.Such/Thing" }, text("")), {
      code: grpcCode.unimplemented,
    });
  });
});
