/** Large caches and artifacts through the unmodified official clients, which send them in parts. */
import { equal, ok } from "node:assert/strict";
import { createHash, randomFillSync } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { after, before, describe, test } from "node:test";
import { type ClientAnswer, type HeldJob, type Lab, openLab, withClients } from "#e2e/node/ci/lab.ts";

const MiB = 1024 * 1024;

const valueOf = (answer: ClientAnswer | undefined): unknown => {
  ok(answer?.ok === true, JSON.stringify(answer));
  return answer.value;
};

/** A file of bytes that no client makes smaller; returns their hash. */
async function fileOf(path: string, sizeBytes: number): Promise<string> {
  const part = Buffer.allocUnsafe(MiB);
  const hash = createHash("sha256");
  await using file = await open(path, "w");
  for (let at = 0; at < sizeBytes; at += part.length) {
    randomFillSync(part);
    hash.update(part);
    await file.writeFile(part);
  }
  return hash.digest("hex");
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

describe("large caches and artifacts", { timeout: 300_000 }, () => {
  let lab: Lab;
  let job: HeldJob;
  before(async () => {
    lab = await openLab();
    job = await lab.hold();
  });
  after(() => lab[Symbol.asyncDispose]());

  test("CI-69: a cache above 128 MiB, which the client sends in parts, comes back as it was", async () => {
    const folder = join(lab.folder, "cached");
    await mkdir(folder);
    const hash = await fileOf(join(folder, "big.bin"), 150 * MiB);
    const services = await lab.env(job);
    const [saved] = await withClients(services, lab.folder, [["saveCache", [folder], "big-1"]]);
    ok(Number(valueOf(saved)) > 0);
    const [kept] = await lab.services.caches.list("mill", "octo/demo");
    ok((kept?.content.parts.length ?? 0) > 1, "it came in parts");
    await rm(folder, { recursive: true });
    const [restored] = await withClients(services, lab.folder, [["restoreCache", [folder], "big-1"]]);
    equal(valueOf(restored), "big-1");
    equal(await hashOf(join(folder, "big.bin")), hash);
  });

  test("CI-70: an artifact of 300 MB is uploaded and downloaded with its digest", async () => {
    const folder = join(lab.folder, "made");
    await mkdir(folder);
    const file = join(folder, "big.bin");
    const hash = await fileOf(file, 300 * MiB);
    const options = { compressionLevel: 0, retentionDays: 2 };
    const fetched = join(lab.folder, "fetched");
    const answers = await withClients(await lab.env(job), lab.folder, [
      ["uploadArtifact", "big", [file], folder, options],
      ["downloadArtifact", "big", fetched],
    ]);
    ok(Number((valueOf(answers[0]) as Record<string, unknown>)["size"]) > 300 * MiB);
    equal((valueOf(answers[1]) as Record<string, unknown>)["digestMismatch"], false);
    equal(await hashOf(join(fetched, "big.bin")), hash);
  });
});
