/**
 * The node's half of keeping what steps leave: it stores the pieces that the job has sealed and records them as the
 * task's checkpoint. The next attempt, on any machine, gets them back and goes on after the last step that ended.
 */
import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { WorkPlace } from "#door/ports.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { StepLine } from "#doors/ci/result.ts";
import { manifestName, partName } from "#doors/ci/resume/pack.ts";
import { keptFolder, type KeptAnswer, restoredFolder, stateName } from "#doors/ci/resume/step-keeper.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { formatLine } from "./log/log-line.ts";
import { logName } from "./log/log-sender.ts";
import { Uploads } from "#worker/outputs/upload.ts";
import type { Left } from "#worker/runner.ts";

const digest = z.custom<Digest>((value) => typeof value === "string" && value.length < 200);
const line = z.object({
  number: z.number(),
  name: z.string(),
  conclusion: z.enum(["success", "failure", "cancelled", "skipped"]),
  atMs: z.number(),
  tookMs: z.number(),
});

/** A place between two steps that a job can go on from. */
const KeptPoint = z.object({
  next: z.number(),
  /** What the step after it has as its number. */
  numbered: z.number(),
  /** How many of the deltas lead to it. */
  deltas: z.number(),
  state: digest,
  logBytes: z.number(),
});

type KeptPoint = z.output<typeof KeptPoint>;

const Kept = z.object({
  version: z.literal(1),
  /** Where the job saw its folder: paths in its files and variables lead there. */
  seenAs: z.string(),
  /** The attempt whose stream has the log so far. */
  token: z.number(),
  logBytes: z.number(),
  next: z.number(),
  steps: z.array(line),
  deltas: z.array(z.object({ manifest: digest, parts: z.array(digest) })),
  state: digest,
  /** All places that the deltas lead through, the last one as well. */
  points: z.array(KeptPoint).default([]),
  /** By `owner/repo@ref`: the commits that the job uses, also when it goes on. */
  actions: z.record(z.string(), z.string()).default({}),
  /** How often the job had ended without success before this: it never goes on from a try that is over. */
  tries: z.number().default(0),
  /** The whole log, sealed, if the attempt that wrote it is of another run. */
  log: digest.optional(),
});

/** What a task's checkpoint says. */
export type Kept = z.output<typeof Kept>;
type Delta = Kept["deltas"][number];

export function readKept(payload: string): Kept | undefined {
  try {
    return Kept.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}

/** Beyond so many pieces, or so much to say about them, the job is asked for everything again, as one. */
const digestsMax = 300;
const payloadLengthMax = 60_000;
const partsMax = 4_096;
const pieceBytesMax = 16 * 2 ** 30;

/** What a job says in its file of steps; it may say anything. */
export const KeptLine = z.object({
  kept: z.int().min(0).max(100_000),
  parts: z.int().min(0).max(partsMax),
  isWhole: z.boolean(),
  next: z.int().min(0).max(100_000),
  numbered: z.int().min(0).max(1_000_000).default(0),
  logBytes: z.int().min(0),
});

export type KeptLine = z.output<typeof KeptLine>;

export type KeptPorts = {
  readonly folder: string;
  readonly seenAs: string;
  readonly blobs: BlobStore;
  readonly token: number;
  readonly checkpoint: (left: Left) => Promise<void>;
  /** Resolves when so much of the log is durable. */
  readonly logged: (bytes: number) => Promise<void>;
  readonly steps: () => readonly StepLine[];
  readonly actions: Kept["actions"];
  readonly tries: number;
  /** Whether the claim still stands; where it does not, the next attempt may have begun, and no step may follow. */
  readonly isHeld: () => boolean;
};

export class KeptSteps {
  readonly #ports: KeptPorts;
  #before: Kept | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(ports: KeptPorts, before: Kept | undefined) {
    this.#ports = ports;
    this.#before = before;
  }

  /** One after the other; the job waits for the answer, so there is rarely a second. */
  take(said: KeptLine): void {
    this.#last = this.#last.then(async () => {
      const answer = await this.#keep(said).catch((error: unknown) => this.#refused(error));
      if (answer) this.#answer(said.kept, answer);
    });
  }

  /** Not kept, and the job goes on; without an answer it waits until it is ended. */
  #refused(error: unknown): KeptAnswer | undefined {
    return isRejected(error, "token-stale") || !this.#ports.isHeld() ? undefined : "no";
  }

  /** What was kept last. */
  get kept(): Kept | undefined {
    return this.#before;
  }

  async #keep({ kept, parts, isWhole, next, numbered, logBytes }: KeptLine): Promise<KeptAnswer> {
    const { folder, seenAs, blobs, token, checkpoint, logged, steps, actions, tries } = this.#ports;
    using below = openBelow(folder, [keptFolder, String(kept)]);
    const uploads = new Uploads("sha256", { bytesMax: pieceBytesMax });
    const piece = async (name: string): Promise<Digest> => {
      const found = await uploads.file(Buffer.from(join(below.path, name)));
      if (!found) throw new Error(`${name} is no file`);
      return found.digest;
    };
    const [manifest, state] = [await piece(manifestName), await piece(stateName)];
    const pieces: Digest[] = [];
    for (let part = 0; part < parts; part += 1) pieces.push(await piece(partName(part)));
    const delta = { manifest, parts: pieces };
    const reached = { next, numbered, logBytes, state, steps: steps(), delta };
    const now = { ...after(isWhole ? undefined : this.#before, reached), seenAs, token, actions, tries };
    const payload = JSON.stringify(now);
    const digests = digestsOf(now);
    if (!isWhole && (digests.length > digestsMax || payload.length > payloadLengthMax)) return "whole";
    await Promise.all([uploads.send(blobs), logged(logBytes)]);
    await checkpoint({ payload, digests });
    this.#before = now;
    return "yes";
  }

  /** A job may have put anything there: nothing that exists is followed or changed. */
  #answer(kept: number, answer: KeptAnswer): void {
    try {
      using below = openBelow(this.#ports.folder, [keptFolder]);
      writeFileSync(join(below.path, `${kept}.${answer}`), "", { flag: "wx", mode: 0o644 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
  }
}

export type Reached = Pick<KeptPoint, "next" | "numbered" | "logBytes" | "state"> & {
  readonly steps: readonly StepLine[];
  readonly delta: Delta;
};

/** What is kept when a step more has ended; without `before` the delta is all that there is. */
export function after(
  before: Pick<Kept, "deltas" | "points"> | undefined,
  { next, numbered, logBytes, state, steps, delta }: Reached,
): Pick<Kept, "version" | "next" | "logBytes" | "state" | "steps" | "deltas" | "points"> {
  const deltas = [...(before?.deltas ?? []), delta];
  const points = [...(before?.points ?? []), { next, numbered, deltas: deltas.length, state, logBytes }];
  return { version: 1, next, logBytes, state, steps: [...steps], deltas, points };
}

/** All pieces that it names. */
export const digestsOf = ({ state, deltas, points }: Kept): readonly Digest[] => [
  ...new Set([state, ...deltas.flatMap((each) => [each.manifest, ...each.parts]), ...points.map((one) => one.state)]),
];

/** As it was when the step of this number was about to begin; undefined if that is not known any more. */
export function keptBefore(kept: Kept, step: number): Kept | undefined {
  const at = kept.points.findIndex(({ numbered }) => numbered === step);
  const point = kept.points[at];
  if (!point) return undefined;
  const { next, deltas, state, logBytes } = point;
  return {
    ...kept,
    next,
    state,
    logBytes,
    deltas: kept.deltas.slice(0, deltas),
    points: kept.points.slice(0, at + 1),
    steps: kept.steps.filter(({ number }) => number < step),
  };
}

/** Puts the pieces into the job's folder, where its own program opens them. */
export async function bringKept({ deltas, state }: Kept, folder: string, blobs: BlobStore): Promise<string> {
  const restored = join(folder, restoredFolder);
  const bring = async (piece: Digest, path: string): Promise<void> =>
    await writeFile(path, blobs.read(piece), { flag: "wx", mode: 0o600 });
  for (const [at, { manifest, parts }] of deltas.entries()) {
    const into = join(restored, String(at));
    await mkdir(into, { recursive: true, mode: 0o700 });
    await bring(manifest, join(into, manifestName));
    for (const [part, piece] of parts.entries()) await bring(piece, join(into, partName(part)));
  }
  await bring(state, join(restored, String(deltas.length - 1), stateName));
  return restored;
}

/**
 * The log as it was when the job was kept last, from the stream of that attempt. What cannot be read is left out: the
 * job is worth more than its log.
 */
export async function bringLog(
  { token, logBytes, log }: Kept,
  path: string,
  { tenant, taskId }: Granted,
  { live, blobs }: Pick<WorkPlace, "live"> & { readonly blobs: BlobStore },
): Promise<void> {
  const ended = new AbortController();
  const before =
    log === undefined
      ? live?.streams.read({ tenant, task: taskId, token, name: logName }, 0, ended.signal)
      : blobs.read(log);
  await using file = await open(path, "a");
  let left = logBytes;
  const timer = setTimeout(() => ended.abort(), logMsMax);
  try {
    for await (const piece of left > 0 && before ? before : []) {
      await file.write(piece.subarray(0, left));
      left -= Math.min(left, piece.length);
      if (left === 0) break;
    }
  } catch (error) {
    if (!isFault(error) && !ended.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
  const gap = {
    at: new Date().toISOString(),
    kind: "warning",
    text: `${left} bytes of the log so far are lost`,
  } as const;
  if (left > 0) await file.write(formatLine(gap));
}

const logMsMax = 60_000;

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A folder below the job's, opened part by part without following links: the node may read what a job may not, and a
 * job can put a link anywhere at any time. The path leads to the open folder, whatever becomes of its name.
 */
function openBelow(folder: string, parts: readonly string[]): Disposable & { readonly path: string } {
  let fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  for (const part of parts) {
    const outer = fd;
    try {
      fd = openSync(join(throughDescriptor(outer, folder), part), folderFlags);
    } finally {
      closeSync(outer);
    }
    folder = join(folder, part);
  }
  return { path: throughDescriptor(fd, folder), [Symbol.dispose]: () => closeSync(fd) };
}

/** Only Linux has these names; elsewhere jobs have no other user than the node. */
const throughDescriptor = (fd: number, path: string): string =>
  process.platform === "linux" ? `/proc/self/fd/${fd}` : path;
