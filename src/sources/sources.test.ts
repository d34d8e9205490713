/** Repositories with real git: mirrors, pushes over HTTP, snapshots, and what is refused. */
import { deepEqual, equal, match, ok, rejects, throws } from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { isFault } from "#base/fault.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { spoolIn } from "#blobs/spool.ts";
import { asProblem, problemResponse } from "#http/problem.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { realClock } from "#testing/real-clock.ts";
import { git } from "./git.ts";
import { isRef, noCommit } from "./names.ts";
import { changesOf, type Push } from "./pushes.ts";
import { checkRemote, isPrivate } from "./remote.ts";
import { gitCallIn } from "./smart-http.ts";
import { Sources } from "./sources.ts";
import { readTree } from "./tree.ts";

const run = promisify(execFile);
const author = {
  GIT_AUTHOR_NAME: "ann",
  GIT_AUTHOR_EMAIL: "ann@example.com",
  GIT_COMMITTER_NAME: "ann",
  GIT_COMMITTER_EMAIL: "ann@example.com",
};
const env = { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", ...author };
const own = async (folder: string, ...args: readonly string[]): Promise<string> =>
  (await run("git", ["-C", folder, ...args], { env })).stdout.trim();

async function makeWork(folder: string): Promise<string> {
  await mkdir(join(folder, "deep"), { recursive: true });
  await own(folder, "init", "--quiet", "--initial-branch=main");
  await writeFile(join(folder, "a.txt"), "first\n");
  await writeFile(join(folder, "deep", "run.sh"), "#!/bin/sh\n");
  await chmod(join(folder, "deep", "run.sh"), 0o755);
  await symlink("../a.txt", join(folder, "deep", "link"));
  await own(folder, "add", "-A");
  await own(folder, "commit", "--quiet", "-m", "first\n\nwith more");
  return await own(folder, "rev-parse", "HEAD");
}

describe("sources", { timeout: 60_000 }, () => {
  let folder: string;
  let work: string;
  let sha: string;
  let sources: Sources;
  let server: Server;
  let url: string;
  const store = createMemoryStore({ clock: realClock, sizeBytesMax: 64 * 1024 * 1024 });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-sources-"));
    work = join(folder, "work");
    sha = await makeWork(work);
    sources = new Sources({
      node: "here",
      folder,
      records: watchedRecords(
        memoryRecords(() => realClock.wallMs()),
        realClock,
      ),
      store,
      spool: spoolIn(folder),
      clock: realClock,
      rules: { protocols: ["https", "file"], privateAddresses: false },
      pushBytesMax: 4 * 1024 * 1024,
    });
    await sources.keep("mill", "octo/kept");
    const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
      const { method = "GET" } = incoming;
      const address = new URL(incoming.url ?? "/", url);
      const headers = new Headers(incoming.headers as Record<string, string>);
      const body = method === "POST" ? { body: Readable.toWeb(incoming), duplex: "half" } : {};
      const request = new Request(address, { method, headers, ...body } as RequestInit);
      const call = gitCallIn(address, method);
      const answer = async (): Promise<Response> => {
        if (!call) return new Response("no", { status: 404 });
        const repository = await sources.get("mill", call.repository);
        return await sources.serve(request, { repository, call, pusher: { name: "ann", isOperator: false } });
      };
      const served = await answer().catch((error: unknown) => problemResponse(asProblem(error).problem));
      response.writeHead(served.status, Object.fromEntries(served.headers));
      if (served.body) for await (const part of served.body) response.write(part);
      response.end();
    };
    server = createServer((incoming, response) => void serve(incoming, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.close();
    server.closeAllConnections();
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });

  const nextPush = async (): Promise<Push> => {
    for await (const push of sources.pushes.follow(AbortSignal.timeout(5_000))) {
      await sources.pushes.handled(push);
      return push;
    }
    throw new Error("no push came");
  };

  test("a repository by its path is resolved, read and compared", async () => {
    const repository = await sources.register("mill", "octo/demo", work);
    const { ref, before: parent, message, author: by, defaultBranch } = await sources.copies.resolve(repository);
    deepEqual(
      [ref, parent, message, by, defaultBranch],
      ["refs/heads/main", noCommit, "first\n\nwith more", "ann", "main"],
    );
    deepEqual(await sources.copies.files(repository, sha, "deep"), [{ path: "deep/run.sh", text: "#!/bin/sh\n" }]);
    await own(work, "checkout", "--quiet", "-b", "topic");
    await writeFile(join(work, "b.txt"), "b\n");
    await own(work, "add", "-A");
    await own(work, "commit", "--quiet", "-m", "second");
    const second = await own(work, "rev-parse", "HEAD");
    equal((await sources.copies.resolve(repository, "topic")).sha, second);
    deepEqual(await sources.copies.changedFiles(repository, sha, second, ".."), ["b.txt"]);
    equal(await sources.copies.changedFiles(repository, noCommit, second, ".."), undefined);
    await rejects(sources.copies.resolve(repository, "--upload-pack=touch"), (error) => isFault(error, "not-found"));
    await rejects(sources.copies.having(repository, "f".repeat(40)), (error) => isFault(error, "not-found"));
  });

  test("many who ask at once share git, and what has not changed is not fetched again", async () => {
    const plain = await sources.get("mill", "octo/demo");
    const linked = join(folder, "linked"); // what git keeps is elsewhere: its files are not read
    await own(work, "worktree", "add", "--quiet", "-b", "side", linked);
    const repository = await sources.register("mill", "octo/linked", linked);
    const bin = join(folder, "counting");
    await mkdir(bin, { recursive: true });
    const { stdout } = await run("sh", ["-c", "command -v git"]);
    const calls = join(bin, "calls");
    await writeFile(join(bin, "git"), `#!/bin/sh\necho "$1" >> '${calls}'\nexec '${stdout.trim()}' "$@"\n`, {
      mode: 0o755,
    });
    const path = process.env["PATH"];
    const counted = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
      await writeFile(calls, "");
      process.env["PATH"] = `${bin}:${path}`;
      await work().finally(() => (process.env["PATH"] = path));
      return (await readFile(calls, "utf8")).trim().split("\n");
    };
    const resolve = () => sources.copies.resolve(repository, "topic");
    await resolve();
    const together = await counted(() => Promise.all(Array.from({ length: 50 }, resolve)));
    deepEqual(together, ["ls-remote", "ls-remote"]);
    deepEqual(await counted(resolve), ["ls-remote"]);
    await sources.copies.resolve(plain, "topic");
    deepEqual(await counted(() => sources.copies.resolve(plain, "topic")), [""], "a repository here is read itself");
    await own(work, "commit", "--quiet", "--allow-empty", "-m", "third");
    const third = await own(work, "rev-parse", "HEAD");
    const moved = await counted(async () => equal((await resolve()).sha, third));
    deepEqual(moved, ["ls-remote", "fetch", "symbolic-ref", "rev-parse", "log"]);
    await own(work, "reset", "--quiet", "--hard", "HEAD~1");
    equal((await resolve()).message, "second");
    equal((await sources.copies.resolve(plain, "topic")).message, "second");
    await own(work, "worktree", "remove", "--force", linked);
    await own(work, "branch", "--quiet", "-D", "side");
  });

  test("the merge of a pull request is a ref, unless the two conflict", async () => {
    const repository = await sources.get("mill", "octo/demo");
    await sources.copies.fetch(repository);
    const merged = await sources.setPull(repository, { number: 7, head: "refs/heads/topic", base: "refs/heads/main" });
    const path = sources.copies.path(repository);
    equal((await git(path, ["rev-parse", "refs/pull/7/merge"])).toString().trim(), merged.merge);
    equal((await git(path, ["rev-parse", "refs/pull/7/merge^1"])).toString().trim(), sha);
  });

  test("a push over HTTP becomes one event for each ref, and can be fetched shallow by its commit", async () => {
    await own(work, "push", "--quiet", `${url}/octo/kept`, `${sha}:refs/heads/main`, `${sha}:refs/tags/v1`);
    const [first, second] = [await nextPush(), await nextPush()];
    deepEqual([first.ref, second.ref].toSorted(), ["refs/heads/main", "refs/tags/v1"]);
    const { repository, before: from, after: to, pusher, tenant } = first;
    deepEqual([repository, from, to, pusher, tenant], ["octo/kept", noCommit, sha, "ann", "mill"]);
    const clone = join(folder, "clone");
    await mkdir(clone);
    await own(clone, "init", "--quiet");
    await own(clone, "-c", "protocol.version=2", "fetch", "--quiet", "--depth=1", `${url}/octo/kept`, sha);
    await own(clone, "checkout", "--quiet", "FETCH_HEAD");
    equal(await readFile(join(clone, "a.txt"), "utf8"), "first\n");
    const old = join(folder, "clone-v0");
    await own(folder, "-c", "protocol.version=0", "clone", "--quiet", `${url}/octo/kept.git`, old);
    equal(await own(old, "rev-parse", "HEAD"), sha);
    await own(work, "push", "--quiet", `${url}/octo/kept`, ":refs/tags/v1");
    equal((await nextPush()).after, noCommit);
  });

  test("a push that the node did not announce before it died is announced later", async () => {
    const repository = await sources.get("mill", "octo/kept");
    const path = sources.copies.path(repository);
    await git(path, ["update-ref", "refs/heads/late", sha]); // as receive-pack does, right before a crash
    await sources.announceMissed();
    const push = await nextPush();
    deepEqual([push.ref, push.before, push.after, push.pusher], ["refs/heads/late", noCommit, sha, "unknown"]);
    await sources.announceMissed();
    deepEqual(changesOf({ a: "1", b: "2" }, new Map([["a", "1"]])), [{ ref: "b", before: "2", after: noCommit }]);
  });

  test("pushes of hooks, to the node's own refs, to mirrors and of too much are refused, and run nothing", async () => {
    const path = sources.copies.path(await sources.get("mill", "octo/kept"));
    const witness = join(folder, "witness");
    await mkdir(join(path, "hooks"), { recursive: true });
    await writeFile(join(path, "hooks", "post-receive"), `#!/bin/sh\ntouch ${witness}\n`, { mode: 0o755 });
    await own(work, "push", "--quiet", `${url}/octo/kept`, `${sha}:refs/heads/hooked`);
    await nextPush();
    await rejects(stat(witness), "no hook ran");
    await rejects(own(work, "push", `${url}/octo/kept`, `${sha}:refs/pull/1/merge`), /hidden ref/);
    await rejects(own(work, "push", `${url}/octo/demo`, `${sha}:refs/heads/x`), /403/);
    await own(work, "checkout", "--quiet", "--detach");
    const { randomBytes } = await import("node:crypto");
    await writeFile(join(work, "large.bin"), randomBytes(6 * 1024 * 1024));
    await own(work, "add", "-A");
    await own(work, "commit", "--quiet", "-m", "large");
    await rejects(own(work, "push", `${url}/octo/kept`, "HEAD:refs/heads/large"));
    const refs = (await git(path, ["for-each-ref", "--format=%(refname)"])).toString();
    ok(!refs.includes("large") && !refs.includes("pull"), refs);
  });

  test("the files of a commit are blobs, and are placed with their modes and links", async () => {
    const repository = await sources.get("mill", "octo/demo");
    const digest = await sources.snapshots.take(repository, sha);
    equal(await sources.snapshots.take(repository, sha), digest);
    const placed = join(folder, "placed");
    await mkdir(placed);
    await sources.snapshots.place("mill", digest, placed);
    equal(await readFile(join(placed, "a.txt"), "utf8"), "first\n");
    equal((await stat(join(placed, "deep", "run.sh"))).mode & 0o111, 0o111);
    equal(await readlink(join(placed, "deep", "link")), "../a.txt");
    await rejects(sources.snapshots.place("other", digest, join(folder, "none")), (error) =>
      isFault(error, "not-found"),
    );
  });

  test("a git process that takes too long, or prints too much, ends with its tree", async () => {
    await rejects(git(work, ["log", "-p"], { bytesMax: 10 }), /printed more than 10 bytes|too|bytes/);
    const slow = git(work, ["-c", "alias.slow=!sleep 60", "slow"], { timeoutMs: 100 });
    await rejects(slow, /took longer than 100 ms/);
  });
});

describe("hostile names", () => {
  const rules = { protocols: ["https", "file"], privateAddresses: false } as const;

  test("only addresses that are allowed are called", () => {
    equal(checkRemote("https://example.com/a/b.git", rules).host, "example.com");
    for (const [url, why] of [
      ["ext::sh -c touch%20x", /cannot be read/],
      ["ext::sh", /write a path/],
      ["git://example.com/x", /write a path/],
      ["http://example.com/x", /not among sources.protocols/],
      ["ssh://-oProxyCommand=x/y", /not among|no host|cannot/],
      ["--upload-pack=x", /cannot be read/],
      ["https://user:pass@example.com/x", /password/],
      ["https://127.0.0.1/x", /private/],
      ["https://[::1]/x", /private/],
      ["https://169.254.169.254/latest", /private/],
      ["https://0x7f000001/x", /private/],
      ["file://host/x", /no host/],
      ["relative/path", /write a path/],
    ] as const)
      throws(() => checkRemote(url, rules), why, url);
    for (const address of ["10.1.2.3", "::ffff:10.0.0.1", "fe80::1", "fd00::1", "192.168.0.1"])
      ok(isPrivate(address), address);
    for (const address of ["8.8.8.8", "2001:4860:4860::8888"]) ok(!isPrivate(address), address);
  });

  test("refs and paths of trees that lead elsewhere are refused", () => {
    for (const ref of [
      "refs/heads/a b",
      "refs/heads/../x",
      "refs/heads/x.lock",
      "refs/heads/-x:y",
      "main",
      "refs/heads/a\nb",
    ])
      ok(!isRef(ref), ref);
    ok(isRef("refs/heads/feature/x-1"));
    const object = "a".repeat(40);
    for (const path of ["../x", "a/../../x", ".git/config", "deep/.GIT/hooks/post-checkout", "/etc/passwd"])
      throws(() => readTree(`100644 blob ${object}       5\t${path}\0`), /leads out/, path);
    throws(
      () => readTree(`120000 blob ${object} 5\tlink${"\0"}100644 blob ${object} 5\tlink/passwd\0`),
      /behind a link/,
    );
    equal(gitCallIn(new URL("http://x/octo/../info/refs?service=git-upload-pack"), "GET"), undefined);
    equal(gitCallIn(new URL("http://x/a/b/info/refs?service=git-upload-archive"), "GET"), undefined);
    match(gitCallIn(new URL("http://x/a/b.git/info/refs?service=git-upload-pack"), "GET")?.repository ?? "", /^a\/b$/);
  });
});
