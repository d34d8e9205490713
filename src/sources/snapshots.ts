/**
 * Files of a commit as blobs of its tenant: any node and any task can have them, and equal files are stored once.
 *
 * SN1 Nothing of a snapshot is written outside of its folder: names are checked, and links are made last.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, open, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { Spool } from "#blobs/spool.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { Records } from "#records/watch.ts";
import { recordsOf } from "#records/typed.ts";
import type { Repository } from "./book.ts";
import type { Copies } from "./copies.ts";
import { gitText, startGit } from "./git.ts";
import { objectsIn } from "./objects.ts";
import { readTree, type TreeFile } from "./tree.ts";

export type SnapshotPorts = {
  readonly copies: Copies;
  readonly records: Records;
  readonly store: Store;
  readonly spool: Spool;
};

const Manifest = z.object({
  format: z.literal(1),
  sha: z.string(),
  files: z.array(z.tuple([z.string(), z.string(), z.string()])).describe("path, mode, digest"),
});
export type Manifest = z.output<typeof Manifest>;

const treeBytesMax = 64 * 1024 * 1024;
const keptMs = 7 * 24 * 3_600_000;
const importMsMax = 1_800_000;

export class Snapshots {
  readonly #ports: SnapshotPorts;
  readonly #kept;

  constructor(ports: SnapshotPorts) {
    this.#ports = ports;
    this.#kept = recordsOf(ports.records, { kind: "sources.snapshot", schema: z.object({ digest: z.string() }) });
  }

  /** The digest of the commit's list of files; all of its blobs stay for a week from now. */
  async take(repository: Repository, sha: string): Promise<Digest> {
    const { store, copies } = this.#ports;
    const { tenant, name } = repository;
    const { blobs } = store.forTenant(tenant);
    const key = createHash("sha256")
      .update(JSON.stringify([name.toLowerCase(), sha]))
      .digest("hex");
    const known = await this.#kept.read(tenant, key);
    if (known && (await isKept(blobs, known.value.digest))) return known.value.digest;
    const path = await copies.having(repository, sha);
    return await copies.turns.take(`snapshot ${path}`, async () => {
      const digest = await this.#import(tenant, path, sha);
      if (known) await this.#kept.update(tenant, key, () => ({ digest }));
      else await this.#kept.create(tenant, key, { digest });
      return digest;
    });
  }

  async #import(tenant: string, path: string, sha: string): Promise<Digest> {
    const { blobs } = this.#ports.store.forTenant(tenant);
    const files = readTree(
      await gitText(path, ["ls-tree", "-r", "-z", "-l", "--full-tree", sha], { bytesMax: treeBytesMax }),
    );
    const digests = await this.#importObjects(tenant, path, [...new Set(files.map(({ object }) => object))]);
    const digestFor = (file: TreeFile): string => digests.get(file.object) ?? "";
    const manifest: Manifest = { format: 1, sha, files: files.map((file) => [file.path, file.mode, digestFor(file)]) };
    const bytes = Buffer.from(JSON.stringify(manifest));
    const digest = digestOf(bytes);
    await blobs.write(digest, bytes);
    if (!(await isKept(blobs, digest))) throw new Fault("exhausted", "keep a commit's files", { sha });
    return digest;
  }

  async #importObjects(tenant: string, path: string, objects: readonly string[]): Promise<ReadonlyMap<string, Digest>> {
    const { spool, store } = this.#ports;
    const { blobs } = store.forTenant(tenant);
    const found = new Map<string, Digest>();
    if (objects.length === 0) return found;
    const options = { input: `${objects.join("\n")}\n`, timeoutMs: importMsMax };
    const running = startGit(path, ["cat-file", "--batch", "--buffer"], options);
    for await (const { name, content } of objectsIn(running.output)) {
      await using spooled = await spool.take(content, { tenant, principal: "sources" });
      await blobs.write(spooled.digest, spooled.content());
      found.set(name, spooled.digest);
    }
    await running.ended;
    return found;
  }

  /** Writes the files into a folder, which has to be empty. */
  async place(tenant: string, digest: Digest, folder: string): Promise<void> {
    const { blobs } = this.#ports.store.forTenant(tenant);
    const { files } = await readManifest(blobs, digest);
    const made = new Set<string>();
    const links = files.filter(([, mode]) => mode === linkMode);
    for (const [path, mode, content] of files) {
      if (mode === linkMode) continue;
      const target = join(folder, path);
      if (!made.has(dirname(target))) await mkdir(dirname(target), { recursive: true });
      made.add(dirname(target));
      const file = await open(target, "wx", 0o644);
      try {
        for await (const part of blobs.read(content)) await file.writeFile(part);
      } finally {
        await file.close();
      }
      if (mode === "100755") await chmod(target, 0o755);
    }
    for (const [path, , content] of links) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      const parts: Uint8Array[] = [];
      for await (const part of blobs.read(content)) parts.push(Uint8Array.from(part));
      await symlink(Buffer.concat(parts).toString("utf8"), join(folder, path));
    }
  }
}

const linkMode = "120000";

async function readManifest(blobs: BlobStore, digest: Digest): Promise<Manifest> {
  const parts: Uint8Array[] = [];
  for await (const part of blobs.read(digest)) parts.push(Uint8Array.from(part));
  return Manifest.parse(JSON.parse(Buffer.concat(parts).toString("utf8")));
}

/** Whether all of it is there; then it stays for a while. */
async function isKept(blobs: BlobStore, digest: Digest): Promise<boolean> {
  if ((await blobs.missing([digest])).length > 0) return false;
  const { files } = await readManifest(blobs, digest);
  return !("missing" in (await blobs.pin([...new Set([digest, ...files.map(([, , content]) => content)])], keptMs)));
}
