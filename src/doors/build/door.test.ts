import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { digestOf } from "#blobs/hashing.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { detailsOf, grpcCode, isGrpcError, type GrpcCode } from "#grpc/status.ts";
import {
  ActionCache,
  ActionResult,
  Capabilities,
  ContentAddressableStorage,
  Directory,
  RequestMetadata,
  Tree,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { decode, encode, type Method } from "#wire/message.ts";
import { rawActionResult, rawUpdateRequest } from "#wire/raw-message.ts";
import { realClock } from "#testing/real-clock.ts";
import { spaceOf } from "./cache/action-cache.ts";
import { wireOf } from "./digests.ts";
import { openDoor, type Door, type DoorOptions } from "./testing/build.ts";
import { TrustRules } from "./cache/trust-rules.ts";

const { findMissingBlobs, batchUpdateBlobs } = ContentAddressableStorage.methods;
const { getActionResult, updateActionResult } = ActionCache.methods;
const rawGet = { ...getActionResult, response: rawActionResult };
const rawUpdate = { ...updateActionResult, request: rawUpdateRequest, response: rawActionResult };

const is = (code: GrpcCode) => (error: unknown) => isGrpcError(error, code);
const fresh = (): Buffer => randomBytes(50);

async function put(client: GrpcClient, bytes: Uint8Array): Promise<string> {
  const digest = digestOf(bytes);
  const requests = [{ digest: wireOf(digest), data: bytes, compressor: 0 }];
  const { responses } = await client.unary(batchUpdateBlobs, { instanceName: "", requests, digestFunction: 0 });
  equal(responses[0]?.status?.code, 0);
  return digest;
}

const none = { exitCode: 0, stdoutRaw: new Uint8Array(), stderrRaw: new Uint8Array() };
const noLinks = { outputSymlinks: [], outputFileSymlinks: [], outputDirectorySymlinks: [] };
const file = (path: string, digest: string) => ({
  path,
  digest: wireOf(digest),
  isExecutable: false,
  contents: new Uint8Array(),
});

/** A result with one of each thing that a result can name. */
async function fullResult(client: GrpcClient) {
  const [output, inTree, stdout] = await Promise.all([fresh(), fresh(), fresh()].map((bytes) => put(client, bytes)));
  const files = [{ name: "f", digest: wireOf(inTree ?? ""), isExecutable: false }];
  const directory: Directory = { files, directories: [], symlinks: [] };
  const root = await put(client, encode(Directory, directory));
  const tree = await put(client, encode(Tree, { root: directory, children: [] }));
  const result: ActionResult = {
    ...none,
    ...noLinks,
    outputFiles: [file("a", output ?? "")],
    outputDirectories: [
      { path: "d", treeDigest: wireOf(tree), rootDirectoryDigest: wireOf(root), isTopologicallySorted: false },
    ],
    stdoutDigest: wireOf(stdout ?? ""),
  };
  return { result, named: { output, inTree, stdout, tree, root } as Readonly<Record<string, string>> };
}

const getting = (action: string, instanceName = "") => ({
  instanceName,
  actionDigest: wireOf(action),
  inlineStdout: false,
  inlineStderr: false,
  inlineOutputFiles: [],
  digestFunction: 0,
});

async function update(client: GrpcClient, action: string, bytes: Uint8Array): Promise<Uint8Array> {
  const request = { instanceName: "", actionDigest: wireOf(action), actionResult: bytes, digestFunction: 0 };
  return await client.unary(rawUpdate, request);
}

async function withDoor(options: DoorOptions, body: (door: Door) => Promise<void>): Promise<void> {
  await using door = await openDoor(realClock, options);
  await body(door);
}

for (const isPrompt of [true, false])
  describe(`results, from a store that ${isPrompt ? "answers synchronously" : "answers asynchronously"}`, () => {
    for (const what of ["output", "inTree", "stdout", "tree", "root"])
      test(`A1: a result is not served while its ${what} is missing, and again when it is back`, () =>
        withDoor({ isPrompt }, async (door) => {
          const client = door.as("writer@mill");
          const { result, named } = await fullResult(client);
          const action = digestOf(fresh());
          await update(client, action, encode(ActionResult, result));
          for (let round = 0; round < 3; round += 1) {
            await client.unary(rawGet, getting(action));
            door.lose(named[what] ?? "");
            await rejects(client.unary(rawGet, getting(action)), is(grpcCode.notFound));
            door.find();
          }
        }));

    test("a result is served as the bytes it came in, including unknown fields", () =>
      withDoor({ isPrompt }, async ({ as }) => {
        const client = as("writer@mill");
        const { result } = await fullResult(client);
        const odd = Buffer.from([0xf8, 0x3e, 0x05]); // field 999, a number
        const bytes = Buffer.concat([encode(ActionResult, result), odd]);
        const action = digestOf(fresh());
        deepEqual(Buffer.from(await update(client, action, bytes)), bytes);
        for (let i = 0; i < 2; i += 1) deepEqual(Buffer.from(await client.unary(rawGet, getting(action))), bytes);
      }));

    test("misses of a target are recorded with their reasons, and so is what was stored for it", () =>
      withDoor({ isPrompt }, async ({ as, seen, index, clock, lose, find }) => {
        const client = as("writer@mill");
        const { result, named } = await fullResult(client);
        const action = digestOf(fresh());
        const ids = { actionId: "", toolInvocationId: "build-1", correlatedInvocationsId: "", configurationId: "" };
        const said = { ...ids, targetId: "//a:b", actionMnemonic: "CppCompile" };
        const name = "build.bazel.remote.execution.v2.requestmetadata-bin";
        const options = { metadata: [[name, encode(RequestMetadata, said)]] as const };
        const reason = async () => {
          await rejects(client.unary(rawGet, getting(action), options), is(grpcCode.notFound));
          return (await seen.missOf("mill", "", action))?.reason;
        };
        deepEqual(await reason(), { kind: "never-stored" });
        const request = { instanceName: "", actionDigest: wireOf(action), digestFunction: 0 };
        await client.unary(rawUpdate, { ...request, actionResult: encode(ActionResult, result) }, options);
        const [stored] = await seen.earlier("mill", "", { target: "//a:b", mnemonic: "CppCompile" });
        equal(stored?.action, action);
        for (const what of ["inTree", "tree"]) {
          lose(named[what] ?? "");
          deepEqual(await reason(), { kind: "incomplete", missing: named[what] });
          find();
        }
        const rule = { kind: "time", untilMs: clock.wallMs(), why: "" } as const;
        await new TrustRules(index).revoke("mill", rule, { principal: "ops", atMs: clock.wallMs() });
        deepEqual(await reason(), { kind: "revoked" });
      }));

    test("a store that is down is reported as such, and nothing is guessed", () =>
      withDoor({ isPrompt }, async (door) => {
        const client = door.as("writer@mill");
        const { result } = await fullResult(client);
        const action = digestOf(fresh());
        await update(client, action, encode(ActionResult, result));
        door.breakDown(true);
        const asked = { instanceName: "", blobDigests: [wireOf(action)], digestFunction: 0 };
        for (const call of [client.unary(rawGet, getting(action)), client.unary(findMissingBlobs, asked)]) {
          const error = await call.then(
            () => undefined,
            (thrown: unknown) => thrown,
          );
          ok(isGrpcError(error, grpcCode.unavailable), String(error));
          equal(detailsOf(error, RetryInfo).length, 1);
        }
      }));

    test("a stored blob that is not a result is a miss, and is reported", () =>
      withDoor({ isPrompt }, async ({ as, index, reported }) => {
        const client = as("writer@mill");
        const garbage = await put(client, Buffer.from([0xff, 0xff, 0xff]));
        const action = digestOf(fresh());
        const key = { tenant: "mill", space: spaceOf("sha256", ""), name: action };
        await index.put(key, { digest: garbage, principal: "x", atMs: 1 });
        await rejects(client.unary(rawGet, getting(action)), is(grpcCode.notFound));
        deepEqual(reported, ["read a stored action result"]);
      }));

    test("A2: results are revoked by writer, by time, and by key; later results count", () =>
      withDoor({ isPrompt }, async ({ as, index, clock }) => {
        const [good, bad] = [as("writer-good@mill"), as("writer-bad@mill")];
        const bytes = encode(ActionResult, {
          ...none,
          ...noLinks,
          exitCode: 0,
          outputFiles: [],
          outputDirectories: [],
        });
        const [one, two, three] = [digestOf(fresh()), digestOf(fresh()), digestOf(fresh())];
        await update(good, one, bytes);
        await update(bad, two, bytes);
        await update(good, three, bytes);
        const serves = async () =>
          await Promise.all(
            [one, two, three].map((action) =>
              good.unary(rawGet, getting(action)).then(
                () => true,
                () => false,
              ),
            ),
          );
        deepEqual(await serves(), [true, true, true]);
        const rules = new TrustRules(index);
        const by = { principal: "ops", atMs: clock.wallMs() };
        const now = { untilMs: clock.wallMs(), why: "a machine was broken into" };
        const first = await rules.revoke("mill", { kind: "principal", principal: "writer-bad", ...now }, by);
        deepEqual(await serves(), [true, false, true]);
        const space = spaceOf("sha256", "");
        await rules.revoke("mill", { kind: "key", space, name: three, ...now }, by);
        deepEqual(await serves(), [true, false, false]);
        equal(await rules.lift("mill", first, by), true);
        deepEqual(await serves(), [true, true, false]);
        await rules.revoke("mill", { kind: "time", ...now }, by);
        deepEqual(await serves(), [false, false, false]);
        await update(bad, two, bytes);
        deepEqual(await serves(), [false, true, false]);
        deepEqual((await rules.list("other")).length, 0);
      }));
  });

describe("permissions", () => {
  test("an entry says who wrote it, and when", () =>
    withDoor({}, async ({ as, index, clock }) => {
      const action = digestOf(fresh());
      const before = clock.wallMs();
      await update(as("writer-7@mill"), action, new Uint8Array());
      const entry = await index.get({ tenant: "mill", space: spaceOf("sha256", ""), name: action });
      equal(entry?.principal, "writer-7");
      ok(entry.atMs > before && entry.atMs < clock.wallMs());
      const { executionMetadata } = decode(ActionResult, await as("reader@mill").unary(rawGet, getting(action)));
      equal(executionMetadata?.worker, "writer-7", "an empty result is not served as no bytes");
    }));

  test("B5: a tenant neither finds nor reads another tenant's blobs, and has separate results", () =>
    withDoor({}, async ({ as }) => {
      const [mill, other] = [as("writer@mill"), as("writer@other")];
      const digest = await put(mill, fresh());
      const asked = { instanceName: "", blobDigests: [wireOf(digest)], digestFunction: 0 };
      equal((await mill.unary(findMissingBlobs, asked)).missingBlobDigests.length, 0);
      equal((await other.unary(findMissingBlobs, asked)).missingBlobDigests.length, 1);
      const read = { resourceName: `blobs/${digest}`, readOffset: 0, readLimit: 0 };
      await rejects(Array.fromAsync(other.serverStream(ByteStream.methods.read, read)), is(grpcCode.notFound));
      const action = digestOf(fresh());
      await update(mill, action, new Uint8Array());
      await rejects(other.unary(rawGet, getting(action)), is(grpcCode.notFound));
    }));

  test("a caller without permissions is refused by every method", () =>
    withDoor({}, async ({ as, paths }) => {
      equal(paths.length, 16);
      const nobody = as("nobody@mill");
      for (const path of paths) {
        const streams = path.endsWith("/Write") ? "client" : /\/(Read|GetTree)$/.test(path) ? "server" : "none";
        const method = { name: "", path, streams, request: rawActionResult, response: rawActionResult };
        await rejects(call(nobody, method as Method<Uint8Array, Uint8Array>), is(grpcCode.permissionDenied), path);
      }
    }));

  test("a caller that may not write results learns so from the capabilities", () =>
    withDoor({}, async ({ as }) => {
      for (const [who, may] of [
        ["writer@mill", true],
        ["uploader@mill", false],
        ["reader@mill", false],
      ] as const) {
        const said = await as(who).unary(Capabilities.methods.getCapabilities, { instanceName: "" });
        equal(said.cacheCapabilities?.actionCacheUpdateCapabilities?.updateEnabled, may, who);
      }
      await rejects(update(as("uploader@mill"), digestOf(fresh()), new Uint8Array()), is(grpcCode.permissionDenied));
    }));

  test("an instance that is not served is not found, by any call", () =>
    withDoor({ settings: { instances: ["", "main/one"] } }, async ({ as }) => {
      const client = as("writer@mill");
      const action = digestOf(fresh());
      for (const [instanceName, served] of [
        ["", true],
        ["main/one", true],
        ["main", false],
        ["main/one/two", false],
      ] as const) {
        const prefix = instanceName === "" ? "" : `${instanceName}/`;
        const asked = { instanceName, blobDigests: [], digestFunction: 0 };
        const read = { resourceName: `${prefix}blobs/${action}`, readOffset: 0, readLimit: 0 };
        const answers = await Promise.all(
          [
            client.unary(Capabilities.methods.getCapabilities, { instanceName }),
            client.unary(findMissingBlobs, asked),
            client.unary(rawGet, getting(action, instanceName)),
            Array.fromAsync(client.serverStream(ByteStream.methods.read, read)),
          ].map((one: Promise<unknown>) => one.then(() => "ok").catch((error: Error) => error.message)),
        );
        const foreign = answers.filter((answer) => answer.includes("there is no instance"));
        equal(foreign.length, served ? 0 : answers.length, `${instanceName}: ${answers.join("; ")}`);
      }
    }));
});

async function call(client: GrpcClient, method: Method<Uint8Array, Uint8Array>): Promise<unknown> {
  const empty = new Uint8Array();
  if (method.streams === "server") return await Array.fromAsync(client.serverStream(method, empty));
  if (method.streams === "none") return await client.unary(method, empty);
  return await client.clientStream(
    method,
    (async function* () {
      yield empty;
    })(),
  );
}
