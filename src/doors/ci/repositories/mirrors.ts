/** Copies of repositories on this node: commits, refs and files come from them, and jobs check out of them. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault, isFault } from "#base/fault.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { workflowFolder } from "#doors/ci/local/workflows.ts";
import type { RepositoryRecord } from "./book.ts";
import { git, gitText } from "./git.ts";

const fetchMsMax = 600_000;
const filesMax = 1_000;
const fileBytesMax = 4 * 1024 * 1024;
const shaPattern = /^[0-9a-f]{40}$/;

export type Commit = {
  readonly sha: string;
  /** `refs/heads/x`, or what was asked for. */
  readonly ref: string;
  /** Zeroes for a first commit. */
  readonly before: string;
  readonly message: string;
  readonly author: string;
  readonly defaultBranch: string;
};

export class Mirrors {
  readonly #folder: string;
  /** One change at a time for each repository. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The folder of a bare repository that has the commit. */
  async having(repository: RepositoryRecord, sha: string): Promise<string> {
    const path = this.#path(repository);
    if (!(await hasCommit(path, sha))) await this.fetch(repository);
    if (!(await hasCommit(path, sha)))
      throw new Fault("not-found", "find the commit", { repository: repository.name, sha });
    return path;
  }

  /** Brings the copy up to date. */
  async fetch(repository: RepositoryRecord): Promise<string> {
    const path = this.#path(repository);
    return await this.#inTurn(path, async () => {
      if (!existsSync(path)) await this.#create(path);
      const refs = ["heads", "tags", "pull"].map((kind) => `+refs/${kind}/*:refs/${kind}/*`);
      const words = ["fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-write-fetch-head"];
      await git(path, [...words, "--", repository.url, ...refs], { timeoutMs: fetchMsMax });
      const head = await gitText(path, ["ls-remote", "--symref", "--", repository.url, "HEAD"]).catch(() => "");
      const branch = /^ref: (refs\/heads\/\S+)\tHEAD$/m.exec(head)?.[1];
      if (branch !== undefined) await git(path, ["symbolic-ref", "HEAD", branch]);
      return path;
    });
  }

  /** What a branch, a tag, a full ref or a commit means now; the default branch where nothing is named. */
  async resolve(repository: RepositoryRecord, wanted: string | undefined): Promise<Commit> {
    const path = await this.fetch(repository);
    const head = (await gitText(path, ["symbolic-ref", "HEAD"])).trim();
    const defaultBranch = head.replace("refs/heads/", "");
    const asked = wanted ?? head;
    const refs = asked.startsWith("refs/") ? [asked] : [`refs/heads/${asked}`, `refs/tags/${asked}`];
    for (const ref of shaPattern.test(asked) ? [asked] : refs) {
      const sha = await commitOf(path, ref);
      if (sha !== undefined) return await this.#commit(path, { sha, ref, defaultBranch });
    }
    throw new Fault("not-found", "find the branch or tag", { repository: repository.name, ref: asked.slice(0, 200) });
  }

  async #commit(path: string, at: Pick<Commit, "sha" | "ref" | "defaultBranch">): Promise<Commit> {
    const [parents = "", author = "", ...message] = (
      await gitText(path, ["log", "-1", "--format=%P%n%an%n%B", at.sha, "--"])
    ).split("\n");
    const before = parents.split(" ")[0] ?? "";
    return { ...at, before: before === "" ? "0".repeat(40) : before, author, message: message.join("\n").trim() };
  }

  /** The workflow files of a commit, in order. */
  async workflows(repository: RepositoryRecord, sha: string): Promise<readonly SourceFile[]> {
    const path = await this.having(repository, sha);
    const listed = await gitText(path, ["ls-tree", "-z", "-l", sha, "--", `${workflowFolder}/`]);
    const entries = listed.split("\0").flatMap((line) => {
      const match = /^100\d+ blob ([0-9a-f]+)\s+(\d+)\t(.*)$/s.exec(line);
      return match && /\.ya?ml$/.test(match[3] ?? "") && Number(match[2]) <= fileBytesMax
        ? [{ blob: match[1] ?? "", path: match[3] ?? "" }]
        : [];
    });
    const files: SourceFile[] = [];
    for (const entry of entries.slice(0, filesMax))
      files.push({ path: entry.path, text: await gitText(path, ["cat-file", "blob", entry.blob]) });
    return files;
  }

  /** Undefined where git cannot tell. */
  async changedFiles(
    repository: RepositoryRecord,
    from: string,
    to: string,
    dots: ".." | "...",
  ): Promise<readonly string[] | undefined> {
    const path = await this.having(repository, to);
    if (/^0+$/.test(from)) return undefined;
    const listed = await gitText(path, ["diff", "--name-only", "-z", `${from}${dots}${to}`, "--"]).catch((error) => {
      if (isFault(error)) return undefined;
      throw error;
    });
    return listed?.split("\0").filter((name) => name !== "");
  }

  async #create(path: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o711 });
    const fresh = `${path}.new`;
    await rm(fresh, { recursive: true, force: true });
    await mkdir(fresh, { recursive: true });
    await git(fresh, ["init", "--quiet", "--bare", "--initial-branch=main", "--template="]);
    // jobs fetch the one commit that they are about
    await git(fresh, ["config", "uploadpack.allowAnySHA1InWant", "true"]);
    await git(fresh, ["config", "gc.auto", "0"]);
    await rename(fresh, path);
  }

  #path({ tenant, name, url }: RepositoryRecord): string {
    const hash = createHash("sha256")
      .update(JSON.stringify([tenant, name, url]))
      .digest("hex");
    return join(this.#folder, `${hash.slice(0, 40)}.git`);
  }

  async #inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(path) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#turns.set(path, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(path) === turn) this.#turns.delete(path);
    }
  }
}

async function commitOf(path: string, ref: string): Promise<string | undefined> {
  const found = await gitText(path, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]).catch(
    () => "",
  );
  return shaPattern.test(found.trim()) ? found.trim() : undefined;
}

const hasCommit = async (path: string, sha: string): Promise<boolean> =>
  existsSync(path) && shaPattern.test(sha) && (await commitOf(path, sha)) !== undefined;
