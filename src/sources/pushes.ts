/**
 * What was pushed to the repositories that this node keeps, as durable events.
 *
 * PS1 Every change of a branch or a tag by a push becomes an event, also when the node dies right after the change. The
 *     refs that were announced are kept beside the repository; what differs from them is announced before anything else
 *     happens to it.
 * PS2 An event has one id, however often it is announced.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Repository } from "./book.ts";
import { refsIn } from "./copies.ts";
import { noCommit } from "./names.ts";

const Push = z.object({
  repository: z.string(),
  ref: z.string(),
  before: z.string(),
  after: z.string(),
  pusher: z.string(),
  /** Whether an operator pushed it; not known of a push that was found after a crash. */
  isOperators: z.boolean().default(false),
  atMs: z.number(),
});

export type Push = z.output<typeof Push> & {
  /** Unique: the same push has the same id for ever. */
  readonly id: string;
  readonly tenant: string;
};

export type Pusher = { readonly name: string; readonly isOperator: boolean };

type Announced = { readonly next: number; readonly refs: Readonly<Record<string, string>> };

/** One push may move many refs; more than this are not announced, as other forges do it. */
const eventsPerPushMax = 1_000;

export class Pushes {
  readonly #kept;
  readonly #wallMs: () => number;

  constructor(records: Records, wallMs: () => number) {
    this.#kept = recordsOf(records, { kind: "sources.push", schema: Push });
    this.#wallMs = wallMs;
  }

  /** Announces what changed since the last time. Only one call for a repository at a time. */
  async announce(repository: Repository, path: string, pusher: Pusher): Promise<readonly Push[]> {
    const { tenant, name } = repository;
    const before = await readAnnounced(path);
    const refs = await refsIn(path);
    const changed = changesOf(before.refs, refs).slice(0, eventsPerPushMax);
    if (changed.length === 0) return [];
    const space = createHash("sha256").update(path).digest("hex").slice(0, 16);
    const pushes: Push[] = [];
    for (const [at, change] of changed.entries()) {
      const id = `${space}-${String(before.next).padStart(12, "0")}-${String(at).padStart(4, "0")}`;
      const { record } = await this.#kept.create(tenant, id, {
        ...change,
        repository: name,
        pusher: pusher.name,
        isOperators: pusher.isOperator,
        atMs: this.#wallMs(),
      });
      pushes.push({ ...record.value, id, tenant });
    }
    await writeAnnounced(path, { next: before.next + 1, refs: Object.fromEntries(refs) });
    return pushes;
  }

  /** Those that are waiting, then those that come, of all tenants: each until `handled`. May come more than once. */
  async *follow(signal: AbortSignal): AsyncGenerator<Push> {
    for await (const { changed } of this.#kept.watch({}, signal))
      for (const { tenant, name, value } of changed) yield { ...value, id: name, tenant };
  }

  async handled({ tenant, id }: Pick<Push, "tenant" | "id">): Promise<void> {
    await this.#kept.remove(tenant, id);
  }
}

/** Pure. */
export function changesOf(
  before: Readonly<Record<string, string>>,
  now: ReadonlyMap<string, string>,
): readonly { readonly ref: string; readonly before: string; readonly after: string }[] {
  const all = new Set([...Object.keys(before), ...now.keys()]);
  return [...all]
    .toSorted()
    .map((ref) => ({ ref, before: before[ref] ?? noCommit, after: now.get(ref) ?? noCommit }))
    .filter((change) => change.before !== change.after);
}

const fileIn = (path: string): string => join(path, "millrace-announced.json");

async function readAnnounced(path: string): Promise<Announced> {
  if (!existsSync(fileIn(path))) return { next: 0, refs: {} };
  return JSON.parse(await readFile(fileIn(path), "utf8")) as Announced;
}

async function writeAnnounced(path: string, announced: Announced): Promise<void> {
  const fresh = `${fileIn(path)}.new`;
  const file = await open(fresh, "w", 0o600);
  try {
    await file.writeFile(JSON.stringify(announced));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(fresh, fileIn(path));
}
