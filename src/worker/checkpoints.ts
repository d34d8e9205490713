/**
 * Records how far an attempt has got. One at a time, the newest first: what a runner records while another is on its
 * way replaces what has not been sent yet.
 */
import type { Clock } from "#base/clock.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { ExecutorClient } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Holding } from "./holding.ts";
import type { Left } from "./runner.ts";
import { digestsOf, uploadAll } from "./upload.ts";

export type CheckpointPorts = {
  readonly client: Pick<ExecutorClient, "checkpoint">;
  readonly blobs: BlobStore;
  readonly clock: Clock;
};

const uploadsMax = 3;
/** A shard without memory refuses again and again; the attempt must end nevertheless. */
const refusalsMax = 10;

export class Checkpoints {
  readonly #ports: CheckpointPorts;
  readonly #holding: Holding;
  #next: { readonly left: Left; readonly durable: PromiseWithResolvers<void> } | undefined;
  #sending: Promise<void> | undefined;
  /** Whether the shard has one under this claim: then started work can be given back. */
  isRecorded = false;

  constructor(ports: CheckpointPorts, holding: Holding) {
    this.#ports = ports;
    this.#holding = holding;
  }

  /** Resolves when it is durable, or a newer one is; rejects when it cannot be recorded. */
  record(left: Left): Promise<void> {
    const durable = this.#next?.durable ?? Promise.withResolvers<void>();
    // A runner that does not wait for it must not end the process by an unhandled rejection.
    durable.promise.catch(() => {});
    this.#next = { left, durable };
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
    return durable.promise;
  }

  /** Resolves when nothing is on its way any more. */
  async settled(): Promise<void> {
    await this.#sending;
  }

  async #send(): Promise<void> {
    for (let next = this.#next; next; next = this.#next) {
      this.#next = undefined;
      try {
        await this.#one(next.left);
        this.isRecorded = true;
        next.durable.resolve();
      } catch (error) {
        if (isRejected(error, "token-stale")) this.#holding.stop("lost");
        next.durable.reject(error);
      }
    }
  }

  async #one(left: Left): Promise<void> {
    const { client, blobs, clock } = this.#ports;
    const { claim } = this.#holding;
    const { payload, outputs = [] } = left;
    let refusals = 0;
    for (let upload = 1; ; upload += 1) {
      await uploadAll(outputs, blobs);
      try {
        const checkpoint = { payload, digests: digestsOf(left) };
        // A runner that was asked to stop may record where it stopped: only a lost claim ends this.
        return await client.checkpoint(claim, checkpoint, { deadlineMs: Math.max(1_000, this.#holding.leftMs) });
      } catch (error) {
        // Too soon after the one before, or the shard has no memory for it.
        const waitMs =
          isRejected(error) && "retryAfterMs" in error.rejection ? error.rejection.retryAfterMs : undefined;
        if (waitMs !== undefined && this.#holding.leftMs > waitMs && (refusals += 1) <= refusalsMax) {
          await clock.sleep(Math.max(5, waitMs));
          upload -= 1;
          continue;
        }
        const isEvicted = isRejected(error, "evidence-missing") || isRejected(error, "evidence-expired");
        if (!isEvicted || upload >= uploadsMax) throw error;
      }
    }
  }
}
