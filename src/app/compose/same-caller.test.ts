/** One credential gives handlers one `Caller` value, whether it comes over gRPC, HTTP/2 or HTTP/1.1. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { request as plainRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import type { Caller } from "#access/caller.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { Identity } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { testAuthority } from "#edge/testing/certificate.ts";
import { testIssuer } from "#edge/testing/jwt.ts";
import { Tls } from "#edge/tls/tls-config.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { Capabilities, ServerCapabilities } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { identifyBy } from "./identify.ts";

const token = "a-token-that-is-long-enough-to-be-taken-0123456789";
const owner = "the-token-of-the-data-folder-0123456789-0123456789";
const authority = testAuthority();
const worker = authority.issue({ uri: ["spiffe://acme/worker/7"] });
const basic = `Basic ${Buffer.from(`anyone:${token}`).toString("base64")}`;

/** How one request is sent: encrypted or not, and with which credentials. */
type Sent = { readonly isTls: boolean; readonly authorization?: string; readonly certificate?: typeof worker };

let folder: string;
let edges: readonly Edge[] = [];
let jwt: string;
let heard: (Caller | undefined)[] = [];

const portOf = ({ isTls }: Sent): number => edges[isTls ? 1 : 0]?.ports[0] ?? 0;
const trustOf = ({ certificate }: Sent) => ({ ca: authority.cert, cert: certificate?.cert, key: certificate?.key });
const headersOf = ({ authorization }: Sent) => ({ ...(authorization !== undefined && { authorization }) });

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-caller-"));
  const served = authority.issue({ cn: "node", ip: ["127.0.0.1"] });
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const tls = Tls.parse({
    certificate: await file("cert.pem", served.cert),
    key: await file("key.pem", served.key),
    clientCa: await file("ca.pem", authority.cert),
  });
  const issuer = await testIssuer();
  const nowS = Math.floor(Date.now() / 1_000);
  jwt = await issuer.sign({ iat: nowS, exp: nowS + 600 });
  const parsed = Identity.parse({
    anonymous: { tenant: "a", roles: ["viewer"] },
    tokens: [{ name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256(token) }],
    certificates: [{ match: "URI:spiffe://acme/worker/*", tenant: "*", roles: ["executor"] }],
  });
  const identity = { ...parsed, issuers: [issuer.config()] };
  const start = (encrypted: Tls | undefined): Promise<Edge> =>
    startEdge({
      clock,
      listen: [{ host: "127.0.0.1", port: 0 }],
      identity,
      owner: { sha256: tokenSha256(owner) },
      tls: encrypted,
      services(server) {
        server.add(Capabilities, {
          getCapabilities: (_request, { caller }) => {
            heard.push(caller);
            return decode(ServerCapabilities, new Uint8Array(0));
          },
        });
        return new Map([[Capabilities.methods.getCapabilities.path, "service.describe"]]);
      },
      http: (admission) => ({
        serve: (requested, peer) => {
          if (new URL(requested.url).pathname !== "/who") return undefined;
          return identifyBy(
            admission,
            peer,
          )(requested).then((known) => {
            heard.push(known.ok ? known.caller : undefined);
            return new Response("");
          });
        },
      }),
      notReady: () => [],
      log: new Log(() => {}, clock),
      h2: { drainMs: 200 },
    });
  edges = await Promise.all([start(undefined), start(tls)]);
});
after(async () => {
  await Promise.all(edges.map((edge) => edge.close()));
  await rm(folder, { recursive: true, force: true });
});

async function overGrpc(sent: Sent): Promise<void> {
  const { authorization, isTls } = sent;
  const client = new GrpcClient({
    clock,
    authority: "127.0.0.1",
    connect: () => connectH2({ host: "127.0.0.1", port: portOf(sent), clock, ...(isTls && { tls: trustOf(sent) }) }),
    metadata: authorization === undefined ? [] : [["authorization", authorization]],
  });
  await client.unary(Capabilities.methods.getCapabilities, { instanceName: "" });
  client.close();
}

async function overHttp2(sent: Sent): Promise<void> {
  const session = connectHttp2(`${sent.isTls ? "https" : "http"}://127.0.0.1:${portOf(sent)}`, trustOf(sent));
  await buffer(session.request({ ":path": "/who", ...headersOf(sent) }));
  session.close();
}

async function overHttp1(sent: Sent): Promise<void> {
  const to = { host: "127.0.0.1", port: portOf(sent), path: "/who", headers: headersOf(sent), agent: false };
  const answer = Promise.withResolvers<void>();
  const ask = sent.isTls ? request({ ...to, ...trustOf(sent) }) : plainRequest(to);
  ask.on("response", (response) => void buffer(response).then(() => answer.resolve()));
  ask.on("error", answer.reject).end();
  await answer.promise;
}

const protocols = { gRPC: overGrpc, "HTTP/2": overHttp2, "HTTP/1.1": overHttp1 };

describe("the caller is the same value over gRPC, HTTP/2 and HTTP/1.1", () => {
  const cases: readonly (readonly [string, Omit<Sent, "isTls">, isTls: readonly boolean[], by: string])[] = [
    ["a token", { authorization: `Bearer ${token}` }, [false, true], "ci"],
    ["the data folder's token, on this machine", { authorization: `Bearer ${owner}` }, [false, true], "owner"],
    ["a client certificate", { certificate: worker }, [true], "spiffe://acme/worker/7"],
    ["no credential, on this machine", {}, [false, true], "anonymous"],
    ["a token beside a certificate", { certificate: worker, authorization: `Bearer ${token}` }, [true], "ci"],
  ];
  const check = async (sent: Sent, name: string): Promise<void> => {
    heard = [];
    for (const send of Object.values(protocols)) await send(sent);
    const [first, ...others] = heard;
    ok(first, "gRPC was admitted");
    equal(first.principal.name, name);
    deepEqual([first.address, first.isTls], ["127.0.0.1", sent.isTls]);
    equal(others.length, 2);
    for (const other of others) deepEqual(other, first);
  };
  for (const [what, credentials, encrypted, name] of cases)
    for (const isTls of encrypted)
      test(`${what}, ${isTls ? "over TLS" : "without TLS"}`, () => check({ ...credentials, isTls }, name));

  test("a JSON web token, and when it ends", async () => {
    await check({ isTls: false, authorization: `Bearer ${jwt}` }, "ada");
    ok((heard[0]?.untilMs ?? Infinity) < Date.now() + 700_000, "with the clocks' skew");
  });

  test("a token sent as a password, which only HTTP takes, is the token", async () => {
    heard = [];
    await overGrpc({ isTls: false, authorization: `Bearer ${token}` });
    for (const send of [overHttp1, overHttp2]) await send({ isTls: false, authorization: basic });
    deepEqual(heard.slice(1), [heard[0], heard[0]]);
  });
});
