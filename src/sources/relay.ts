/**
 * What a node does for other nodes with a repository that it keeps: it packs what they lack, and takes their pushes.
 * Bytes go through the tenant's blobs, which every node of a cluster reads.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { type Digest, parseDigest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { advertisement, type GitPorts, receivePack } from "./smart-http.ts";
import type { Repository, RepositoryBook } from "./book.ts";
import { gitText, startGit } from "./git.ts";
import { isSha } from "./names.ts";
import type { SourcePorts } from "./sources.ts";

export type RelayPorts = Pick<SourcePorts, "node" | "store" | "spool"> & GitPorts & { readonly book: RepositoryBook };

export const relayCalls = { changes: "sources.changes", refs: "sources.push-refs", push: "sources.push" } as const;
export const hasMax = 5_000;
export const stateBytesMax = 8 * 1024 * 1024;
const packMsMax = 600_000;
/** How long a pack or a push stays in the store: it is read at once. */
export const relayedMs = 3_600_000;

const At = z.object({ tenant: z.string(), name: z.string() });
export const ChangesAsked = At.extend({
  /** The hash of the state that the asking node has. */
  known: z.string(),
  /** Commits that it has. */
  has: z.array(z.string()).max(hasMax),
});
export const Changes = z.object({
  /** Left out: nothing has changed. */
  state: z.string().optional(),
  /** Objects that the asking node lacks, as a thin pack. */
  pack: z.string().optional(),
});
export const Push = At.extend({ body: z.string(), pusher: z.object({ name: z.string(), isOperator: z.boolean() }) });
export const Answer = z.object({ base64: z.string() });

/** All refs of a repository and where HEAD leads: two nodes with the same text have the same. */
export async function stateOf(path: string): Promise<string> {
  const [head, refs] = await Promise.all([
    gitText(path, ["symbolic-ref", "HEAD"]),
    gitText(path, ["for-each-ref", "--format=%(objectname) %(refname)"], { bytesMax: stateBytesMax }),
  ]);
  return `${head.trim()}\n${refs.trim()}`;
}

export const hashOfState = (state: string): string => createHash("sha256").update(state).digest("hex");

export function refsOfState(state: string): ReadonlyMap<string, string> {
  const lines = state.split("\n").slice(1);
  return new Map(
    lines.flatMap((line) => (line === "" ? [] : [[line.slice(line.indexOf(" ") + 1), line.split(" ", 1)[0] ?? ""]])),
  );
}

export function serveRelay(ports: RelayPorts): Readonly<Record<string, (body: unknown) => Promise<unknown>>> {
  return {
    [relayCalls.changes]: async (body) => await changes(ports, ChangesAsked.parse(body)),
    [relayCalls.refs]: async (body) => {
      const path = await ports.copies.create(await kept(ports, At.parse(body)));
      return base64(await advertisement(path, "receive-pack", ports));
    },
    [relayCalls.push]: async (body) => {
      const { pusher, body: digest, ...at } = Push.parse(body);
      const repository = await kept(ports, at);
      const input = read(ports, at.tenant, digestIn(digest));
      return base64(await receivePack(ports, input, { repository, pusher }));
    },
  };
}

const base64 = (bytes: Buffer): z.input<typeof Answer> => ({ base64: bytes.toString("base64") });

export function digestIn(text: string): Digest {
  if (!parseDigest(text)) throw new Fault("invalid", "read from another node", { why: "it names no digest" });
  return text;
}

export async function* read(
  { store }: Pick<RelayPorts, "store">,
  tenant: string,
  digest: Digest,
): AsyncGenerator<Uint8Array> {
  // a part is valid until the next is read, and git's input may hold it for longer
  for await (const part of store.forTenant(tenant).blobs.read(digest)) yield Uint8Array.from(part);
}

async function kept({ book, node }: RelayPorts, { tenant, name }: z.output<typeof At>): Promise<Repository> {
  const found = await book.get(tenant, name);
  if (found?.url === undefined && found?.node === node) return found;
  throw new Fault("not-found", "find the repository", { repository: name.slice(0, 201) });
}

async function changes(ports: RelayPorts, asked: z.output<typeof ChangesAsked>): Promise<z.input<typeof Changes>> {
  const path = await ports.copies.create(await kept(ports, asked));
  const state = await stateOf(path);
  if (hashOfState(state) === asked.known) return {};
  const has = await known(path, asked.has.filter(isSha));
  const wanted = [...new Set(refsOfState(state).values())].filter((sha) => !has.has(sha));
  if (wanted.length === 0) return { state };
  const input = `${[...wanted, ...[...has].map((sha) => `^${sha}`)].join("\n")}\n`;
  const words = ["pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "--quiet"];
  const { output, ended } = startGit(path, words, { input, timeoutMs: packMsMax });
  const pack = await keepBytes(ports, asked.tenant, output);
  await ended;
  return { state, pack };
}

/** Those of the objects that are here. */
async function known(path: string, shas: readonly string[]): Promise<ReadonlySet<string>> {
  if (shas.length === 0) return new Set();
  const words = ["cat-file", "--batch-check=%(objectname)"];
  const text = await gitText(path, words, { input: `${shas.join("\n")}\n` });
  return new Set(text.split("\n").filter(isSha));
}

/** Writes them to the tenant's blobs, for as long as another node needs to read them. */
export async function keepBytes(
  { spool, store }: Pick<RelayPorts, "spool" | "store">,
  tenant: string,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Digest> {
  const { blobs } = store.forTenant(tenant);
  await using spooled = await spool.take(bytes, { tenant, principal: "sources" });
  await blobs.write(spooled.digest, spooled.content());
  if ("missing" in (await blobs.pin([spooled.digest], relayedMs)))
    throw new Fault("exhausted", "keep what goes to another node", { tenant });
  return spooled.digest;
}
