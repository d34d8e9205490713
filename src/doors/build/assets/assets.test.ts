import { deepEqual, equal, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { digestOf } from "#blobs/hashing.ts";
import { grpcCode, isGrpcError, type GrpcCode } from "#grpc/status.ts";
import { Fetch, type Qualifier } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import { realClock } from "#testing/real-clock.ts";
import type { AssetSettings } from "./asset-download.ts";
import { readQualifiers } from "./asset-qualifiers.ts";
import { wireOf } from "#doors/build/digests.ts";
import { openDoor, type Door } from "#doors/build/testing/build.ts";

const content = Buffer.from("an asset of the outside world\n");
const is = (code: GrpcCode) => (error: unknown) => isGrpcError(error, code);
const sri = (bytes: Uint8Array, fn = "sha256"): Qualifier => ({
  name: "checksum.sri",
  value: `${fn}-${createHash(fn).update(bytes).digest("base64")}`,
});

type World = { readonly url: string; readonly asked: readonly IncomingMessage[] } & AsyncDisposable;

async function world(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<World> {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    answer(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((closed) => server.close(() => closed()));
    },
  };
}

const fetching = async (
  door: Door,
  uris: readonly string[],
  qualifiers: readonly Qualifier[] = [],
  more: object = {},
) =>
  await door
    .as("writer@mill")
    .unary(Fetch.methods.fetchBlob, { instanceName: "", uris, qualifiers, digestFunction: 0, ...more });

const allowing = (...allow: readonly string[]) => ({ assets: { allow } satisfies Partial<AssetSettings> });

test("an allowed address is fetched once, with the headers meant for it", async () => {
  await using files = await world((_, response) => response.end(content));
  await using door = await openDoor(realClock, allowing(`${files.url}/ok/`));
  const uris = ["http://127.0.0.1:1/never", `${files.url}/ok/file`];
  const qualifiers = [
    sri(content),
    { name: "http_header:X-All", value: "all" },
    { name: "http_header_url:1:X-One", value: "one" },
    { name: "http_header_url:0:X-Other", value: "other" },
  ];
  for (let i = 0; i < 3; i += 1) {
    const found = await fetching(door, uris, qualifiers);
    deepEqual([found.status?.code, found.uri, found.blobDigest], [0, uris[1], wireOf(digestOf(content))]);
  }
  equal(files.asked.length, 1);
  const { headers } = files.asked[0] as IncomingMessage;
  deepEqual([headers["x-all"], headers["x-one"], headers["x-other"]], ["all", "one", undefined]);
});

test("nothing is fetched from addresses that are not allowed, also not by a redirect", async () => {
  await using secret = await world((_, response) => response.end("a secret"));
  await using files = await world((_, response) => response.writeHead(302, { location: `${secret.url}/x` }).end());
  await using door = await openDoor(realClock, allowing(`${files.url}/`));
  await rejects(fetching(door, [`${secret.url}/x`]), is(grpcCode.notFound));
  await rejects(fetching(door, [`${files.url}.evil.example/`]), is(grpcCode.notFound));
  await rejects(fetching(door, ["file:///etc/passwd"]), is(grpcCode.notFound));
  const led = await fetching(door, [`${files.url}/a`], [{ name: "http_header:Authorization", value: "Bearer x" }]);
  equal(led.status?.code, grpcCode.permissionDenied);
  deepEqual(secret.asked, []);
});

test("headers are not sent to the host of a redirect", async () => {
  await using other = await world((_, response) => response.end(content));
  await using files = await world((_, response) => response.writeHead(302, { location: `${other.url}/x` }).end());
  await using door = await openDoor(realClock, allowing(`${files.url}/`, `${other.url}/`));
  const found = await fetching(door, [`${files.url}/a`], [{ name: "http_header:Authorization", value: "Bearer x" }]);
  deepEqual(found.blobDigest, wireOf(digestOf(content)));
  equal(files.asked[0]?.headers.authorization, "Bearer x");
  equal(other.asked[0]?.headers.authorization, undefined);
});

test("failures of the upstream server are reported inside the answer", async () => {
  const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
    "/gone": (response) => response.writeHead(404).end(),
    "/mine": (response) => response.writeHead(403).end(),
    "/busy": (response) => response.writeHead(503).end(),
    "/other": (response) => response.end("other bytes"),
    "/broken": (response) => response.writeHead(200, { "content-length": "100" }).end("cut", () => response.destroy()),
    "/round": (response) => response.writeHead(302, { location: "/round" }).end(),
    "/long": (response) => response.end(Buffer.alloc(2_000)),
    "/slow": () => {},
  };
  await using files = await world((request, response) => answers[request.url ?? ""]?.(response));
  await using door = await openDoor(realClock, { assets: { allow: [`${files.url}/`], bytesMax: 1_000 } });
  const told = async (path: string, more: object = {}) =>
    (await fetching(door, [`${files.url}${path}`], [sri(content)], more)).status?.code;
  deepEqual(
    {
      gone: await told("/gone"),
      mine: await told("/mine"),
      busy: await told("/busy"),
      other: await told("/other"),
      broken: await told("/broken"),
      round: await told("/round"),
      long: await told("/long"),
      slow: await told("/slow", { timeout: { seconds: 0, nanos: 50_000_000 } }),
    },
    {
      gone: grpcCode.notFound,
      mine: grpcCode.permissionDenied,
      busy: grpcCode.unavailable,
      other: grpcCode.aborted,
      broken: grpcCode.unavailable,
      round: grpcCode.aborted,
      long: grpcCode.aborted,
      slow: grpcCode.deadlineExceeded,
    },
  );
});

test("nothing is fetched for a caller that may not write", async () => {
  await using files = await world((_, response) => response.end(content));
  await using door = await openDoor(realClock, allowing(`${files.url}/`));
  const request = { instanceName: "", uris: [`${files.url}/a`], qualifiers: [], digestFunction: 0 };
  await rejects(door.as("reader@mill").unary(Fetch.methods.fetchBlob, request), is(grpcCode.permissionDenied));
  equal(files.asked.length, 0);
});

test("of several checksums the strongest counts", () => {
  const both = `${sri(content, "sha1").value} ${sri(content, "sha512").value}`;
  const [checksum] = readQualifiers([{ name: "checksum.sri", value: both }]).checksums;
  deepEqual(checksum, { fn: "sha512", hash: createHash("sha512").update(content).digest("hex") });
});
