/**
 * Whether the node can take work, and which part of it cannot. Liveness is another question: a full disk or a lost
 * database is no reason to restart the node, so /livez does not ask this.
 *
 * The answers contain no paths, names or addresses, because any caller may ask.
 */
import { access, constants, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { formatSize } from "#base/units.ts";
import type { ShardReach } from "#shard/keeper/keeper.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import type { Config } from "#app/config/config.ts";

export type ReadinessPorts = {
  readonly clock: Clock;
  readonly state: () => NodeStatus["state"];
  readonly reach: () => ShardReach;
  /** The node's own folder: a file is written there as a test. */
  readonly dataFolder: string;
  /** Other folders that must be writable. */
  readonly otherFolders: readonly string[];
  /** With less free space in one of them, the node is not ready. */
  readonly freeBytesMin: number;
  /** The journal must have answered within this time. */
  readonly journalMsMax: number;
};

const lookEveryMs = 2_000;
/** A disk that has not answered for this long counts as failed. */
const diskMsMax = 10_000;
const probeName = "ready.probe";

export class Readiness implements AsyncDisposable {
  readonly #ports: ReadinessPorts;
  #diskTrouble: string | undefined;
  #lookingSinceMono: number | undefined;
  #hasStarted = false;
  #isEnded = false;
  #stopTimer: () => void = () => {};

  private constructor(ports: ReadinessPorts) {
    this.#ports = ports;
  }

  /** Checks the disk from now on, periodically. */
  static async start(ports: ReadinessPorts): Promise<Readiness> {
    const readiness = new Readiness(ports);
    await readiness.#look();
    return readiness;
  }

  /** Why the node is not ready, for people; empty if it can take work. */
  notReady(): readonly string[] {
    const reach = this.#ports.reach();
    const found = [this.#leaving(), this.#journal(reach), this.#shards(reach), this.#disk()];
    return found.filter((why) => why !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    this.#stopTimer();
    await rm(join(this.#ports.dataFolder, probeName), { force: true }).catch(() => {});
  }

  #leaving(): string | undefined {
    const state = this.#ports.state();
    if (state === "up") return undefined;
    return state === "new" ? "node: it is starting" : "node: it is draining or has left";
  }

  #journal({ lookedMono }: ShardReach): string | undefined {
    const { clock, journalMsMax } = this.#ports;
    if (lookedMono === undefined) return "journal: it has not been read yet";
    const silentMs = clock.monotonicMs() - lookedMono;
    if (silentMs <= journalMsMax) return undefined;
    return `journal: no answer for ${Math.round(silentMs / 1_000)} s`;
  }

  /**
   * At first all shards must have an owner, unless they cannot be read. Later it is enough that some have: while the
   * shards of a lost node wait for another owner, otherwise no node would be ready.
   */
  #shards({ shards, reachable, troubled }: ShardReach): string | undefined {
    this.#hasStarted ||= reachable > 0 && reachable + troubled >= shards;
    if (this.#hasStarted && reachable > 0) return undefined;
    return `shards: ${reachable} of ${shards} have an owner, ${troubled} cannot be read`;
  }

  #disk(): string | undefined {
    const since = this.#lookingSinceMono;
    if (since !== undefined && this.#ports.clock.monotonicMs() - since > diskMsMax) return "disk: it does not answer";
    return this.#diskTrouble;
  }

  async #look(): Promise<void> {
    const { clock, dataFolder, otherFolders, freeBytesMin } = this.#ports;
    this.#lookingSinceMono = clock.monotonicMs();
    const found = await Promise.all([
      diskTrouble(dataFolder, freeBytesMin, () => writeFile(join(dataFolder, probeName), ".", { mode: 0o600 })),
      ...otherFolders.map((folder) => diskTrouble(folder, freeBytesMin, () => access(folder, constants.W_OK))),
    ]);
    this.#lookingSinceMono = undefined;
    this.#diskTrouble = found.find((trouble) => trouble !== undefined);
    if (!this.#isEnded) this.#stopTimer = clock.after(lookEveryMs, () => void this.#look());
  }
}

async function diskTrouble(
  folder: string,
  freeBytesMin: number,
  tryIt: () => Promise<void>,
): Promise<string | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder);
    const freeBytes = bavail * bsize;
    if (freeBytes < freeBytesMin) return `disk: ${formatSize(freeBytes)} free, needs ${formatSize(freeBytesMin)}`;
    await tryIt();
    return undefined;
  } catch (error) {
    return `disk: it cannot be written (${(error as NodeJS.ErrnoException).code ?? "unknown"})`;
  }
}

/** Folders that the configuration puts outside the data folder. */
export const foldersElsewhere = ({ journal, blobs }: Config): readonly string[] =>
  [
    journal.kind === "sqlite" ? journal.directory : undefined,
    blobs.kind === "memory" ? undefined : blobs.directory,
  ].filter((folder) => folder !== undefined);
