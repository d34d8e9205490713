import type { MachineClocks } from "#base/boot-clock.ts";
import { ManualClock } from "./manual-clock.ts";

/** A machine for tests: while it sleeps (`sleptMs`), its awake clock and its timers stop. */
export class ManualMachine implements MachineClocks {
  readonly awake = new ManualClock(5_000);
  sleptMs = 0;
  wallSetMs = 0;
  bootReads = 0;
  countsSleep = true;

  awakeMs(): number {
    return this.awake.monotonicMs();
  }
  wallMs(): number {
    return 1_700_000_000_000 + this.awakeMs() + this.sleptMs + this.wallSetMs;
  }
  bootMs(): number | undefined {
    this.bootReads += 1;
    return this.countsSleep ? Math.floor((this.awakeMs() + this.sleptMs + 777) / 10) * 10 : undefined;
  }
  after(ms: number, run: () => void): () => void {
    return this.awake.after(ms, run);
  }
  afterIfUp(ms: number, run: () => void): void {
    this.awake.after(ms, run);
  }
}
