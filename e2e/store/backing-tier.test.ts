/**
 * A second Millrace as the tier behind the first, both as separate processes: what is acknowledged exists, what is gone
 * here is fetched, and if the tier is slow, gone or corrupt nothing is guessed (B1, B3, B4).
 */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import {
  ContentAddressableStorage as Cas,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { nameOf, readBlob as read, writeBlob as write } from "./byte-stream.ts";
import { LyingServer, type Lie } from "./lying-server.ts";
import { NodeProcess } from "./node-process.ts";

async function writeBatch(client: GrpcClient, data: Uint8Array): Promise<Digest> {
  const digest = nameOf(data);
  const requests = [{ digest, data, compressor: 0 }];
  const { responses } = await client.unary(Cas.methods.batchUpdateBlobs, {
    instanceName: "",
    requests,
    digestFunction: 0,
  });
  const { code = 0, message = "" } = responses[0]?.status ?? {};
  if (code !== 0) throw new GrpcError(code, message);
  return digest;
}

async function missing(client: GrpcClient, digests: readonly Digest[]): Promise<readonly Digest[]> {
  const request = { instanceName: "", blobDigests: digests, digestFunction: 0 };
  return (await client.unary(Cas.methods.findMissingBlobs, request)).missingBlobDigests;
}

const isUnavailable = (error: unknown): boolean => error instanceof GrpcError && error.code === grpcCode.unavailable;

type Nodes = { readonly front: NodeProcess; readonly back: NodeProcess; readonly folder: string };

const frontConfig = (address: string, whenDead: string): object => ({
  blobs: {
    kind: "disk",
    authoritative: { kind: "reapi", address: `grpc://${address}`, whenDead, answerWithin: "2s" },
  },
});

async function withNodes(whenDead: "refuse" | "serve-local", body: (nodes: Nodes) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-behind-"));
  try {
    await using back = await NodeProcess.open(join(folder, "back"), { blobs: { kind: "disk" } });
    await using front = await NodeProcess.open(join(folder, "front"), frontConfig(back.address, whenDead));
    await body({ front, back, folder });
  } finally {
    clearAway(folder);
  }
}

const timeout = 180_000;

test("what one node acknowledged is in the tier, and comes back when its own disk is emptied", { timeout }, () =>
  withNodes("serve-local", async ({ front, back, folder }) => {
    const values = [Buffer.from("small"), randomBytes(50_000), randomBytes(300_000), randomBytes(5_000_000)];
    const [one, two, three, four] = values as [Buffer, Buffer, Buffer, Buffer];
    const digests = [
      await writeBatch(front.client, one),
      await write(front.client, two),
      await write(front.client, three),
      await write(front.client, four, 100_000),
    ];
    deepEqual(await missing(back.client, digests), [], "they are behind it when they are acknowledged");
    for (const [i, digest] of digests.entries()) ok((await read(back.client, digest)).equals(values[i] as Buffer));

    await front.stop();
    rmSync(join(folder, "front", "blobs"), { recursive: true });
    await front.start();
    deepEqual(await missing(front.client, digests), []);
    const readers = Array.from({ length: 20 }, () => digests.map((digest) => read(front.client, digest))).flat();
    for (const [i, got] of (await Promise.all(readers)).entries())
      ok(got.equals(values[i % values.length] as Buffer), "by many at once");
    await back.kill();
    for (const [i, digest] of digests.entries())
      ok((await read(front.client, digest)).equals(values[i] as Buffer), "and it was kept");
  }),
);

test("a tier that hangs: nothing is acknowledged, nothing is guessed, local blobs are served", { timeout }, () =>
  withNodes("serve-local", async ({ front, back }) => {
    const here = Buffer.from("here and behind");
    const behind = Buffer.from("only behind");
    const digest = await write(front.client, here);
    const far = await write(back.client, behind);
    back.freeze();
    const fresh = randomBytes(200_000);
    await rejects(write(front.client, fresh), isUnavailable);
    await rejects(writeBatch(front.client, Buffer.from("fresh and small")), isUnavailable);
    await rejects(missing(front.client, [digest, far]), isUnavailable);
    await rejects(read(front.client, far), isUnavailable);
    ok((await read(front.client, digest)).equals(here));
    back.thaw();
    const isBack = (): Promise<boolean> => missing(front.client, [digest, far]).then(noneOf, () => false);
    await until("it is asked again", isBack, { limitMs: 60_000, everyMs: 200 });
    ok((await read(front.client, far)).equals(behind));
    deepEqual(await missing(back.client, [await write(front.client, fresh)]), []);
  }),
);

const noneOf = (gone: readonly Digest[]): boolean => gone.length === 0;

for (const whenDead of ["serve-local", "refuse"] as const)
  test(
    `a tier that was killed (${whenDead}): as configured, and never "not found"; fine when it is back`,
    {
      timeout,
    },
    () =>
      withNodes(whenDead, async ({ front, back }) => {
        const digest = await write(front.client, Buffer.from("here and behind"));
        const far = await write(back.client, Buffer.from("only behind"));
        await back.kill();
        for (let i = 0; i < 4; i += 1) await rejects(read(front.client, far), isUnavailable);
        await rejects(missing(front.client, [digest]), isUnavailable);
        await rejects(write(front.client, Buffer.from("fresh")), isUnavailable);
        if (whenDead === "refuse") await rejects(read(front.client, digest), isUnavailable);
        else equal(String(await read(front.client, digest)), "here and behind");
        await back.start();
        const isBack = (): Promise<boolean> => missing(front.client, [digest, far]).then(noneOf, () => false);
        await until("it is asked again", isBack, { limitMs: 60_000, everyMs: 200 });
        equal(String(await read(front.client, digest)), "here and behind");
        equal(String(await read(front.client, far)), "only behind");
      }),
  );

test("a corrupt tier: its bytes are neither passed on whole nor kept", { timeout }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-behind-"));
  try {
    await using liar = await LyingServer.start();
    await using front = await NodeProcess.open(join(folder, "front"), frontConfig(liar.address, "serve-local"));
    await using other = await NodeProcess.open(join(folder, "other"), frontConfig(liar.address, "serve-local"));
    for (const lie of ["other bytes", "cut short", "too long"] satisfies Lie[])
      for (const sizeBytes of [1_000, 200_000, 3_000_000]) {
        const bytes = randomBytes(sizeBytes);
        const digest = await write(other.client, bytes); // through another node, so that this one has no copy
        liar.lie = lie;
        await rejects(read(front.client, digest), `${lie}, ${sizeBytes} bytes`);
        liar.lie = "none";
        ok((await read(front.client, digest)).equals(bytes), `the truth, after ${lie}`);
      }
    liar.lie = "has everything";
    const never = nameOf(Buffer.from("nobody has ever written this"));
    await rejects(read(front.client, never));
  } finally {
    clearAway(folder);
  }
});
