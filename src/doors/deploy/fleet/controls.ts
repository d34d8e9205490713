/** What people said about a running release: in the store, so that whichever node runs its waves finds it. */
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import { sha256Digest } from "#blobs/sha256.ts";

export type Pause = { readonly by: string; readonly atMs: number };

const space = "deploy/paused";
const digest = sha256Digest(Buffer.from("paused"));

export class ReleaseControls {
  readonly #index: ActionIndex;
  readonly #clock: Clock;

  constructor(index: ActionIndex, clock: Clock) {
    this.#index = index;
    this.#clock = clock;
  }

  /** Undefined: it goes on. */
  async paused(tenant: string, job: string): Promise<Pause | undefined> {
    const entry = await this.#index.get({ tenant, space, name: job });
    return entry && { by: entry.principal, atMs: entry.atMs };
  }

  async setPaused(tenant: string, job: string, isPaused: boolean, by: string): Promise<void> {
    const key = { tenant, space, name: job };
    if (!isPaused) await this.#index.remove(key);
    else await this.#index.put(key, { digest, principal: by, atMs: this.#clock.wallMs() });
  }
}
