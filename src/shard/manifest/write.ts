/** Writes the manifest of a stage whose tasks have all ended, page by page, and pins it. */
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { Stage } from "#kernel/model/entities.ts";
import type { Evidence } from "#kernel/model/model.ts";
import { pageTasks, type TaskArray } from "#kernel/model/task-array.ts";
import { arrayKey } from "#kernel/model/task-set.ts";
import { manifestFormat, readPage, readRoot, writePage, writeRoot } from "./format.ts";
import type { ManifestEntry, ManifestRoot, ManifestSet } from "./format.ts";

export type WriteManifestPorts = {
  readonly blobs: BlobStore;
  /** The longest that the manifest's job may need it. */
  readonly pinMs: number;
  /** Whether the manifest is still wanted: a result may become invalid while it is being written. */
  readonly isWanted: () => boolean;
};

export type WrittenManifest = { readonly digest: Digest; readonly evidence: Evidence };

/** Undefined if it is no longer wanted. */
export async function writeManifest(stage: Stage, ports: WriteManifestPorts): Promise<WrittenManifest | undefined> {
  return await new ManifestWriting(stage, ports).write();
}

class ManifestWriting {
  readonly #stage: Stage;
  readonly #ports: WriteManifestPorts;
  readonly #written: Digest[] = [];

  constructor(stage: Stage, ports: WriteManifestPorts) {
    this.#stage = stage;
    this.#ports = ports;
  }

  async write(): Promise<WrittenManifest | undefined> {
    const { blobs, pinMs } = this.#ports;
    const { base } = this.#stage.manifest ?? {};
    const before = base === undefined ? undefined : readRoot(await wholeBlob(blobs, base));
    const sets = await this.#sets(before);
    if (!sets || !this.#ports.isWanted()) return undefined;
    const { shape, generation } = this.#stage;
    const root: ManifestRoot = { format: manifestFormat, stage: shape.name, generation, pageTasks, sets };
    const digest = await this.#put(writeRoot(root));
    const pin = await blobs.pin(this.#written, pinMs);
    if ("missing" in pin) throw new Fault("unavailable", "pin a manifest", { missing: pin.missing.length });
    return { digest, evidence: { digests: [digest], pinnedForMs: Math.floor(pin.pinnedForMs) } };
  }

  async #sets(before: ManifestRoot | undefined): Promise<readonly ManifestSet[] | undefined> {
    const sets: ManifestSet[] = [];
    const { tasks, arrays = [] } = this.#stage;
    if (tasks.length > 0) sets.push(await this.#listed());
    for (const array of arrays) {
      const old = before?.sets[sets.length];
      const pages: Digest[] = [];
      for (let first = 0; first < array.plan.count; first += pageTasks) {
        if (!this.#ports.isWanted()) return undefined;
        pages.push(await this.#page(array, first, old?.pages[first / pageTasks]));
      }
      sets.push({ first: array.plan.first ?? 0, tasks: array.plan.count, pages });
    }
    return sets;
  }

  async #listed(): Promise<ManifestSet> {
    const { tasks } = this.#stage;
    const pages: Digest[] = [];
    for (let first = 0; first < tasks.length; first += pageTasks) {
      const entries = tasks.slice(first, first + pageTasks).map(({ no, plan, phase, generation, result }) => ({
        task: no,
        key: plan.key,
        phase,
        generation,
        ...(result && { payload: result.payload, digests: result.digests }),
      }));
      pages.push(await this.#put(writePage(entries)));
    }
    return { tasks: tasks.length, pages };
  }

  /** Results that have left memory are copied from the page of the previous generation. */
  async #page(array: TaskArray, first: number, old: Digest | undefined): Promise<Digest> {
    const entries: ManifestEntry[] = [];
    const copied: number[] = [];
    const end = Math.min(array.plan.count, first + pageTasks);
    for (let place = first; place < end; place += 1) {
      const entry = entryOf(array, place);
      if (entry.phase === "SUCCEEDED" && entry.payload === undefined) copied.push(place - first);
      entries.push(entry);
    }
    if (copied.length > 0) {
      if (old === undefined) throw new Fault("corrupt", "write a manifest", { why: "a result is nowhere", first });
      this.#written.push(old);
      if (copied.length === entries.length) return old;
      const known = readPage(await wholeBlob(this.#ports.blobs, old));
      for (const at of copied) entries[at] = known[at] as ManifestEntry;
    }
    return await this.#put(writePage(entries));
  }

  async #put(bytes: Uint8Array): Promise<Digest> {
    const digest = sha256Digest(bytes);
    await this.#ports.blobs.write(digest, bytes);
    this.#written.push(digest);
    return digest;
  }
}

function entryOf(array: TaskArray, place: number): ManifestEntry {
  const page = array.pageOf(place);
  const result = array.resultAt(place);
  return {
    task: array.no + place,
    key: arrayKey(array.plan, place),
    phase: array.phaseAt(place),
    generation: page?.generations[place % pageTasks] || 1,
    ...(result && { payload: result.payload, digests: result.digests }),
  };
}
