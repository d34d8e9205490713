/** The periodic work of a store, one task after another. */
import type { Checkpoints } from "#blobs/disk/log/checkpoints.ts";
import type { Core } from "#blobs/disk/core.ts";
import type { Janitor } from "./janitor.ts";
import type { StoreLock } from "#blobs/disk/lock.ts";
import type { PartialUploads } from "#blobs/disk/upload/partials.ts";
import { Strays } from "./strays.ts";
import { Touches } from "#blobs/disk/table/touches.ts";

const everyMs = 1_000;
/** Rounds between tasks that need not run each time. */
const seldom = 30;

export class Housekeeping {
  readonly #core: Core;
  readonly #janitor: Janitor;
  readonly #partials: PartialUploads;
  readonly #checkpoints: Checkpoints;
  readonly #lock: Pick<StoreLock, "isHeld">;
  readonly touches: Touches;
  readonly strays: Strays;
  #cancel: () => void = () => {};
  #round = 0;
  #working: Promise<void> = Promise.resolve();
  #isClosed = false;
  #lookForStrays = true;

  constructor(
    core: Core,
    parts: {
      readonly janitor: Janitor;
      readonly partials: PartialUploads;
      readonly checkpoints: Checkpoints;
      readonly lock: Pick<StoreLock, "isHeld">;
    },
  ) {
    this.#core = core;
    this.#janitor = parts.janitor;
    this.#partials = parts.partials;
    this.#checkpoints = parts.checkpoints;
    this.#lock = parts.lock;
    this.touches = new Touches(core);
    this.strays = new Strays(core);
    core.spare.layBy();
    core.budget.takeOwn(core.spare.sizeBytes);
    core.measureDisk();
    this.#wait();
  }

  #wait(): void {
    this.#cancel = this.#core.clock.after(everyMs, () => {
      this.#working = this.#work()
        .catch((error: unknown) => this.#core.options.report("housekeeping failed", { why: String(error) }))
        .then(() => (this.#isClosed ? undefined : this.#wait()));
    });
  }

  async #work(): Promise<void> {
    if (!this.#core.log.lost && !this.#lock.isHeld()) this.#core.log.lose();
    if (this.#core.log.lost) return;
    this.#round += 1;
    this.#core.lookAtClock();
    await this.touches.flush();
    if (this.#janitor.isDue) await this.#partials.reclaim(true);
    if (this.#janitor.isDue || this.#round % seldom === 0) await this.#janitor.tidy();
    await this.#checkpoints.writeIfDue();
    if (this.#lookForStrays) this.#lookForStrays = !(await this.strays.lookOn());
    // Its other records, of tenants and pins, are in a checkpoint only.
    if (await this.#janitor.rescue()) await this.#checkpoints.write();
    if (this.#round % seldom !== 0) return;
    await this.#partials.reclaim(false);
    this.#core.measureDisk();
    this.#core.spare.layBy();
  }

  /** Resolves when the round that is under way has ended. */
  async settled(): Promise<void> {
    await this.#working;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#core.pace.hurry(() => this.#working);
    if (!this.#core.log.lost) await this.touches.flush();
  }
}
