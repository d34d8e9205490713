/** One port for several protocols. */
import { equal, match, ok, rejects } from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { GrpcClient } from "#grpc/client.ts";
import { grpcCode } from "#grpc/status.ts";
import { connectH2 } from "#h2/client.ts";
import { notInstalled, runProgram } from "#h2/testing/peer.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { decode, encode } from "#wire/message.ts";
import { Health, HealthCheckRequest, HealthCheckResponse } from "#wire/generated/grpc/health/v1/health.ts";
import { ServerReflection } from "#wire/generated/grpc/reflection/v1/reflection.ts";
import { tokenSha256 } from "./identity/bearer.ts";
import { startEdge, type Edge } from "./edge.ts";
import { Identity } from "./identity/identity-config.ts";
import { Log } from "./log/log.ts";
import { testAuthority } from "./testing/certificate.ts";
import { Tls } from "./tls/tls-config.ts";

const quiet = new Log(() => {}, clock);

const edgeWith = (identity: unknown, notReady: () => readonly string[] = () => [], tls?: Tls): Promise<Edge> =>
  startEdge({
    tls,
    clock,
    listen: [{ host: "127.0.0.1", port: 0 }],
    identity: Identity.parse(identity),
    services: () => new Map(),
    notReady,
    log: quiet,
    h2: { drainMs: 500 },
  });

const clientOf = (port: number, token?: string): GrpcClient =>
  new GrpcClient({
    clock,
    authority: `127.0.0.1:${port}`,
    connect: () => connectH2({ host: "127.0.0.1", port, clock }),
    ...(token === undefined ? {} : { metadata: [["authorization", `Bearer ${token}`]] as const }),
  });

function over2(port: number, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    session.on("error", reject);
    const stream = session.request({ ":path": path });
    let status = 0;
    let body = "";
    stream.on("response", (headers) => (status = Number(headers[":status"])));
    stream.on("data", (part: Buffer) => (body += part.toString()));
    stream.on("end", () => {
      session.close();
      resolve({ status, body });
    });
  });
}

describe("one port", () => {
  let edge: Edge;
  let port: number;
  let notReady: readonly string[] = [];

  before(async () => {
    edge = await edgeWith({ anonymous: { tenant: "a", roles: ["viewer"] } }, () => notReady);
    port = edge.ports[0] ?? 0;
  });
  after(() => edge.close());

  test("speaks HTTP/1.1", async () => {
    const live = await fetch(`http://127.0.0.1:${port}/livez`);
    equal(await live.text(), "alive\n");
    const missing = await fetch(`http://127.0.0.1:${port}/nothing`);
    equal(missing.status, 404);
    equal(missing.headers.get("content-type"), "application/problem+json");
    await missing.text();
  });

  test("closes connections that are neither HTTP/1.1 nor HTTP/2, and answers bad HTTP/1.1 with an error", async () => {
    const said = (bytes: string): Promise<string> =>
      new Promise((resolve) => {
        let heard = "";
        const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
        socket.on("data", (part) => (heard += part.toString("latin1")));
        socket.on("error", () => {});
        socket.on("close", () => resolve(heard.split("\r\n")[0] ?? ""));
      });
    equal(await said("INVALID CONNECTION PREFACE\r\n\r\n"), "");
    equal(await said("\u0000\u0001nonsense\r\n\r\n"), "");
    equal(await said("PRI * HTTP/2.1\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    equal(await said("BREW /pot HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    equal(await said("\r\nGET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"), "HTTP/1.1 200 OK");
  });

  test(
    "passes all of h2spec in strict mode while it serves everything else",
    { skip: notInstalled("h2spec") },
    async () => {
      const said = await runProgram("h2spec", "--strict", "-h", "127.0.0.1", "-p", String(port));
      match(said, /(\d+) tests, \1 passed, 0 skipped, 0 failed/, said.slice(-3_000));
    },
  );

  test("speaks HTTP/2 with the same routes", async () => {
    equal((await over2(port, "/livez")).body, "alive\n");
    equal((await over2(port, "/nothing")).status, 404);
  });

  test("speaks gRPC: health", async () => {
    const client = clientOf(port);
    equal((await client.unary(Health.methods.check, { service: "" })).status, 1);
    notReady = ["disk: 1MiB free, needs 64MiB"];
    equal((await client.unary(Health.methods.check, { service: "grpc.health.v1.Health" })).status, 2);
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
    equal(`${ready.status} ${await ready.text()}`, "503 not ready\ndisk: 1MiB free, needs 64MiB\n");
    equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200, "a node that is not ready is alive");
    notReady = [];
    await rejects(client.unary(Health.methods.check, { service: "no.such" }), { code: grpcCode.notFound });
    for await (const { status } of client.serverStream(Health.methods.watch, { service: "" })) {
      equal(status, 1);
      break;
    }
    client.close();
  });

  test("speaks gRPC: reflection", async () => {
    const client = clientOf(port);
    async function* asked() {
      yield { host: "", messageRequest: { kind: "listServices", value: "" } } as const;
      yield { host: "", messageRequest: { kind: "fileContainingSymbol", value: "grpc.health.v1.Health" } } as const;
      yield { host: "", messageRequest: { kind: "fileByFilename", value: "nothing.proto" } } as const;
    }
    const kinds: (string | undefined)[] = [];
    for await (const { messageResponse } of client.duplex(ServerReflection.methods.serverReflectionInfo, asked())) {
      kinds.push(messageResponse?.kind);
      if (messageResponse?.kind === "listServicesResponse")
        ok(messageResponse.value.service.some(({ name }) => name === "grpc.health.v1.Health"));
      if (messageResponse?.kind === "fileDescriptorResponse") ok(messageResponse.value.fileDescriptorProto.length > 0);
    }
    equal(kinds.join(), "listServicesResponse,fileDescriptorResponse,errorResponse");
    client.close();
  });

  test("counts what it does", async () => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    equal(response.status, 200);
    const text = await response.text();
    match(text, /millrace_edge_calls_total\{method="\/grpc\.health\.v1\.Health\/Check",code="ok"\} \d/);
    match(text, /millrace_edge_connections_total\{protocol="h2"\} [1-9]/);
    match(text, /millrace_edge_connections_total\{protocol="http\/1\.1"\} [1-9]/);
  });

  test("answers grpc-js", async () => {
    const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
    const { status } = await new Promise<HealthCheckResponse>((resolve, reject) =>
      client.makeUnaryRequest(
        Health.methods.check.path,
        (message: HealthCheckRequest) => encode(HealthCheckRequest, message),
        (bytes: Buffer) => decode(HealthCheckResponse, bytes),
        { service: "" },
        (error, answer) => (error ? reject(error) : resolve(answer as HealthCheckResponse)),
      ),
    );
    equal(status, 1);
    client.close();
  });
});

test("an unknown caller sees only what is public", async () => {
  const secret = "a-token-that-is-long-enough-to-be-taken-0123456789";
  const edge = await edgeWith({
    tokens: [{ name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(secret) }],
  });
  const port = edge.ports[0] ?? 0;
  equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200);
  const refused = await fetch(`http://127.0.0.1:${port}/metrics`);
  equal(refused.status, 401);
  match(refused.headers.get("www-authenticate") ?? "", /^Bearer/);
  const allowed = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { authorization: `Bearer ${secret}` } });
  equal(allowed.status, 200);
  const stranger = clientOf(port);
  equal((await stranger.unary(Health.methods.check, { service: "" })).status, 1);
  const known = clientOf(port, secret);
  async function* ask() {
    yield { host: "", messageRequest: { kind: "listServices", value: "" } } as const;
  }
  await rejects(
    async () => {
      for await (const _answer of stranger.duplex(ServerReflection.methods.serverReflectionInfo, ask()));
    },
    { code: grpcCode.unauthenticated },
  );
  let answers = 0;
  for await (const _answer of known.duplex(ServerReflection.methods.serverReflectionInfo, ask())) answers += 1;
  equal(answers, 1);
  stranger.close();
  known.close();
  await edge.close();
});

test("tells when the certificate that it serves expires, also of a new one; 0 without TLS", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-edge-tls-"));
  const paths = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  const authority = testAuthority();
  const issue = async (days: number): Promise<number> => {
    const { cert, key } = authority.issue({
      cn: "node",
      dns: ["localhost"],
      notAfter: new Date(Date.now() + days * 86_400_000),
    });
    await writeFile(paths.key, key);
    await writeFile(paths.certificate, cert);
    return new X509Certificate(cert).validToDate.getTime() / 1_000;
  };
  const expires = (edge: Edge): number =>
    Number(/^millrace_edge_certificate_expires_seconds (\S+)$/m.exec(edge.metrics.text())?.[1]);
  const first = await issue(10);
  const edge = await edgeWith({}, undefined, Tls.parse({ ...paths, reload: "1s" }));
  const plain = await edgeWith({});
  try {
    equal(expires(edge), first);
    equal(expires(plain), 0);
    const second = await issue(20);
    ok(second > first);
    await until("the new certificate is told of", () => expires(edge) === second);
  } finally {
    await Promise.all([edge.close(), plain.close()]);
    await rm(folder, { recursive: true });
  }
});
