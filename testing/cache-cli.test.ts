/** `millrace cache` against a real node, filled the way a build tool fills it. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { connectH2 } from "#h2/client.ts";
import { GrpcClient } from "#grpc/client.ts";
import { isGrpcError, grpcCode } from "#grpc/status.ts";
import { digestOf } from "#blobs/hashing.ts";
import { parseDigest } from "#base/digest.ts";
import { realClock } from "./real-clock.ts";
import {
  Action,
  ActionCache,
  ActionResult,
  Command,
  GetActionResultRequest,
  RequestMetadata,
  UpdateActionResultRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { clearAway } from "./clear-away.ts";
import { cliLine } from "./cli-line.ts";

const empty = Buffer.alloc(0);

describe("millrace cache", () => {
  let path: string;
  let running: Running;

  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-cache-cli-"));
    const config = Config.parse({
      cluster: { shards: 1 },
      journal: { kind: "memory" },
      worker: { enabled: false },
      edge: { listen: ["127.0.0.1:0"] },
    });
    running = await startNode(config, dataFolder(path), { log: () => {} });
  });
  after(async () => {
    await running.stop();
    clearAway(path);
  });

  const run = (...args: readonly string[]) => cliLine(path, ...args);

  async function put(name: string, bytes: string | Uint8Array): Promise<string> {
    const file = join(path, name);
    await writeFile(file, bytes);
    const { code, out, notes } = await run("cache", "put", file, "--json");
    equal(code, 0, notes.join());
    return (JSON.parse(out[0] ?? "") as { digest: string }).digest;
  }

  test("a blob that was put can be read, and is counted", async () => {
    const digest = await put("some.txt", "to the mill");
    equal(digest, digestOf(Buffer.from("to the mill")));
    const back = join(path, "back.txt");
    equal((await run("cache", "get", digest, back)).code, 0);
    equal(await readFile(back, "utf8"), "to the mill");
    const stat = await run("cache", "stat", "--json");
    ok((JSON.parse(stat.out[0] ?? "") as { blobs: number }).blobs >= 1);
    match((await run("cache", "stat")).out[0] ?? "", /^used +\S+ of \S+/);
  });

  test("a missing blob and an invalid digest are reported", async () => {
    const gone = await run("cache", "get", `${"0".repeat(64)}/7`);
    deepEqual([gone.code, gone.notes[0]?.startsWith("ask the cache: not-found")], [1, true]);
    equal((await run("cache", "get", "nonsense")).code, 2);
    equal((await run("cache", "gc", "all")).code, 2);
  });

  test("everything is verified, and promised blobs are not evicted", async () => {
    const digest = await put("kept.txt", "kept");
    const verified = await run("cache", "verify");
    equal(verified.code, 0);
    match(verified.out.at(-1) ?? "", /all as they should be$/);
    equal((await run("cache", "gc", "0B")).code, 0);
    equal((await run("cache", "get", digest, join(path, "still.txt"))).code, 0);
  });

  test("a miss is explained: by target, by action, as text and in JSON", async () => {
    const client = new GrpcClient({
      clock: realClock,
      connect: () => connectH2({ host: "127.0.0.1", port: running.edgePorts[0] ?? 0, clock: realClock }),
      authority: "127.0.0.1",
    });
    const metadata = [
      [
        "build.bazel.remote.execution.v2.requestmetadata-bin",
        encode(RequestMetadata, {
          ...decode(RequestMetadata, empty),
          targetId: "//app:main",
          actionMnemonic: "CppCompile",
        }),
      ],
    ] as const;
    const named = (digest: string) => {
      const { hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
      return { hash, sizeBytes };
    };
    const actionWith = async (flag: string): Promise<string> => {
      const command = { ...decode(Command, empty), arguments: ["cc", flag, "main.c"] };
      const commandDigest = named(await put("command", encode(Command, command)));
      return await put("action", encode(Action, { ...decode(Action, empty), commandDigest }));
    };
    try {
      const [old, now] = [await actionWith("-O1"), await actionWith("-O2")];
      await client.unary(
        ActionCache.methods.updateActionResult,
        {
          ...decode(UpdateActionResultRequest, empty),
          actionDigest: named(old),
          actionResult: { ...decode(ActionResult, empty), exitCode: 0, stdoutRaw: Buffer.from("ok") },
        },
        { metadata },
      );
      const asked = { ...decode(GetActionResultRequest, empty), actionDigest: named(now) };
      await client.unary(ActionCache.methods.getActionResult, asked, { metadata }).then(
        () => ok(false, "it cannot be known"),
        (error: unknown) => ok(isGrpcError(error, grpcCode.notFound), String(error)),
      );
      const why = await run("cache", "why", "//app:main");
      equal(why.code, 0, why.notes.join());
      ok(why.out.includes('    argument 1: "-O1" -> "-O2"'), why.out.join("\n"));
      const json = await run("cache", "why", now, "--json");
      equal((JSON.parse(json.out[0] ?? "") as { verdict: string }).verdict, "differs");
      match((await run("cache", "why", "//other:one")).out[0] ?? "", /no action of \/\/other:one has missed/);
      // A revoked result is a miss, and is explained as such; after the rule is removed it is a hit again.
      const known = { ...asked, actionDigest: named(old) };
      await client.unary(ActionCache.methods.getActionResult, known, { metadata });
      const revoked = await run("cache", "revoke", "--all", "--last", "1h", "--why", "bad compiler", "--json");
      const { id } = JSON.parse(revoked.out[0] ?? "") as { id: string };
      await rejects(client.unary(ActionCache.methods.getActionResult, known, { metadata }), (error) =>
        isGrpcError(error, grpcCode.notFound),
      );
      match((await run("cache", "why", old)).out.join("\n"), /has been revoked/);
      match((await run("cache", "revoke")).out[0] ?? "", /everything, written from .*: bad compiler$/);
      equal((await run("cache", "revoke", "--lift", id)).code, 0);
      await client.unary(ActionCache.methods.getActionResult, known, { metadata });
      const listed = await run("cache", "ls", "ac", "--json");
      equal((JSON.parse(listed.out[0] ?? "") as { principal: string }).principal.length > 0, true);
    } finally {
      client.close();
    }
  });
});
