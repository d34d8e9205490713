/**
 * The part of GitHub's REST API that official actions call with a job's token. It reads: the run's repository, its
 * artifacts and its caches.
 */
import type { Commit } from "#sources/copies.ts";
import type { Repository } from "#sources/book.ts";
import type { Sources } from "#sources/sources.ts";
import { git, gitText, startGit } from "#sources/git.ts";
import { isRef, isSha, refsMeant } from "#sources/names.ts";
import { isFault } from "#base/fault.ts";
import { Problem } from "#http/problem.ts";
import type { Artifacts, SealedArtifact } from "#doors/ci/services/artifacts/artifacts.ts";
import { downloadOf } from "#doors/ci/services/artifacts/artifact-twirp.ts";
import type { Caches } from "#doors/ci/services/caches/caches.ts";
import { type JobIdentity, mayRead } from "./job-token.ts";
import type { Signed } from "./signed-address.ts";

export const restPrefix = "/api/v3/";

export type RestPorts = {
  readonly sources: Sources;
  readonly artifacts: Artifacts;
  readonly caches: Caches;
  readonly sign: (origin: string, signed: Signed) => Promise<string>;
};

type RestCall = {
  readonly url: URL;
  readonly job: JobIdentity;
  readonly ports: RestPorts;
  readonly signal: AbortSignal;
};
type Found = RestCall & { readonly repository: Repository; readonly rest: string };
type Answer = Promise<Response> | Response;

/** In this order; what a hole in a path takes is decoded. */
const routes: readonly (readonly [pattern: RegExp, serve: (found: Found, ...parts: readonly string[]) => Answer])[] = [
  [/^$/, showRepository],
  [/^branches$/, (found) => listRefs(found, "refs/heads/")],
  [/^tags$/, (found) => listRefs(found, "refs/tags/")],
  [/^branches\/(.+)$/, (found, name) => showBranch(found, name)],
  [/^git\/ref\/(.+)$/, (found, ref) => showRef(found, `refs/${ref}`)],
  [/^git\/matching-refs\/(.*)$/, (found, prefix) => matchingRefs(found, `refs/${prefix}`)],
  [/^commits\/(.+)$/, (found, ref) => showCommit(found, ref)],
  [/^compare\/(.+?)\.\.\.(.+)$/, (found, base, head) => compare(found, base, head)],
  [/^contents\/(.+)$/, (found, path) => showFile(found, path)],
  [/^(tarball|zipball)(?:\/(.+))?$/, (found, kind, ref) => archive(found, kind, ref)],
  [/^actions\/runs\/([^/]+)\/artifacts$/, (found, run) => listArtifacts(found, run)],
  [/^actions\/artifacts\/(\d+)$/, (found, id) => showArtifact(found, id)],
  [/^actions\/artifacts\/(\d+)\/zip$/, (found, id) => downloadArtifact(found, id)],
  [/^actions\/caches$/, listCaches],
];

/** Addresses as docs/reference/ci.md lists them. */
export const restPaths: readonly string[] = [
  "/rate_limit",
  "/repos/{owner}/{repo}",
  "/repos/{owner}/{repo}/branches",
  "/repos/{owner}/{repo}/branches/{branch}",
  "/repos/{owner}/{repo}/tags",
  "/repos/{owner}/{repo}/git/ref/{ref}",
  "/repos/{owner}/{repo}/git/matching-refs/{ref}",
  "/repos/{owner}/{repo}/commits/{ref}",
  "/repos/{owner}/{repo}/compare/{base}...{head}",
  "/repos/{owner}/{repo}/contents/{path}",
  "/repos/{owner}/{repo}/tarball/{ref}",
  "/repos/{owner}/{repo}/zipball/{ref}",
  "/repos/{owner}/{repo}/actions/runs/{run}/artifacts",
  "/repos/{owner}/{repo}/actions/artifacts/{id}",
  "/repos/{owner}/{repo}/actions/artifacts/{id}/zip",
  "/repos/{owner}/{repo}/actions/caches",
];

export async function serveRest(ports: RestPorts, request: Request, url: URL, job: JobIdentity): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD")
    throw new Problem(403, "Resource not accessible by integration: a job's token only reads");
  const path = decoded(url.pathname.slice(restPrefix.length));
  if (path === "rate_limit") return Response.json(rateLimit);
  const [, name = "", rest = ""] = /^repos\/([^/]+\/[^/]+)\/?(.*)$/s.exec(path) ?? [];
  if (name.toLowerCase() !== job.repository.toLowerCase()) throw notFound();
  const scope = rest.startsWith("actions/") ? "actions" : rest === "" ? "metadata" : "contents";
  if (scope !== "metadata" && !mayRead(job, scope))
    throw new Problem(403, `Resource not accessible by integration: the job has no \`${scope}: read\` permission`);
  try {
    const repository = await ports.sources.get(job.tenant, name);
    for (const [pattern, serve] of routes) {
      const match = pattern.exec(rest);
      if (match) return await serve({ url, job, ports, repository, rest, signal: request.signal }, ...match.slice(1));
    }
  } catch (error) {
    if (!isFault(error, "not-found")) throw error;
  }
  throw notFound();
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw notFound();
  }
}

const notFound = (): Problem => new Problem(404, "Not Found");
const unlimited = { limit: 1_000_000, used: 0, remaining: 1_000_000, reset: 0 };
const rateLimit = { resources: { core: unlimited }, rate: unlimited };

async function showRepository({ repository, ports }: Found): Promise<Response> {
  const { name } = repository;
  const [owner = "", short = ""] = name.split("/");
  const { defaultBranch } = await ports.sources.copies.resolve(repository).catch(() => ({ defaultBranch: "main" }));
  return Response.json({
    id: idOf(name),
    name: short,
    full_name: name,
    private: true,
    default_branch: defaultBranch,
    owner: { login: owner, id: idOf(owner), type: "Organization" },
    permissions: { admin: false, push: false, pull: true },
  });
}

/** A number that is the same everywhere; nothing is found by it. */
function idOf(text: string): number {
  let id = 7;
  for (const letter of text.toLowerCase()) id = (id * 31 + (letter.codePointAt(0) ?? 0)) % 2 ** 31;
  return id;
}

const listMax = 1_000;

async function refs(
  { ports, repository }: Found,
  prefix: string,
): Promise<readonly { ref: string; sha: string; type: string }[]> {
  if (prefix !== "refs/" && !isRef(prefix.replace(/\/$/, ""))) throw notFound();
  const path = await ports.sources.copies.fetch(repository);
  const text = await gitText(path, ["for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"]);
  return text.split("\n").flatMap((line) => {
    const [sha = "", type = "", ref = ""] = line.split(" ");
    return ref.startsWith(prefix) ? [{ ref, sha, type }] : [];
  });
}

const shownRef = ({ ref, sha, type }: { ref: string; sha: string; type: string }) => ({ ref, object: { sha, type } });

async function listRefs(found: Found, prefix: string): Promise<Response> {
  const all = await refs(found, prefix);
  return Response.json(
    all.slice(0, listMax).map(({ ref, sha }) => ({ name: ref.slice(prefix.length), commit: { sha } })),
  );
}

async function showBranch(found: Found, name = ""): Promise<Response> {
  const one = (await refs(found, `refs/heads/${name}`)).find(({ ref }) => ref === `refs/heads/${name}`);
  if (!one) throw notFound();
  return Response.json({ name, commit: { sha: one.sha }, protected: false });
}

async function showRef(found: Found, ref: string): Promise<Response> {
  const one = (await refs(found, ref)).find((each) => each.ref === ref);
  if (!one) throw notFound();
  return Response.json(shownRef(one));
}

const matchingRefs = async (found: Found, prefix: string): Promise<Response> =>
  Response.json((await refs(found, prefix)).slice(0, listMax).map(shownRef));

const commitAt = ({ ports, repository }: Found, ref = ""): Promise<Commit> =>
  ports.sources.copies.resolve(repository, ref === "" ? undefined : ref);

async function showCommit(found: Found, ref = ""): Promise<Response> {
  const { sha, message, author, before } = await commitAt(found, ref);
  if ((found.url.searchParams.get("ref") ?? "") === "" && isSha(ref) && sha !== ref) throw notFound();
  const parents = /^0+$/.test(before) ? [] : [{ sha: before }];
  return Response.json({ sha, commit: { message, author: { name: author } }, parents });
}

async function compare(found: Found, base = "", head = ""): Promise<Response> {
  const [from, to] = [await commitAt(found, base), await commitAt(found, head)];
  const files = await found.ports.sources.copies.changedFiles(found.repository, from.sha, to.sha, "...");
  return Response.json({
    base_commit: { sha: from.sha },
    merge_base_commit: { sha: from.sha },
    files: (files ?? []).slice(0, 300).map((filename) => ({ filename })),
  });
}

const fileBytesMax = 1024 * 1024;

async function showFile(found: Found, path = ""): Promise<Response> {
  if (path.startsWith("/") || path.split("/").includes("..")) throw notFound();
  const { sha } = await commitAt(found, found.url.searchParams.get("ref") ?? "");
  const folder = await found.ports.sources.copies.having(found.repository, sha);
  const listed = await gitText(folder, ["ls-tree", "-z", "-l", sha, "--", path]);
  const [, object = "", size = "0"] = /^100\d+ blob ([0-9a-f]+)\s+(\d+)\t/.exec(listed) ?? [];
  if (object === "") throw notFound();
  if (Number(size) > fileBytesMax) throw new Problem(403, `files above ${fileBytesMax} bytes are not shown here`);
  const bytes = await git(folder, ["cat-file", "blob", object], { bytesMax: fileBytesMax });
  const name = path.slice(path.lastIndexOf("/") + 1);
  return Response.json({
    type: "file",
    encoding: "base64",
    size: bytes.length,
    name,
    path,
    sha: object,
    content: bytes.toString("base64"),
  });
}

async function archive(found: Found, kind = "", ref = ""): Promise<Response> {
  const { sha } = await commitAt(found, isSha(ref) || ref === "" ? ref : (refsMeant(ref)[0] ?? notFoundRef()));
  const folder = await found.ports.sources.copies.having(found.repository, sha);
  const prefix = `${found.repository.name.replace("/", "-")}-${sha.slice(0, 7)}/`;
  const format = kind === "zipball" ? "zip" : "tar.gz";
  const options = { timeoutMs: 600_000, signal: found.signal };
  const { output } = startGit(folder, ["archive", `--format=${format}`, `--prefix=${prefix}`, sha], options);
  const type = kind === "zipball" ? "application/zip" : "application/gzip";
  return new Response(ReadableStream.from(output), { headers: { "content-type": type } });
}

const notFoundRef = (): never => {
  throw notFound();
};

const shownArtifact = (origin: string, repository: string, artifact: SealedArtifact) => ({
  id: artifact.id,
  name: artifact.name,
  size_in_bytes: artifact.sealed.content.sizeBytes,
  digest: `sha256:${artifact.sealed.sha256}`,
  expired: false,
  created_at: new Date(artifact.createdAtMs).toISOString(),
  expires_at: new Date(artifact.expiresAtMs).toISOString(),
  archive_download_url: `${origin}${restPrefix}repos/${repository}/actions/artifacts/${artifact.id}/zip`,
  workflow_run: { id: artifact.run },
});

async function listArtifacts({ job, url, ports, repository }: Found, run = ""): Promise<Response> {
  const name = url.searchParams.get("name");
  const all = await ports.artifacts.list(job.tenant, run === "" ? job.run : run);
  const own = all.filter((one) => one.repository === job.repository && (name === null || one.name === name));
  const { from, to } = pageOf(url);
  const artifacts = own.slice(from, to).map((one) => shownArtifact(url.origin, repository.name, one));
  return Response.json({ total_count: own.length, artifacts });
}

function pageOf({ searchParams }: URL): { readonly from: number; readonly to: number } {
  const size = Math.min(100, Number(searchParams.get("per_page") ?? 30) || 30);
  const page = Math.max(1, Number(searchParams.get("page") ?? 1) || 1);
  return { from: (page - 1) * size, to: page * size };
}

async function artifactOf({ job, ports }: Found, id = ""): Promise<SealedArtifact> {
  const artifact = await ports.artifacts.byId(job.tenant, id);
  if (!artifact || artifact.repository !== job.repository) throw notFound();
  return artifact;
}

const showArtifact = async (found: Found, id?: string): Promise<Response> =>
  Response.json(shownArtifact(found.url.origin, found.repository.name, await artifactOf(found, id)));

async function downloadArtifact(found: Found, id?: string): Promise<Response> {
  const artifact = await artifactOf(found, id);
  const location = await found.ports.sign(found.url.origin, downloadOf(found.job.tenant, artifact));
  return new Response(null, { status: 302, headers: { location } });
}

async function listCaches({ job, url, ports }: Found): Promise<Response> {
  const key = url.searchParams.get("key") ?? "";
  const all = await ports.caches.list(job.tenant, job.repository);
  const wanted = all.filter((entry) => entry.key.startsWith(key) && job.cacheRefs.includes(entry.ref));
  const { from, to } = pageOf(url);
  const actions_caches = wanted.slice(from, to).map((entry) => ({
    id: entry.id,
    ref: entry.ref,
    key: entry.key,
    version: entry.version,
    size_in_bytes: entry.sizeBytes,
    created_at: new Date(entry.createdAtMs).toISOString(),
    last_accessed_at: new Date(entry.usedAtMs).toISOString(),
  }));
  return Response.json({ total_count: wanted.length, actions_caches });
}
