/** An input whose copy is damaged: its action is told that it is missing, an upload repairs it, and the action runs. */
import { equal, match, ok } from "node:assert/strict";
import { hash, randomUUID } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#door/system-clock.ts";
import { grpcCode } from "#grpc/status.ts";
import { Bench, Lab } from "./execution-lab.ts";

const skip = process.platform !== "linux" && "needs linux: the sandbox";
/** It is a file of the store; smaller ones are in its log. */
const large = `${"grain ".repeat(60_000)}${randomUUID()}`;

function damage(lab: Lab, sha256: string): void {
  const files = readdirSync(join(lab.root, "data", "blobs", "files"), { recursive: true, withFileTypes: true });
  const file = files.find(({ name }) => name.startsWith(sha256));
  ok(file, "a file of the blob");
  const path = join(file.parentPath, file.name);
  const bytes = readFileSync(path);
  bytes[1_000] = (bytes[1_000] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

const ways = {
  flipped(path: string) {
    const bytes = readFileSync(path);
    bytes[1_000] = (bytes[1_000] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  },
  truncated: (path: string) => truncateSync(path, 1_000),
  removed: (path: string) => rmSync(path),
} as const;

test("a file of the worker's own inputs that was damaged is fetched again", { skip, timeout: 60_000 }, async () => {
  await using lab = await Lab.open({ worker: { slots: 1 } });
  const bench = new Bench(lab.client());
  const run = async (): Promise<string> => {
    const action = await bench.sh(`sha256sum < grain # ${randomUUID()}`, {}, { grain: large, salt: randomUUID() });
    const { response } = await bench.execute(action);
    return Buffer.from(response.result?.stdoutRaw ?? "").toString();
  };
  const right = await run();
  match(right, new RegExp(`^${hash("sha256", large)}`));
  const inputs = join(lab.root, "actions", "inputs");
  const [name = ""] = readdirSync(inputs).filter((one) => one.startsWith(hash("sha256", large)));
  for (const [how, damage] of Object.entries(ways)) {
    await systemClock.sleep(1_100);
    const path = join(inputs, name);
    chmodSync(path, 0o644);
    damage(path);
    if (how !== "removed") chmodSync(path, 0o444);
    equal(await run(), right, how);
  }
});

test("a damaged input is missing for the worker, too, until it is sent again", { skip, timeout: 60_000 }, async () => {
  await using lab = await Lab.open({ worker: { slots: 1 } });
  const bench = new Bench(lab.client());
  const action = await bench.sh("sha256sum < grain", {}, { grain: large });
  const sha256 = hash("sha256", large);
  damage(lab, sha256);
  const refused = await bench.execute(action);
  equal(refused.response.status?.code, grpcCode.failedPrecondition);
  ok(
    refused.response.status?.details.some(({ value }) => Buffer.from(value ?? "").includes(sha256)),
    "it names the blob",
  );
  await bench.put(large);
  const { response } = await bench.execute(action);
  equal(response.status?.code ?? 0, 0, response.status?.message ?? "");
  match(Buffer.from(response.result?.stdoutRaw ?? "").toString(), new RegExp(`^${sha256}`));
});
