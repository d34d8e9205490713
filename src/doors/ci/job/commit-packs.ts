/**
 * Commits without their history, as jobs check them out: git makes one once, and each job of the commit gets a copy of
 * its files. What is kept is bounded, and made again after a restart.
 */
import { constants } from "node:fs";
import { cp, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { git } from "#sources/git.ts";

const timeoutMs = 600_000;
const bytesMaxDefault = 2 * 2 ** 30;
const countMax = 64;

type Pack = {
  readonly folder: string;
  readonly made: Promise<number>;
  bytes: number;
  /** Jobs that copy it now. */
  users: number;
};

export class CommitPacks {
  readonly #folder: string;
  readonly #bytesMax: number;
  /** By repository and commit, the latest used last. */
  readonly #packs = new Map<string, Pack>();
  readonly #empty: Promise<void>;
  #made = 0;

  /** The folder is this one's own: what an earlier process left in it is removed. */
  constructor(folder: string, bytesMax = bytesMaxDefault) {
    this.#folder = folder;
    this.#bytesMax = bytesMax;
    this.#empty = rm(folder, { recursive: true, force: true });
    this.#empty.catch(() => {}); // it is said when a folder cannot be made
  }

  /** Makes `into` a `.git` folder that has one commit of a mirror. */
  async bring(mirror: string, sha: string, into: string): Promise<void> {
    await this.#empty;
    const pack = this.#use(mirror, sha);
    try {
      await pack.made;
      await cp(pack.folder, into, { recursive: true, mode: constants.COPYFILE_FICLONE });
    } finally {
      pack.users -= 1;
      await this.#drop();
    }
  }

  #use(mirror: string, sha: string): Pack {
    const key = `${mirror} ${sha}`;
    const known = this.#packs.get(key);
    this.#packs.delete(key);
    const pack = known ?? this.#make(mirror, sha, key);
    pack.users += 1;
    this.#packs.set(key, pack);
    return pack;
  }

  #make(mirror: string, sha: string, key: string): Pack {
    this.#made += 1;
    const folder = join(this.#folder, String(this.#made));
    const made = packCommit(mirror, sha, folder).then(() => bytesIn(folder));
    const pack: Pack = { folder, made, bytes: 0, users: 0 };
    made.then(
      (bytes) => (pack.bytes = bytes),
      () => this.#packs.delete(key), // the next job tries again
    );
    return pack;
  }

  async #drop(): Promise<void> {
    let bytes = [...this.#packs.values()].reduce((sum, pack) => sum + pack.bytes, 0);
    for (const [key, pack] of this.#packs) {
      if (bytes <= this.#bytesMax && this.#packs.size <= countMax) return;
      if (pack.users > 0) continue;
      this.#packs.delete(key);
      bytes -= pack.bytes;
      await rm(pack.folder, { recursive: true, force: true });
    }
  }
}

async function packCommit(mirror: string, sha: string, folder: string): Promise<void> {
  await mkdir(join(folder, ".."), { recursive: true, mode: 0o700 });
  await git(join(folder, ".."), ["init", "--quiet", "--initial-branch=main", "--template=", "--bare", folder]);
  await git(folder, ["fetch", "--quiet", "--depth=1", "--no-tags", "--", `file://${mirror}`, sha], { timeoutMs });
  await git(folder, ["config", "core.bare", "false"]); // it becomes the `.git` of a workspace
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder, { recursive: true })) bytes += (await stat(join(folder, name))).size;
  return bytes;
}
