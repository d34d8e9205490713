/** Kills the writer again and again, at random moments, and checks each time that the store kept its promises. */
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#door/system-clock.ts";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { openDiskStore, type DiskStore } from "#blobs/disk/open.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { WriterSettings } from "./writer.ts";
import { keyOf, tenant, thing, uploadKey } from "./things.ts";
import { clearAway } from "#testing/clear-away.ts";

export type Mode = { readonly name: string } & Pick<WriterSettings, "sizeBytesMax" | "promisedMs" | "compression">;

const MiB = 1024 * 1024;

/** With space for everything; and with so little that blobs are evicted all the time, and only pins are promises. */
export const modes: readonly Mode[] = [
  { name: "roomy", sizeBytesMax: 20_000 * MiB, promisedMs: 86_400_000, compression: "none" },
  { name: "roomy, zstd", sizeBytesMax: 20_000 * MiB, promisedMs: 86_400_000, compression: "zstd" },
  { name: "tight", sizeBytesMax: 64 * MiB, promisedMs: 0, compression: "none" },
];

export type Outcome = {
  readonly rounds: number;
  readonly acknowledged: number;
  readonly checked: number;
  readonly problems: readonly string[];
};

export async function runRounds(
  mode: Mode,
  { rounds, seed, say }: { readonly rounds: number; readonly seed: string; readonly say: (line: string) => void },
): Promise<Outcome> {
  const root = mkdtempSync(join(tmpdir(), "millrace-kill-"));
  const random = new Random(seed);
  const judge = new Judge(mode);
  try {
    for (let round = 1; round <= rounds && judge.problems.length === 0; round += 1) {
      const lifeMs = 30 + random.below(400);
      const lines = await killedAfter({ root, from: judge.next, lanes: 8, ...mode }, lifeMs);
      await judge.look(root, lines, round);
      if (round % 10 === 0) say(`${mode.name}: round ${round}, ${judge.acknowledged} stored, ${judge.checked} checked`);
    }
    const { acknowledged, checked, problems } = judge;
    return { rounds, acknowledged, checked, problems };
  } finally {
    clearAway(root);
  }
}

/** The writer's output until it was killed. The clock runs from when its store was open. */
async function killedAfter(settings: WriterSettings, lifeMs: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "writer.ts"), JSON.stringify(settings)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  let errors = "";
  let timer: NodeJS.Timeout | undefined;
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    timer ??= setTimeout(() => child.kill("SIGKILL"), lifeMs);
    text += more;
  });
  child.stderr.setEncoding("utf8").on("data", (more: string) => (errors += more));
  const [code, signal] = await new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve) => {
    child.once("close", (exit, by) => resolve([exit, by]));
  });
  clearTimeout(timer);
  if (signal !== "SIGKILL") throw new Error(`the writer ended by itself (${code}):\n${errors}`);
  return text.split("\n").slice(0, -1);
}

class Judge {
  readonly #mode: Mode;
  readonly problems: string[] = [];
  readonly #stored = new Set<number>();
  readonly #parts = new Map<number, number>();
  next = 0;
  acknowledged = 0;
  checked = 0;

  constructor(mode: Mode) {
    this.#mode = mode;
  }

  async look(root: string, lines: readonly string[], round: number): Promise<void> {
    let highest = this.next;
    const fresh: number[] = [];
    for (const line of lines) {
      const [word, number = "", size = ""] = line.split(" ");
      if (word === "open") continue;
      highest = Math.max(highest, Number(number));
      if (word === "part") this.#parts.set(Number(number), Number(size));
      else if (word === "stored" && !this.#parts.has(Number(number))) fresh.push(Number(number));
    }
    for (const number of fresh) this.#stored.add(number);
    this.acknowledged += fresh.length;
    const { name: _, ...options } = this.#mode;
    const opened = await openDiskStore(root, { clock: systemClock, ...options });
    try {
      // All new ones, some old ones, and those that were never acknowledged.
      const old = [...this.#stored].filter((number) => number % 37 === round % 37);
      for (const number of new Set([...fresh, ...old])) await this.#mustBeThere(opened, number);
      for (let number = this.next; number < highest + 20; number += 1) await this.#mustBeRight(opened, number);
      for (const [number, size] of this.#parts) await this.#mustGoOn(opened, number, size);
      this.#parts.clear();
    } finally {
      await opened.close();
    }
    this.next = highest + 20;
  }

  async #mustBeThere(opened: DiskStore, number: number): Promise<void> {
    const one = thing(number);
    const isPromised = this.#mode.promisedMs > 0 || one.kind === "pinned";
    const { blobs } = opened.forTenant(tenant);
    const missing = await blobs.missing([one.digest]);
    if (missing.length > 0) {
      if (isPromised) this.problems.push(`${number} (${one.kind}) was acknowledged and is not there`);
      return;
    }
    await this.#mustBeRight(opened, number);
    if (one.kind !== "name" || this.#mode.promisedMs === 0) return;
    const entry = await opened.index.get(keyOf(number));
    if (entry?.digest !== one.digest) this.problems.push(`the name of ${number} was acknowledged and is not there`);
  }

  /** A blob that is reported to exist has its bytes. */
  async #mustBeRight(opened: DiskStore, number: number): Promise<void> {
    const one = thing(number);
    const { blobs } = opened.forTenant(tenant);
    if ((await blobs.missing([one.digest])).length > 0) return;
    this.checked += 1;
    const parts: Uint8Array[] = [];
    try {
      for await (const part of blobs.read(one.digest)) parts.push(Uint8Array.from(part));
    } catch (error) {
      this.problems.push(`${number} (${one.kind}) is said to be there and cannot be read: ${String(error)}`);
      return;
    }
    const got = digestOf(Buffer.concat(parts), one.kind === "blake3" ? "blake3" : "sha256");
    if (got !== one.digest) this.problems.push(`${number} (${one.kind}) has other bytes than its digest says`);
  }

  /** What was committed of an upload is found, and it can be finished. */
  async #mustGoOn(opened: DiskStore, number: number, sizeBytes: number): Promise<void> {
    const one = thing(number);
    const { uploads } = opened.forTenant(tenant);
    const kept = await uploads.committed(uploadKey(one));
    if (kept.sizeBytes < sizeBytes)
      return void this.problems.push(
        `of upload ${number}, ${sizeBytes} bytes were committed and ${kept.sizeBytes} are there`,
      );
    if (kept.complete) return;
    try {
      const upload = await uploads.open(uploadKey(one), kept.sizeBytes);
      await upload.append(one.bytes.subarray(kept.sizeBytes));
      await upload.finish();
    } catch (error) {
      // A tight store is full of pins in the end.
      if (isFault(error, "exhausted") && this.#mode.promisedMs === 0) return;
      throw error;
    }
    this.#stored.add(number);
    await this.#mustBeRight(opened, number);
  }
}
