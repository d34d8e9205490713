/**
 * Ends of runs, told together. One makes the node look for outputs, wait for its disk and write to its journal, and
 * several at once cost it hardly more. So an end waits for others, for a moment, where nobody is kept by that: while
 * others run, and its lane has the sandbox of its next run to make.
 */
import { frameOf } from "./frame.ts";
import type { Told } from "./protocol.ts";

/** Less than it takes to make a sandbox where many are made. */
const waitMs = 8;
const enough = 16;
/** With fewer beside it, none may end for long. */
const othersMin = 2;

export type Ended = Extract<Told, { ev: "ended" }>;

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
