/** "Why did it miss?": the closest earlier action of the same target, and exactly what differs. */
import { digestText, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { Action, Command, Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, type Message } from "#wire/message.ts";
import { compareActions, compareCommands } from "./compare-commands.ts";
import { compareTrees } from "./compare-trees.ts";
import type { Difference } from "./difference.ts";
import type { Miss, Seen, Stored } from "./seen.ts";

export type Explanation = {
  readonly action: Digest;
  readonly miss?: Miss;
  /** `unknown`: no miss of it is recorded. `unreadable`: its bytes are not in the store, so nothing can be compared. */
  readonly verdict: "unknown" | "incomplete" | "revoked" | "first-of-its-target" | "unreadable" | "differs";
  readonly nearest?: Stored;
  readonly differences: readonly Difference[];
};

export type ActionLookup = { readonly tenant: string; readonly instance: string; readonly action: Digest };

const differencesMax = 100;
const directoriesMax = 5_000;
const messageBytesMax = 16 * 1024 * 1024;

export async function explainMiss(lookup: ActionLookup, seen: Seen, blobs: BlobStore): Promise<Explanation> {
  const { tenant, instance, action } = lookup;
  const miss = await seen.missOf(tenant, instance, action);
  if (!miss) return { action, verdict: "unknown", differences: [] };
  const head = { action, miss } as const;
  if (miss.reason.kind === "incomplete" || miss.reason.kind === "revoked")
    return { ...head, verdict: miss.reason.kind, differences: [] };
  const earlier = (await seen.earlier(tenant, instance, miss)).filter((one) => one.action !== action);
  if (earlier.length === 0) return { ...head, verdict: "first-of-its-target", differences: [] };
  const reader = new ActionReader(blobs, parseDigest(action)?.fn ?? "sha256");
  const now = await reader.action(action);
  if (!now) return { ...head, verdict: "unreadable", differences: [] };
  const nearest = await nearestOf(earlier, now, reader);
  if (!nearest) return { ...head, verdict: "unreadable", differences: [] };
  return { ...head, verdict: "differs", nearest: nearest.stored, differences: await reader.all(nearest, now) };
}

type Seeing = { readonly action: Action; readonly command: Command | undefined };
type Candidate = Seeing & { readonly stored: Stored };

/**
 * The one with the fewest differences outside the input tree; of equals the one with the same inputs, then the last.
 */
async function nearestOf(
  earlier: readonly Stored[],
  now: Seeing,
  reader: ActionReader,
): Promise<Candidate | undefined> {
  let best: { readonly candidate: Candidate; readonly distance: number } | undefined;
  for (const stored of earlier) {
    const seeing = await reader.action(stored.action);
    if (!seeing) continue;
    const sameInputs = sameDigest(seeing.action.inputRootDigest, now.action.inputRootDigest);
    const distance = 2 * outside(seeing, now).length + (sameInputs ? 0 : 1);
    if (!best || distance < best.distance) best = { candidate: { ...seeing, stored }, distance };
  }
  return best?.candidate;
}

function outside(before: Seeing, after: Seeing): readonly Difference[] {
  const found = compareActions(before.action, after.action);
  const [was, is] = [before.action.commandDigest, after.action.commandDigest];
  if (sameDigest(was, is)) return found;
  if (before.command && after.command) return [...found, ...compareCommands(before.command, after.command)];
  return [...found, { kind: "unseen", what: "command", path: "", before: was?.hash, after: is?.hash }];
}

type DigestLike = { readonly hash: string; readonly sizeBytes: number };

const sameDigest = (one: DigestLike | undefined, other: DigestLike | undefined): boolean =>
  one?.hash === other?.hash && one?.sizeBytes === other?.sizeBytes;

class ActionReader {
  readonly #blobs: BlobStore;
  readonly #fn: DigestFunction;

  constructor(blobs: BlobStore, fn: DigestFunction) {
    this.#blobs = blobs;
    this.#fn = fn;
  }

  async action(digest: Digest): Promise<Seeing | undefined> {
    const action = await this.#read(Action, digest);
    return action && { action, command: await this.#part(Command, action.commandDigest) };
  }

  async all(before: Seeing, after: Seeing): Promise<readonly Difference[]> {
    const found = outside(before, after);
    const [was, is] = [before.action.inputRootDigest, after.action.inputRootDigest];
    if (!was || !is || sameDigest(was, is)) return found;
    const limits = { differencesMax, directoriesMax };
    const trees = await compareTrees({ before: was, after: is }, (digest) => this.#part(Directory, digest), limits);
    return [...found, ...trees];
  }

  #part<T>(message: Message<T>, digest: DigestLike | undefined): Promise<T | undefined> {
    return digest
      ? this.#read(message, digestText(this.#fn, digest.hash, digest.sizeBytes))
      : Promise.resolve(undefined);
  }

  /** Undefined if it is missing, too large, or something else. */
  async #read<T>(message: Message<T>, digest: Digest): Promise<T | undefined> {
    const sizeBytes = parseDigest(digest)?.sizeBytes;
    if (sizeBytes === undefined || sizeBytes > messageBytesMax) return undefined;
    try {
      return decode(message, await wholeBlob(this.#blobs, digest));
    } catch (error) {
      if (isFault(error, "not-found") || isFault(error, "invalid")) return undefined;
      throw error;
    }
  }
}
