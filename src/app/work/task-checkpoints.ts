/**
 * Checkpoints that what runs as a task records itself, with the token of its claim: only for kinds of task whose runner
 * leaves that to it.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import type { Clock } from "#base/clock.ts";
import type { ClaimOf } from "#access/principal.ts";
import type { Spool } from "#blobs/spool.ts";
import type { Store } from "#blobs/store.ts";
import { Problem } from "#http/problem.ts";
import type { ClaimView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { KindTable } from "#shard/door-kinds.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { writeFileCheckpoint } from "#worker/file-checkpoint.ts";

export type TaskCheckpointPorts = {
  readonly work: Pick<WorkClient, "task" | "checkpoint">;
  readonly kinds: Pick<KindTable, "takesCheckpoints">;
  readonly store: Store;
  readonly spool: Spool;
  readonly clock: Pick<Clock, "sleep">;
};

const triesMax = 10;

export class TaskCheckpoints {
  readonly #ports: TaskCheckpointPorts;

  constructor(ports: TaskCheckpointPorts) {
    this.#ports = ports;
  }

  /** Resolves when it is durable. */
  async put({ tenant, task, token }: ClaimOf, parts: AsyncIterable<Uint8Array>) {
    const { work, kinds, store, spool } = this.#ports;
    const { kind, claims } = await work.task(task);
    if (!kinds.takesCheckpoints(kind)) throw new Problem(403, "tasks of this kind record no checkpoints themselves");
    const executor = executorOf(claims, token);
    await using taken = await spool.take(parts, { tenant, principal: `task:${task}` });
    const { digest } = taken;
    // As the tenant: an executor elsewhere reads what its tenant may read.
    await store.forTenant(tenant).blobs.write(digest, taken.content());
    await this.#record({ executor, taskId: task, token }, digest);
    return { digest, sizeBytes: digestSizeBytes(digest) };
  }

  async #record(claim: Parameters<WorkClient["checkpoint"]>[0], digest: Digest): Promise<void> {
    const { work, clock } = this.#ports;
    for (let tries = 1; ; tries += 1)
      try {
        return await work.checkpoint(claim, writeFileCheckpoint(digest));
      } catch (error) {
        // Too soon after the one before, or the shard has no memory for it.
        const waitMs =
          isRejected(error) && "retryAfterMs" in error.rejection ? error.rejection.retryAfterMs : undefined;
        if (waitMs === undefined || tries >= triesMax) throw error;
        await clock.sleep(Math.max(5, waitMs));
      }
  }
}

/** Throws a Problem if the attempt that the claim was granted for is over. */
export function executorOf(claims: readonly ClaimView[], token: number): string {
  const executor = claims.find((claim) => claim.token === token)?.executor;
  if (executor === undefined) throw new Problem(409, "the attempt that this token was issued for is over");
  return executor;
}
