/**
 * Repositories on this node's disk: copies of those that are elsewhere, and those that the node keeps itself. Commits,
 * refs and files are read from here.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault, isFault } from "#base/fault.ts";
import type { Repository } from "./book.ts";
import { git, gitText } from "./git.ts";
import { isRef, isSha, noCommit, refsMeant } from "./names.ts";
import { Recent } from "#base/recent.ts";
import { checkReachable, type RemoteRules } from "./remote.ts";
import { gitFolderOf, headIn, refIn } from "./ref-files.ts";
import { type RemoteRefs, remoteRefs } from "./remote-refs.ts";
import { SharedRuns } from "#base/calls/shared-runs.ts";
import { Turns } from "./turns.ts";

export type Commit = {
  readonly sha: string;
  /** `refs/heads/x`, or the commit where that was asked for. */
  readonly ref: string;
  /** The first parent; zeroes for a first commit. */
  readonly before: string;
  readonly message: string;
  readonly author: string;
  readonly defaultBranch: string;
};

export type TextFile = { readonly path: string; readonly text: string };

const fetchMsMax = 600_000;
const filesMax = 1_000;
const fileBytesMax = 4 * 1024 * 1024;
const pathBytesMax = 16 * 1024 * 1024;
/** In memory, of all repositories together. */
const filesKeptBytesMax = 16 * 1024 * 1024;
const commitsKeptBytesMax = 4 * 1024 * 1024;
const refsKeptBytesMax = 32 * 1024 * 1024;
const entryBytes = 500;
const copiedRefs = ["heads", "tags", "pull", "merge-requests"];
const copied = new RegExp(`^refs/(?:${copiedRefs.join("|")})/`);

export class Copies {
  readonly #folder: string;
  readonly #rules: RemoteRules;
  /** One change at a time for each repository. */
  readonly turns = new Turns();
  /** Many runs of one commit start at once: git is asked for all of them together. */
  readonly #fetches = new SharedRuns<string>();
  readonly #resolves = new SharedRuns<Commit>();
  /** What a commit is and holds never changes. */
  readonly #commits = new Recent<Described>(commitsKeptBytesMax);
  readonly #files = new Recent<readonly TextFile[]>(filesKeptBytesMax);
  /** By path: what the repository elsewhere said of its refs when it was last fetched. */
  readonly #fetched = new Recent<RemoteRefs & { readonly text: string }>(refsKeptBytesMax);

  constructor(folder: string, rules: RemoteRules) {
    this.#folder = folder;
    this.#rules = rules;
  }

  /** Where a repository is, or would be. */
  path({ tenant, name, url }: Repository): string {
    const words = [tenant, name.toLowerCase(), ...(url === undefined ? [] : [url])];
    const hash = createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, 40);
    return join(this.#folder, url === undefined ? "kept" : "mirrors", `${hash}.git`);
  }

  /** The folder of a bare repository that has the commit. */
  async having(repository: Repository, sha: string): Promise<string> {
    const path = this.path(repository);
    if (this.#commits.get(keyOf(path, sha)) && existsSync(path)) return path;
    if (!(await hasCommit(path, sha)) && repository.url !== undefined) await this.fetch(repository);
    if (await hasCommit(path, sha)) {
      await this.#describe(path, sha);
      return path;
    }
    throw new Fault("not-found", "find the commit", { repository: repository.name, sha: sha.slice(0, 80) });
  }

  /** Brings the copy up to date; what the node keeps itself always is. */
  async fetch(repository: Repository): Promise<string> {
    const { url } = repository;
    const path = this.path(repository);
    if (url === undefined) return await this.create(repository);
    return await this.#fetches.take(path, () => this.#fetchFrom(url, path));
  }

  async #fetchFrom(url: string, path: string): Promise<string> {
    const { protocol } = await checkReachable(url, this.#rules);
    return await this.turns.take(path, async () => {
      if (!existsSync(path)) this.#fetched.delete(path);
      await this.#createAt(path);
      const env = { GIT_ALLOW_PROTOCOL: protocol };
      const patterns = copiedRefs.map((kind) => `refs/${kind}/*`);
      const text = await gitText(path, ["ls-remote", "--symref", "--", url, "HEAD", ...patterns], { env });
      if (this.#fetched.get(path)?.text === text) return path; // a fetch would bring nothing
      const refs = patterns.map((pattern) => `+${pattern}:${pattern}`);
      const words = ["fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-write-fetch-head"];
      await git(path, [...words, "--", url, ...refs], { timeoutMs: fetchMsMax, env });
      const found = remoteRefs(text);
      if (found.head !== undefined && isRef(found.head)) await git(path, ["symbolic-ref", "HEAD", found.head]);
      this.#fetched.set(path, { ...found, text }, entryBytes + text.length * 4);
      return path;
    });
  }

  /** Makes an empty repository where there is none. */
  async create(repository: Repository): Promise<string> {
    const path = this.path(repository);
    if (!existsSync(path)) await this.turns.take(path, () => this.#createAt(path));
    return path;
  }

  async remove(repository: Repository): Promise<void> {
    const path = this.path(repository);
    this.#fetched.delete(path);
    this.#commits.clear(); // what a repository of this name has later is another's
    await this.turns.take(path, () => rm(path, { recursive: true, force: true }));
  }

  /** What a branch, a tag, a full ref or a commit means now; the default branch where nothing is named. */
  async resolve(repository: Repository, wanted?: string): Promise<Commit> {
    const key = JSON.stringify([this.path(repository), wanted]);
    return await this.#resolves.take(key, () => this.#resolve(repository, wanted));
  }

  async #resolve(repository: Repository, wanted: string | undefined): Promise<Commit> {
    const seen = isSha(wanted ?? "") ? undefined : await this.#seen(repository, wanted);
    if (seen) return seen;
    const path = await this.fetch(repository);
    const head = await this.#headOf(path);
    const asked = wanted ?? head;
    for (const ref of isSha(asked) ? [asked] : refsMeant(asked)) {
      const sha = this.#knownCommit(path, ref) ?? (await commitOf(path, ref));
      if (sha === undefined) continue;
      return { ...(await this.#describe(path, sha)), sha, ref, defaultBranch: head.replace("refs/heads/", "") };
    }
    throw new Fault("not-found", "find the branch or tag", { repository: repository.name, ref: asked.slice(0, 200) });
  }

  async #headOf(path: string): Promise<string> {
    const head = this.#fetched.get(path)?.head;
    if (head !== undefined && isRef(head)) return head;
    return (await gitText(path, ["symbolic-ref", "HEAD"])).trim();
  }

  /** Without asking git: only what was seen to be a commit of this copy before. */
  #knownCommit(path: string, ref: string): string | undefined {
    const sha = this.#fetched.get(path)?.commits.get(ref);
    return sha !== undefined && this.#commits.get(keyOf(path, sha)) ? sha : undefined;
  }

  /** Of a repository on this machine, without git: what a ref means now, if that commit was seen before. */
  async #seen(repository: Repository, wanted: string | undefined): Promise<Commit | undefined> {
    const { url } = repository;
    const path = this.path(repository);
    if (url !== undefined) await checkReachable(url, this.#rules);
    const from = url === undefined ? path : await gitFolderOf(url);
    const head = from === undefined ? undefined : await headIn(from);
    if (from === undefined || head === undefined || !existsSync(path)) return undefined;
    for (const ref of refsMeant(wanted ?? head)) {
      const sha = copied.test(ref) ? await refIn(from, ref) : undefined;
      const known = sha === undefined ? undefined : this.#commits.get(keyOf(path, sha));
      if (known && sha !== undefined) return { ...known, sha, ref, defaultBranch: head.replace("refs/heads/", "") };
      if (sha !== undefined) return undefined;
    }
    return undefined;
  }

  async #describe(path: string, sha: string): Promise<Described> {
    const key = keyOf(path, sha);
    const known = this.#commits.get(key);
    if (known) return known;
    const described = await describe(path, sha);
    this.#commits.set(key, described, entryBytes + described.message.length + described.author.length);
    return described;
  }

  /** Text files of one folder of a commit, in order of their paths. */
  async files(repository: Repository, sha: string, folder: string): Promise<readonly TextFile[]> {
    const key = JSON.stringify([this.path(repository), sha, folder]);
    const known = this.#files.get(key);
    if (known) return known;
    const files = await this.#readFiles(repository, sha, folder);
    const bytes = files.reduce((sum, { path, text }) => sum + path.length + text.length * 2, entryBytes);
    this.#files.set(key, files, bytes);
    return files;
  }

  async #readFiles(repository: Repository, sha: string, folder: string): Promise<readonly TextFile[]> {
    const path = await this.having(repository, sha);
    const listed = await gitText(path, ["ls-tree", "-z", "-l", sha, "--", `${folder}/`]);
    const files: TextFile[] = [];
    for (const line of listed.split("\0").slice(0, filesMax)) {
      const [, blob, size, name] = /^100\d+ blob ([0-9a-f]+)\s+(\d+)\t(.*)$/s.exec(line) ?? [];
      if (blob === undefined || name === undefined || Number(size) > fileBytesMax) continue;
      files.push({ path: name, text: await gitText(path, ["cat-file", "blob", blob], { bytesMax: fileBytesMax }) });
    }
    return files;
  }

  /** Two dots: between the two; three: since they parted. Undefined where git cannot tell. */
  async changedFiles(
    repository: Repository,
    from: string,
    to: string,
    dots: ".." | "...",
  ): Promise<readonly string[] | undefined> {
    if (from === noCommit || !isSha(from) || !isSha(to)) return undefined;
    const path = await this.having(repository, to);
    const words = ["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", `${from}${dots}${to}`, "--"];
    const listed = await gitText(path, words, { bytesMax: pathBytesMax }).catch((error: unknown) => {
      if (isFault(error)) return undefined;
      throw error;
    });
    return listed?.split("\0").filter((name) => name !== "");
  }

  async #createAt(path: string): Promise<string> {
    if (existsSync(path)) return path;
    await mkdir(join(path, ".."), { recursive: true, mode: 0o700 });
    const fresh = `${path}.${randomUUID()}`;
    await mkdir(fresh);
    try {
      await git(fresh, ["init", "--quiet", "--bare", "--initial-branch=main", "--template=", "."]);
      // jobs fetch the one commit that they are about
      await git(fresh, ["config", "uploadpack.allowAnySHA1InWant", "true"]);
      await rename(fresh, path);
    } finally {
      await rm(fresh, { recursive: true, force: true });
    }
    return path;
  }
}

export async function commitOf(path: string, ref: string): Promise<string | undefined> {
  const words = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`];
  const found = await gitText(path, words).catch(() => "");
  return isSha(found.trim()) ? found.trim() : undefined;
}

const hasCommit = async (path: string, sha: string): Promise<boolean> =>
  existsSync(path) && isSha(sha) && (await commitOf(path, sha)) !== undefined;

const keyOf = (path: string, sha: string): string => JSON.stringify([path, sha]);

type Described = Pick<Commit, "before" | "author" | "message">;

async function describe(path: string, sha: string): Promise<Described> {
  const text = await gitText(path, ["log", "-1", "--no-show-signature", "--format=%P%n%an%n%B", sha, "--"]);
  const [parents = "", author = "", ...message] = text.split("\n");
  const [before = ""] = parents.split(" ");
  return { before: before === "" ? noCommit : before, author, message: message.join("\n").trim() };
}

/** Every ref of a repository with what it points to. */
export async function refsIn(path: string): Promise<ReadonlyMap<string, string>> {
  const text = await gitText(path, ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"]);
  return new Map(
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => [line.slice(line.indexOf(" ") + 1), line.slice(0, line.indexOf(" "))]),
  );
}
