/**
 * Streams of attempts that ended without a result: the worker died, or the attempt was stopped. Their output is in no
 * blob, so the streams themselves are kept for readers: the newest ones, in a list that outlives the process.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { isFault } from "#base/fault.ts";
import type { Streams } from "#blobs/streams.ts";
import { removeLive, type LiveTask, type StreamKeeper } from "./live-output.ts";

const Entry = z.object({ tenant: z.string(), task: z.string(), token: z.int(), names: z.array(z.string()) });

/** A stream has at most as many bytes as a command's kept output, so this bounds the disk as well. */
const keptMaxDefault = 100;

export class KeptStreams implements StreamKeeper {
  readonly #streams: Streams;
  readonly #folder: string;
  readonly #keptMax: number;
  /** Files of the list, oldest first. */
  readonly #files: string[];

  private constructor(streams: Streams, folder: string, keptMax: number, files: readonly string[]) {
    this.#streams = streams;
    this.#folder = folder;
    this.#keptMax = keptMax;
    this.#files = [...files];
  }

  static async open(streams: Streams, folder: string, keptMax = keptMaxDefault): Promise<KeptStreams> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const dated = await Promise.all(
      (await readdir(folder)).map(async (name) => ({ name, at: (await stat(join(folder, name))).mtimeMs })),
    );
    const files = dated.toSorted((a, b) => a.at - b.at).map(({ name }) => name);
    return new KeptStreams(streams, folder, keptMax, files);
  }

  async keep({ tenant, task, token }: LiveTask, names: readonly string[]): Promise<void> {
    const file = `${randomBytes(12).toString("hex")}.json`;
    await writeFile(join(this.#folder, file), JSON.stringify({ tenant, task, token, names }), { mode: 0o600 });
    this.#files.push(file);
    while (this.#files.length > this.#keptMax) await this.#drop(this.#files.shift() ?? "");
  }

  async #drop(file: string): Promise<void> {
    const path = join(this.#folder, file);
    const entry = Entry.safeParse(await jsonIn(path));
    try {
      if (entry.success) await removeLive(this.#streams, entry.data, entry.data.names);
    } catch (error) {
      if (!isFault(error)) throw error;
    }
    await rm(path, { force: true });
  }
}

async function jsonIn(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined;
  }
}
