/** Git over HTTP and the REST calls of actions, on a real node. */
import { equal, match, rejects } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openLab, tokenFor, type HeldJob, type Lab } from "./lab.ts";

const run = promisify(execFile);
const names = {
  GIT_AUTHOR_NAME: "ann",
  GIT_AUTHOR_EMAIL: "a@b",
  GIT_COMMITTER_NAME: "ann",
  GIT_COMMITTER_EMAIL: "a@b",
};
const env = {
  PATH: process.env["PATH"],
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  ...names,
};

describe("git on a node", { timeout: 60_000 }, () => {
  let lab: Lab;
  let job: HeldJob;
  let work: string;
  let sha: string;
  const git = async (...args: readonly string[]): Promise<string> =>
    (await run("git", ["-C", work, ...args], { env })).stdout.trim();
  const basic = (token: string): string =>
    `http.extraHeader=authorization: basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`;

  before(async () => {
    lab = await openLab();
    job = await lab.hold();
    work = join(lab.folder, "work");
    await mkdir(work);
    await git("init", "--quiet", "--initial-branch=main");
    await writeFile(join(work, "a.txt"), "first\n");
    await git("add", "-A");
    await git("commit", "--quiet", "-m", "first");
    sha = await git("rev-parse", "HEAD");
    await lab.sources.keep("mill", "octo/demo");
  });
  after(() => lab[Symbol.asyncDispose]());

  test("a member pushes, which is an event; strangers and other tenants cannot", async () => {
    const url = `${lab.origin}/octo/demo`;
    await rejects(
      git("push", "--quiet", url, "main"),
      /could not read Username|Authentication|terminal prompts disabled/,
    );
    await rejects(git("-c", basic(tokenFor("bob")), "push", "--quiet", url, "main"), /not found/);
    await git("-c", basic(tokenFor("ann")), "push", "--quiet", url, "main");
    for await (const push of lab.sources.pushes.follow(AbortSignal.timeout(60_000))) {
      equal(
        `${push.tenant} ${push.repository} ${push.ref} ${push.after} ${push.pusher}`,
        `mill octo/demo refs/heads/main ${sha} ann`,
      );
      break;
    }
  });

  test("a job's token fetches the commit of its run, and does nothing else", async () => {
    const { token, env: told } = await lab.env(job);
    equal(new URL(told["GITHUB_SERVER_URL"] ?? "").hostname, "ci.localhost");
    const clone = join(lab.folder, "clone");
    await mkdir(clone);
    await git("init", "--quiet", clone);
    await git("-C", clone, "-c", basic(token), "fetch", "--quiet", "--depth=1", `${lab.origin}/octo/demo`, sha);
    await rejects(git("-c", basic(token), "push", "--quiet", `${lab.origin}/octo/demo`, "main:other"), /403/);
    await lab.sources.keep("mill", "octo/secret");
    await rejects(git("-c", basic(token), "ls-remote", `${lab.origin}/octo/secret`), /not found/);
    const over = await lab.hold();
    const stale = (await lab.env(over)).token;
    await over.cancel();
    await rejects(git("-c", basic(stale), "ls-remote", `${lab.origin}/octo/demo`), /403/);
  });

  test("the REST calls of actions are answered from the repository", async () => {
    const { token, env: told } = await lab.env(job);
    const ask = async (
      path: string,
      init: RequestInit = {},
    ): Promise<{ status: number; body: Record<string, never> }> => {
      const headers = { authorization: `token ${token}` };
      const response = await fetch(`${told["GITHUB_API_URL"]}${path}`, { headers, ...init });
      return { status: response.status, body: (await response.json()) as Record<string, never> };
    };
    const at = "/repos/octo/demo";
    equal((await ask(at)).body["default_branch"], "main");
    equal((await ask(`${at}/commits/main`)).body["sha"], sha);
    equal((await ask(`${at}/git/ref/heads/main`)).body["object"]?.["sha"], sha);
    equal(Buffer.from(String((await ask(`${at}/contents/a.txt`)).body["content"]), "base64").toString(), "first\n");
    equal((await ask(`${at}/contents/..%2F..%2Fetc%2Fpasswd`)).status, 404);
    equal((await ask("/repos/octo/secret")).status, 404);
    equal((await ask(`${at}/issues`, { method: "POST", headers: { authorization: `Bearer ${token}` } })).status, 403);
    equal((await ask(at, { headers: { authorization: "token wrong" } })).status, 401);
    const tarball = await fetch(`${told["GITHUB_API_URL"]}${at}/tarball/main`, {
      headers: { authorization: `token ${token}` },
    });
    equal(tarball.status, 200);
    match(
      Buffer.from(await tarball.arrayBuffer())
        .subarray(0, 2)
        .toString("hex"),
      /^1f8b$/,
    );
  });
});
