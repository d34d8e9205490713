import { deepEqual, equal, rejects } from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { Checkpoint } from "#kernel/model/model.ts";
import { clearAway } from "#testing/clear-away.ts";
import { giveCheckpoint, writeFileCheckpoint } from "./file-checkpoint.ts";
import { grantedTask } from "./testing/granted.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-checkpoint-"));
after(() => clearAway(root));

const state = Buffer.from("three of five");
const digest = sha256Digest(state);
const blobs = createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 1_000_000 });
const lost = createMemoryBlobs({ clock: new ManualClock(), sizeBytesMax: 1_000_000 });
await blobs.write(digest, state);

const given = (checkpoint: Checkpoint | undefined, effects: "pure" | "outside", from = blobs) => {
  const task = { ...grantedTask({ effects }), checkpoint: checkpoint && { ...checkpoint, token: 1 } };
  return giveCheckpoint({ task, blobs: from }, mkdtempSync(join(root, "a")));
};

test("the next attempt finds the last checkpoint in a file", async () => {
  const { MILLRACE_CHECKPOINT: path = "" } = await given(writeFileCheckpoint(digest), "outside");
  deepEqual(readFileSync(path), state);
});

test("without a checkpoint of its kind there is none", async () => {
  deepEqual(await given(undefined, "pure"), {});
  for (const payload of ["", "{}", "null", '{"file":2}', "of another kind"])
    deepEqual(await given({ payload, digests: [digest] }, "pure"), {}, payload);
});

test("without its bytes, an attempt without outside effects starts from the beginning; others fail", async () => {
  deepEqual(await given(writeFileCheckpoint(digest), "pure", lost), {});
  await rejects(given(writeFileCheckpoint(digest), "outside", lost), /not-found/);
  equal(await blobs.missing([digest]).then(({ length }) => length), 0);
});
