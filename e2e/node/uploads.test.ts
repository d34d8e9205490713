/** Unfinished uploads on a whole node: what one member can take from others, and how it is refused. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { GrpcClient } from "#grpc/client.ts";
import { detailsOf, grpcCode, isGrpcError } from "#grpc/status.ts";
import { connectH2 } from "#h2/client.ts";
import { ByteStream } from "#wire/generated/google/bytestream/bytestream.ts";
import { RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { systemClock as clock } from "#door/system-clock.ts";

const MiB = 1024 * 1024;
const tenants = { anna: "a", amy: "a", berta: "b" } as const;
type Who = keyof typeof tenants;
const tokenOf = (who: Who): string => `${who}-token-0123456789-0123456789-0123456789`;
const tokens = Object.entries(tenants).map(([name, tenant]) => ({
  name,
  tenant,
  roles: ["member", "action-cache-writer"],
  sha256: tokenSha256(tokenOf(name as Who)),
}));

describe("unfinished uploads", { timeout: 60_000 }, () => {
  let path: string;
  let node: Running;
  const clients = new Map<Who, GrpcClient>();

  const start = async (): Promise<void> => {
    const config = Config.parse({
      cluster: { shards: 1 },
      journal: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      worker: { enabled: false },
      blobs: { kind: "disk", sizeMax: "64MiB", uploads: { countPerCaller: 3, countPerTenant: 5 } },
    });
    node = await startNode(config, dataFolder(path), { log: () => {} });
    const port = node.edgePorts[0] ?? 0;
    const connect = () => connectH2({ clock, host: "127.0.0.1", port });
    for (const who of ["anna", "amy", "berta"] as const) {
      const metadata = [["authorization", `Bearer ${tokenOf(who)}`]] as const;
      clients.set(who, new GrpcClient({ clock, connect, authority: `127.0.0.1:${port}`, metadata }));
    }
  };
  const stop = async (): Promise<void> => {
    for (const client of clients.values()) client.close();
    await node.stop();
  };
  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-uploads-"));
    await start();
  });
  after(async () => {
    await stop();
    await rm(path, { recursive: true });
  });

  const send = async (who: Who, resourceName: string, data: Buffer, from: number, finishWrite: boolean) => {
    async function* parts() {
      for (let at = 0; at < data.length; at += MiB) {
        const piece = data.subarray(at, at + MiB);
        const isLast = at + piece.length === data.length;
        yield { resourceName, writeOffset: from + at, finishWrite: finishWrite && isLast, data: piece };
      }
    }
    return await clients.get(who)?.clientStream(ByteStream.methods.write, parts(), { deadlineMs: 20_000 });
  };
  const nameOf = (bytes: Buffer, uuid: string): string =>
    `uploads/${uuid}/blobs/${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
  const announced = (n: number): string => `uploads/u${n}/blobs/${String(n).padStart(64, "0")}/${20 * MiB}`;

  test("22 bytes that announce a large blob take no space from other tenants, also after a restart", async () => {
    for (let n = 0; n < 3; n += 1) await send("anna", announced(n), Buffer.alloc(22), 0, false);
    const whole = Buffer.alloc(15 * MiB, "berta's");
    deepEqual(await send("berta", nameOf(whole, "w"), whole, 0, true), { committedSize: whole.length });
    await stop();
    await start();
    const other = Buffer.alloc(15 * MiB, "another");
    deepEqual(await send("berta", nameOf(other, "w"), other, 0, true), { committedSize: other.length });
  });

  test("one upload too many is refused with the limit and with when to try again, until one is finished", async () => {
    const refused = await send("anna", announced(3), Buffer.alloc(22), 0, false).then(
      () => undefined,
      (error: unknown) => error,
    );
    ok(isGrpcError(refused, grpcCode.resourceExhausted), String(refused));
    match(refused.message, /unfinished uploads of one caller may hold at most 3 uploads/);
    const [retry] = detailsOf(refused, RetryInfo);
    ok((retry?.retryDelay?.seconds ?? 0) > 200, "idle ones are forgotten after five minutes");
    for (const n of [0, 1]) await send("amy", announced(10 + n), Buffer.alloc(22), 0, false);
    await rejects(send("amy", announced(12), Buffer.alloc(22), 0, false), /uploads of one tenant may hold at most 5/);
    const small = Buffer.alloc(100, "one message");
    deepEqual(await send("anna", nameOf(small, "s"), small, 0, true), { committedSize: small.length });
  });

  test("an upload that was interrupted before a restart continues where it was", async () => {
    const whole = Buffer.alloc(4 * MiB, "resumed");
    const resourceName = nameOf(whole, "r");
    await send("berta", resourceName, whole.subarray(0, 3 * MiB), 0, false);
    await stop();
    await start();
    const status = await clients.get("berta")?.unary(ByteStream.methods.queryWriteStatus, { resourceName });
    deepEqual(status, { committedSize: 3 * MiB, complete: false });
    const rest = whole.subarray(3 * MiB);
    deepEqual(await send("berta", resourceName, rest, 3 * MiB, true), { committedSize: whole.length });
  });

  test("a blob that exceeds every limit is refused at once, without a time to try again", async () => {
    const tooLarge = `uploads/x/blobs/${"1".repeat(64)}/${30 * MiB}`;
    const refused = await send("berta", tooLarge, Buffer.alloc(22), 0, false).then(
      () => undefined,
      (error: unknown) => error,
    );
    ok(isGrpcError(refused, grpcCode.resourceExhausted), String(refused));
    deepEqual(detailsOf(refused, RetryInfo), []);
    match(refused.message, /blobs\.uploads/);
  });

  test("over HTTP, a caller's own limit is 429 and a full store 507, and both say why", async () => {
    const put = (name: string, bytes: Buffer): Promise<Response> =>
      fetch(`http://127.0.0.1:${node.edgePorts[0]}/gradle/${name}`, {
        method: "PUT",
        headers: { authorization: `Bearer ${tokenOf("berta")}` },
        body: new Uint8Array(bytes),
      });
    // One byte too many: a client that is refused in the middle may not read the answer.
    const own = await put("own", Buffer.alloc(Math.floor(0.4 * 64 * MiB) + 1));
    deepEqual([own.status, own.headers.get("retry-after")], [429, "10"]);
    match(await own.text(), /unfinished uploads of one caller may hold at most \d+ bytes/);
    const filled: number[] = [];
    for (let n = 0; n < 4 && filled.at(-1) !== 507; n += 1) {
      const response = await put(`full${n}`, Buffer.alloc(14 * MiB, `full ${n}`));
      filled.push(response.status);
      if (response.status !== 507) continue;
      equal(response.headers.get("retry-after"), "5");
      match(await response.text(), /in the last 60 min are kept \(blobs\.promised\).*blobs\.sizeMax/);
    }
    equal(filled.at(-1), 507, String(filled));
  });
});
