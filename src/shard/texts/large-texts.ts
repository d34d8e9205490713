/**
 * Keeps long texts in the store rather than in the memory of shards, and reads them back for answers. They are pinned
 * for as long as their job can need them, before the command that contains them is decided (K7).
 */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { Submit } from "#kernel/model/command.ts";
import { digestReferredTo, isReference, referenceTo } from "#kernel/model/text-reference.ts";
import { mapCommand, type MapText, type TextCommand } from "./text-fields.ts";

export type LargeTextsPorts = {
  readonly blobs: BlobStore;
  /** Longer texts are kept in the store. */
  readonly inlineLengthMax: number;
  /** Whether every member of the cluster can read references; until then long texts stay inline. */
  readonly isOn: () => boolean;
  /** Even longer texts are left for the kernel to refuse. */
  readonly lengthMax: number;
};

/**
 * After its deadline a job still ends, and its results are published: keep its texts this much longer, which also
 * covers differing clocks.
 */
const afterMs = 24 * 3_600_000;
/** For a job whose deadline is not known here: the longest possible. */
const longestMs = 35 * 24 * 3_600_000;
const writesAtOnceMax = 8;

export class LargeTexts {
  readonly #blobs: BlobStore;
  readonly #inlineLengthMax: number;
  readonly #lengthMax: number;
  readonly #isOn: () => boolean;

  constructor({ blobs, inlineLengthMax, isOn, lengthMax }: LargeTextsPorts) {
    this.#blobs = blobs;
    this.#isOn = isOn;
    this.#inlineLengthMax = inlineLengthMax;
    this.#lengthMax = lengthMax;
  }

  /**
   * Whether there is a text to store. A caller's text that looks like a reference is stored too, however short: it is
   * not a reference.
   */
  hasLarge(command: TextCommand): boolean {
    if (!this.#isOn()) return false;
    let found = false;
    try {
      mapCommand(command, (text) => {
        found ||= this.#isLarge(text);
        return text;
      });
    } catch {
      return false; // malformed: the kernel refuses it
    }
    return found;
  }

  /** The same command with references, although nothing is stored yet: to see what it would lead to. */
  referring(submit: Submit): Submit {
    const toReference = this.#toReference(() => {});
    return { ...(mapCommand(submit, toReference) as Submit), textsKept: true };
  }

  async keep(command: TextCommand, forMs = longestMs): Promise<TextCommand> {
    const found = new Map<Digest, Uint8Array>();
    const kept = mapCommand(
      command,
      this.#toReference((digest, bytes) => found.set(digest, bytes)),
    );
    await this.#write(found, forMs);
    return { ...kept, textsKept: true };
  }

  /** Whether what was read back has long texts of an older version. References in it were made by a node. */
  hasLargeIn(each: (map: MapText) => void): boolean {
    if (!this.#isOn()) return false;
    let found = false;
    each((text) => {
      found ||= !isReference(text) && this.#isLarge(text);
      return text;
    });
    return found;
  }

  /** Stores those texts, and returns the mapping to their references. */
  async keepAll(each: (map: MapText) => void): Promise<MapText> {
    const found = new Map<Digest, Uint8Array>();
    const kept = new Map<string, string>();
    const toReference = this.#toReference((digest, bytes) => found.set(digest, bytes));
    each((text) => {
      if (!isReference(text) && this.#isLarge(text)) kept.set(text, toReference(text));
      return text;
    });
    await this.#write(found, longestMs);
    return (text) => kept.get(text) ?? text;
  }

  /** One text in full. Throws a Fault if it cannot be read. */
  async read(text: string): Promise<string> {
    const digest = digestReferredTo(text);
    if (digest === undefined) return text;
    const bytes = await wholeBlob(this.#blobs, digest);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  }

  /** Reads each text that `each` visits, and returns the mapping; texts that cannot be read are in `lost`. */
  async readAll(each: (map: MapText) => void): Promise<{ readonly map: MapText; readonly lost: Map<string, unknown> }> {
    const wanted = new Set<string>();
    each((text) => {
      if (isReference(text)) wanted.add(text);
      return text;
    });
    const found = new Map<string, string>();
    const lost = new Map<string, unknown>();
    await inTurns([...wanted], async (text) => {
      try {
        found.set(text, await this.read(text));
      } catch (error) {
        lost.set(text, error);
      }
    });
    return { map: (text) => found.get(text) ?? text, lost };
  }

  #isLarge(text: unknown): boolean {
    if (typeof text !== "string" || text.length > this.#lengthMax) return false;
    // The store holds bytes: a text that has no UTF-8 form stays inline.
    return (text.length > this.#inlineLengthMax || isReference(text)) && text.isWellFormed();
  }

  #toReference(found: (digest: Digest, bytes: Uint8Array) => void): MapText {
    return (text) => {
      if (!this.#isLarge(text)) return text;
      const bytes = Buffer.from(text, "utf8");
      const digest = `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
      found(digest, bytes);
      return referenceTo(digest);
    };
  }

  async #write(found: ReadonlyMap<Digest, Uint8Array>, forMs: number): Promise<void> {
    if (found.size === 0) return;
    await inTurns([...found], ([digest, bytes]) => this.#blobs.write(digest, bytes));
    const pin = await this.#blobs.pin([...found.keys()], forMs + afterMs);
    if ("missing" in pin) throw new Fault("unavailable", "keep a long text", { missing: pin.missing.length });
  }
}

async function inTurns<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += writesAtOnceMax)
    await Promise.all(items.slice(i, i + writesAtOnceMax).map(run));
}
