/**
 * How a release's bytes come to a machine: what older releases on its disk have is copied, the rest is made from the
 * pack that moves the fewest bytes, and only what is missing after that is fetched as it is.
 */
import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { digestSizeBytes, parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { stage, versionFolder, type SegmentSource } from "#doors/deploy/agent/stage.ts";
import { distinctSegments, type Alternative, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import type { AgentSwarm } from "#doors/deploy/swarm/agent-swarm.ts";
import { cheapest, packContent, parsePack, type Pack } from "./pack.ts";
import { rebuild, reuse, type Older } from "./rebuild.ts";

export type FillPorts = {
  readonly segment: SegmentSource;
  readonly swarm?: Pick<AgentSwarm, "fill" | "keep" | "withdraw"> | undefined;
  readonly log: (line: string) => void;
  /** The folder where packs are kept. */
  readonly packs: string;
};

export type FillAbout = {
  readonly digest: Digest;
  readonly manifest: Manifest;
  readonly older: readonly Older[];
  readonly isRollback: boolean;
  readonly signal?: AbortSignal | undefined;
};

const documentBytesMax = 64 * 1024 * 1024;

export class Filler {
  readonly #ports: FillPorts;
  /** The pack that this machine gives to others. */
  #kept: Digest | undefined;

  constructor(ports: FillPorts) {
    this.#ports = ports;
  }

  /** Answers with the segments that are in the folder and need not be verified again. */
  async fill(work: string, about: FillAbout): Promise<ReadonlySet<Digest>> {
    const { digest, manifest, older, isRollback, signal } = about;
    const { swarm, log } = this.#ports;
    const placed = await reuse(work, manifest, older);
    const missing = (): number => bytesOf(distinctSegments(manifest).filter((each) => !placed.has(each)));
    const wanted = missing();
    if (placed.size > 0) log(`${placed.size} segments were on this machine already; ${wanted} bytes are missing`);
    const has = (base: Digest): boolean => older.some((each) => isOf(each, base));
    const chosen = cheapest(manifest.alternatives ?? [], { missingBytes: wanted, has });
    if (chosen)
      try {
        for (const each of await this.#fromPack(work, about, { chosen, has: placed, wanted })) placed.add(each);
      } catch (error) {
        signal?.throwIfAborted();
        log(`make from a pack: ${(error as Error).message}; the release itself is fetched`);
      }
    if (missing() > 0 && swarm)
      try {
        await swarm.fill(digest, manifest, work, { isRollback, signal });
      } catch (error) {
        signal?.throwIfAborted();
        // What goes wrong among machines is no reason to fail: the node has all of it.
        log(`fetch from other machines: ${(error as Error).message}; the node sends the rest`);
      }
    return placed;
  }

  async #fromPack(
    work: string,
    { manifest, older, isRollback, signal }: FillAbout,
    {
      chosen,
      has,
      wanted,
    }: { readonly chosen: Alternative; readonly has: ReadonlySet<Digest>; readonly wanted: number },
  ): Promise<ReadonlySet<Digest>> {
    const { packs, segment, swarm, log } = this.#ports;
    await this.#clear(chosen.pack);
    const pack = await describedBy(chosen, segment);
    const content = packContent(pack);
    const fill = async (folder: string): Promise<void> =>
      await swarm
        ?.fill(chosen.pack, content, folder, { isRollback, signal })
        .catch((error: unknown) => log(`fetch a pack from other machines: ${(error as Error).message}`));
    const folder = await stage(packs, chosen.pack, content, segment, { fill, alsoBytes: wanted, signal });
    this.#kept = chosen.pack;
    swarm?.keep(chosen.pack, content, folder);
    const base = older.find((each) => chosen.base !== null && isOf(each, chosen.base));
    const path = join(folder, content.files[0]?.path ?? "");
    const { placed, wrong: failures } = await rebuild(work, manifest, { pack, path, base, has });
    for (const error of failures) log(`make from a pack: ${(error as Error).message}; the release itself is fetched`);
    log(`${chosen.sizeBytes} bytes were fetched instead of ${wanted}; ${placed.size} segments were made from them`);
    return placed;
  }

  /** Gives the pack to no one any more. */
  hush(): void {
    if (this.#kept !== undefined) this.#ports.swarm?.withdraw(this.#kept);
    this.#kept = undefined;
  }

  /** Packs of earlier releases: one is of use for as long as others fetch it. */
  async #clear(but: Digest): Promise<void> {
    const { packs, swarm } = this.#ports;
    if (this.#kept !== undefined && this.#kept !== but) swarm?.withdraw(this.#kept);
    const kept = basename(versionFolder(packs, but));
    for (const name of (await readdir(packs).catch(ignoreMissing)) ?? [])
      if (!name.startsWith(kept)) await rm(join(packs, name), { recursive: true, force: true });
  }
}

async function describedBy({ pack, base }: Alternative, source: SegmentSource): Promise<Pack> {
  const parts = parseDigest(pack);
  if (parts?.fn !== "sha256" || parts.sizeBytes > documentBytesMax) throw wrong(pack, "it is no document");
  const found: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of source(pack)) {
    if ((bytes += part.length) > parts.sizeBytes) throw wrong(pack, "longer than it should be");
    found.push(part.slice());
  }
  const text = Buffer.concat(found);
  if (createHash("sha256").update(text).digest("hex") !== parts.hash) throw wrong(pack, "it has another digest");
  const described = parsePack(text.toString("utf8"));
  if (described.base !== base) throw wrong(pack, "it is for another older release");
  return described;
}

const isOf = ({ folder }: Older, manifest: Digest): boolean => versionFolder(dirname(folder), manifest) === folder;
const bytesOf = (digests: readonly Digest[]): number => digests.reduce((sum, each) => sum + digestSizeBytes(each), 0);
const wrong = (pack: Digest, why: string): Fault => new Fault("corrupt", "fetch pack", { pack, why });
