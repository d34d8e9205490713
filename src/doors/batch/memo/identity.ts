/**
 * What a file is recognised by. By default its place on disk with size and times to the nanosecond: every change of a
 * file changes its ctime, which no program can set. Or by its bytes, which are read once for that.
 */
import { stat } from "node:fs/promises";
import type { SourceFile } from "#doors/batch/plan/source.ts";
import type { Engines } from "#doors/batch/run/engines.ts";

export type IdentityKind = "place" | "content";

export async function placeOf(path: string): Promise<string | undefined> {
  const about = await stat(path, { bigint: true }).catch(() => undefined);
  return about && `${about.ino}-${about.size}-${about.mtimeNs}-${about.ctimeNs}`;
}

const keptMax = 10_000;

/** Digests of files, kept while the files stay where and as they are. */
export class ContentDigests {
  readonly #kept = new Map<string, Promise<string>>();
  readonly #engines: Engines;

  constructor(engines: Engines) {
    this.#engines = engines;
  }

  of({ path, place }: SourceFile, spillFolder: string, signal: AbortSignal): Promise<string> {
    const at = `${path}\0${place}`;
    const known = this.#kept.get(at);
    if (known) return known;
    const digest = this.#read(path, spillFolder, signal);
    this.#kept.set(at, digest);
    digest.catch(() => this.#kept.delete(at));
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > keptMax && oldest !== undefined) this.#kept.delete(oldest);
    return digest;
  }

  async #read(path: string, spillFolder: string, signal: AbortSignal): Promise<string> {
    const limits = { memoryBytes: 64 * 1024 * 1024, spillBytes: 1024 };
    const work = { paths: [], spillFolder, ...limits, settings: [], statements: [], digestOf: path };
    return (await this.#engines.run(work, signal)).digest ?? "";
  }
}
