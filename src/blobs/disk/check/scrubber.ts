/**
 * Reads the whole store slowly, again and again: every blob is hashed, every name's record is checked, and what is
 * damaged is dropped, so that it is found while there is still another copy. The rate is limited; large files are
 * hashed in a thread. Where it is, is kept in a file, so that a restart continues the pass.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ScrubState } from "#blobs/upkeep.ts";
import type { Core } from "#blobs/disk/core.ts";
import { storeIsClosed } from "#blobs/disk/disk-fault.ts";
import { checkEntry } from "./check-entry.ts";

export type ScrubOptions = {
  /** From the beginning of a pass to that of the next. */
  readonly everyMs: number;
  /** Bytes in a second; 0: never. */
  readonly rate: number;
};

/** The smallest pause: shorter ones are added up. */
const pauseMs = 50;
const saveEveryMs = 10_000;
/** What reading an entry costs beside its bytes. */
const entryBytes = 512;

export class Scrubber {
  readonly #core: Core;
  readonly #options: ScrubOptions;
  readonly #path: string;
  #state: ScrubState;
  #owedMs = 0;
  #savedAtMs = 0;
  #cancel: () => void = () => {};
  #wake: () => void = () => {};
  #isClosed = false;
  readonly #running: Promise<void>;

  constructor(core: Core, options: ScrubOptions) {
    this.#core = core;
    this.#options = options;
    this.#path = join(core.root, "scrub");
    this.#state = readState(this.#path);
    this.#running = options.rate > 0 ? this.#run() : Promise.resolve();
  }

  get state(): ScrubState {
    return this.#state;
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#rest(Math.max(pauseMs, this.#untilNextMs()));
      if (this.#isClosed || this.#core.log.lost) return;
      try {
        await this.#pass();
      } catch (error) {
        if (this.#isClosed) return this.#save();
        this.#core.options.report("the scrubber stopped, and continues later", { why: String(error) });
        await this.#rest(60_000);
      }
    }
  }

  #nowMs(): number {
    return this.#core.nowSec() * 1_000;
  }

  /** A pass that was interrupted goes on at once. */
  #untilNextMs(): number {
    const { position, beganAtMs } = this.#state;
    return position > 0 ? 0 : beganAtMs + this.#options.everyMs - this.#nowMs();
  }

  async #pass(): Promise<void> {
    const { table } = this.#core.holdings;
    if (this.#state.position === 0)
      this.#state = { ...this.#state, beganAtMs: this.#nowMs(), blobs: 0, bytes: 0, wrong: 0 };
    for (let entry = this.#state.position; entry < table.end; entry += 1) {
      if (this.#isClosed || this.#core.log.lost) break;
      const checked = await checkEntry(this.#core, entry, (bytes) => this.#spend(bytes));
      const { blobs, bytes, wrong } = this.#state;
      this.#state = {
        ...this.#state,
        position: entry + 1,
        blobs: blobs + (checked ? 1 : 0),
        bytes: bytes + (checked?.bytes ?? 0),
        wrong: wrong + (checked?.wrong === undefined ? 0 : 1),
      };
      await this.#spend(entryBytes);
    }
    if (this.#state.position >= table.end) this.#state = { ...this.#state, position: 0, endedAtMs: this.#nowMs() };
    this.#save();
  }

  /** Waits as long as so many bytes may take. */
  async #spend(bytes: number): Promise<void> {
    this.#owedMs += (bytes / this.#options.rate) * 1_000;
    if (this.#owedMs < pauseMs) return;
    const ms = this.#owedMs;
    this.#owedMs = 0;
    if (this.#isClosed) throw storeIsClosed("scrub");
    if (this.#nowMs() - this.#savedAtMs >= saveEveryMs) this.#save();
    await this.#rest(ms);
  }

  async #rest(ms: number): Promise<void> {
    if (this.#isClosed) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#cancel = this.#core.clock.after(ms, resolve);
    });
  }

  /** A state that cannot be saved costs a restarted pass, nothing more. */
  #save(): void {
    this.#savedAtMs = this.#nowMs();
    try {
      writeFileSync(`${this.#path}.new`, JSON.stringify(this.#state), { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      this.#core.options.report("the scrubber's position could not be saved", { why: String(error) });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    this.#wake();
    await this.#running;
  }
}

const beginning: ScrubState = { position: 0, beganAtMs: 0, endedAtMs: 0, blobs: 0, bytes: 0, wrong: 0 };

/** Anything but what was saved counts as nothing. */
function readState(path: string): ScrubState {
  try {
    const read = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    const entries = Object.keys(beginning).map((name) => [name, read[name]] as const);
    const isWhole = entries.every(([, value]) => Number.isSafeInteger(value) && (value as number) >= 0);
    return isWhole ? (Object.fromEntries(entries) as ScrubState) : beginning;
  } catch {
    return beginning;
  }
}
