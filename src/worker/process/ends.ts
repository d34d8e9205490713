/**
 * Batches the reports of ended runs. A report makes the node collect outputs, wait for its disk and write to its
 * journal, and several at once cost it hardly more than one. So a report waits a moment for others if that delays
 * nothing: while other runs are active, and while its lane prepares the sandbox of its next run.
 */
import { frameOf } from "./frame.ts";
import type { LauncherMessage } from "./protocol.ts";

/** Less than it takes to make a sandbox on a busy machine. */
const waitMs = 8;
const enough = 16;
/** With fewer other runs, none may end soon. */
const othersMin = 2;

export type Ended = Extract<LauncherMessage, { ev: "ended" }>;

export class Ends {
  readonly #write: (frames: Buffer) => void;
  #frames: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (frames: Buffer) => void) {
    this.#write = write;
  }

  tell(ended: Ended, lane: { readonly isMakingNext: boolean; readonly others: number }): void {
    this.#frames.push(frameOf(ended));
    const isWorthIt = lane.isMakingNext && lane.others >= othersMin && this.#frames.length < enough;
    if (isWorthIt) this.#timer ??= setTimeout(() => this.#tellAll(), waitMs);
    else this.#tellAll();
  }

  #tellAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const frames = this.#frames;
    this.#frames = [];
    this.#write(frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames));
  }
}
