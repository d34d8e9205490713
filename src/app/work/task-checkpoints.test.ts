// What a task's token may record: checkpoints of its own attempt, and only where its runner leaves that to it.
import { deepEqual, equal, rejects } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { Spool } from "#blobs/spool.ts";
import type { Store } from "#blobs/store.ts";
import type { Checkpoint } from "#kernel/model/model.ts";
import { RejectedError } from "#shard/work/rejected.ts";
import { clearAway } from "#testing/clear-away.ts";
import { TaskCheckpoints, type TaskCheckpointPorts } from "./task-checkpoints.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-checkpoints-"));
after(() => clearAway(folder));
const MiB = 1024 * 1024;
const claim = { tenant: "acme", job: "j0-1", task: "t0-2", attempt: 1, token: 7 };

async function* bytes(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("state");
}

function rig({ kind = "shell.command", token = 7, refusals = 0 } = {}) {
  const clock = new ManualClock();
  const blobs = createMemoryBlobs({ clock, sizeBytesMax: MiB });
  const recorded: [string, Checkpoint][] = [];
  const tenants: string[] = [];
  const work = {
    task: async () => ({ kind, claims: [{ token, executor: "e1", expiresInMs: 1, started: true }] }),
    checkpoint: async ({ executor }: { readonly executor: string }, checkpoint: Checkpoint) => {
      if (recorded.length === 0 && refusals-- > 0)
        throw new RejectedError("checkpoint", 0, { kind: "shard-full", what: "checkpoints", retryAfterMs: 10 });
      recorded.push([executor, checkpoint]);
    },
  };
  const store = { forTenant: (tenant: string) => (tenants.push(tenant), { blobs }) };
  const checkpoints = new TaskCheckpoints({
    work: work as unknown as TaskCheckpointPorts["work"],
    kinds: { takesCheckpoints: (one) => one === "shell.command" },
    store: store as unknown as Store,
    spool: new Spool({ folder, memoryBytesEach: MiB, memoryBytesMax: MiB, bytesMax: MiB }),
    clock,
  });
  return { checkpoints, recorded, tenants, blobs, clock };
}

test("the bytes are stored for the tenant, then recorded under the claim", async () => {
  const { checkpoints, recorded, tenants, blobs } = rig();
  const { digest, sizeBytes } = await checkpoints.put(claim, bytes());
  equal(sizeBytes, 5);
  deepEqual(recorded, [["e1", { payload: '{"file":1}', digests: [digest] }]]);
  deepEqual(tenants, ["acme"]);
  deepEqual(await blobs.missing([digest]), []);
});

test("one that comes too soon after another is recorded a moment later", async () => {
  const { checkpoints, recorded, clock } = rig({ refusals: 2 });
  const put = checkpoints.put(claim, bytes());
  for (let i = 0; i < 50 && recorded.length === 0; i += 1) {
    await settle();
    await clock.advance(10);
  }
  await put;
  equal(recorded.length, 1);
});

test("a task whose runner keeps its own, and an attempt that is over, record none", async () => {
  await rejects(rig({ kind: "ci.job" }).checkpoints.put(claim, bytes()), { status: 403 });
  await rejects(rig({ token: 8 }).checkpoints.put(claim, bytes()), { status: 409 });
});
