/**
 * Which claims callers hold, for calls of executors elsewhere: the task's shard says who holds a claim, and whose task
 * it is. What the caller itself says of its tenant counts for nothing.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { ClaimOf } from "#access/principal.ts";
import type { Admission, Admitted } from "#edge/port/admission.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { executorName } from "./work-policy.ts";

export type ClaimNamed = { readonly executor: string; readonly task: string; readonly token: number };

export type HeldPorts = { readonly client: Pick<WorkClient, "task" | "job">; readonly clock: Clock };

/** How long a claim counts as held after the shard said so. */
export const heldMs = 2_000;
const claimsMax = 10_000;

export type Held = { readonly claim: ClaimOf; readonly door: string; readonly atMs: number };

export class HeldClaims {
  readonly #admission: Admission;
  readonly #ports: HeldPorts;
  /** Claims that were seen held, oldest first. */
  readonly #known = new Map<string, Held>();

  constructor(admission: Admission, ports: HeldPorts) {
    this.#admission = admission;
    this.#ports = ports;
  }

  /** Throws if the caller does not hold the claim, or did not within this time. */
  async require(caller: Admitted, named: ClaimNamed, withinMs = heldMs): Promise<Held> {
    const { task, token } = named;
    const executor = executorName(caller, named.executor);
    const claim = `${task} ${token} ${executor}`;
    let known = this.#known.get(claim);
    if (!known || this.#ports.clock.monotonicMs() - known.atMs > withinMs)
      known = await this.#look({ task, token, executor });
    this.#admission.require(caller, "work.execute", known.claim.tenant);
    this.#known.delete(claim);
    this.#known.set(claim, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= claimsMax) break;
      this.#known.delete(oldest);
    }
    return known;
  }

  async #look({ task, token, executor }: ClaimNamed): Promise<Held> {
    const { client, clock } = this.#ports;
    const atMs = clock.monotonicMs();
    try {
      const { claims, jobId: job, attempts: attempt } = await client.task(task);
      if (claims.some((claim) => claim.token === token && claim.executor === executor)) {
        const { tenant, door } = (await client.job(job, { tasksMax: 0 })).view;
        return { claim: { tenant, job, task, attempt, token }, door, atMs };
      }
    } catch (error) {
      if (isFault(error, "unavailable")) throw new GrpcError(grpcCode.unavailable, error.message);
      if (!isFault(error) && !isRejected(error)) throw error;
    }
    // The same for a claim that is over, one of another executor, and a task that does not exist.
    throw new GrpcError(grpcCode.failedPrecondition, "the claim is not held by this executor");
  }
}
