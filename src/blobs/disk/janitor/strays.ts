/**
 * Files that no entry names: the process crashed between writing the file and recording it. Searched a few folders at a
 * time.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { digestFunctions } from "#base/digest.ts";
import type { Core } from "#blobs/disk/core.ts";
import { keyFromHex, keyWords } from "#blobs/disk/table/key.ts";
import { noEntry } from "#blobs/disk/table/table.ts";

const foldersAtOnce = 16;
/** Younger files may be uploads in progress. */
const ageMsMin = 600_000;

export class Strays {
  readonly #core: Core;
  readonly #folder: string;
  #queue: string[] | undefined;

  constructor(core: Core) {
    this.#core = core;
    this.#folder = join(core.root, "files");
  }

  /** Goes through all folders once after each start. True when that is done. */
  async lookOn(ageMs: number = ageMsMin): Promise<boolean> {
    this.#queue ??= (await namesIn(this.#folder)).map((name) => join(this.#folder, name));
    for (let i = 0; i < foldersAtOnce; i += 1) {
      const folder = this.#queue.shift();
      if (folder === undefined) return true;
      for (const name of await namesIn(folder)) {
        if (name.length === 2) this.#queue.push(join(folder, name));
        else await this.#check(folder, name, ageMs);
      }
    }
    return false;
  }

  async #check(folder: string, name: string, ageMs: number): Promise<void> {
    const match = /^([0-9a-f]{64})\.([a-z0-9]+)$/.exec(name);
    const fn = (digestFunctions as readonly string[]).indexOf(match?.[2] ?? "");
    const hex = match?.[1];
    if (hex === undefined || fn < 0 || this.#isKnown(fn, hex)) return;
    const age = await stat(join(folder, name)).then(
      ({ mtimeMs, ctimeMs }) => this.#core.clock.wallMs() - Math.max(mtimeMs, ctimeMs),
      () => 0,
    );
    if (age < ageMs) return;
    await this.#core.files.remove({ fn, hex }, () => this.#isKnown(fn, hex));
    this.#core.options.report("an unknown file was removed", { name });
  }

  #isKnown(fn: number, hex: string): boolean {
    const key = new Uint32Array(keyWords);
    keyFromHex(key, 0, hex);
    return this.#core.holdings.table.find(key, fn) !== noEntry;
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
