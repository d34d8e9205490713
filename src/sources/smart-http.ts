/**
 * Git's smart HTTP protocol, all versions: fetches (shallow and of any commit, too) and pushes. Git's own programs do
 * the work; this file decides what they are called with.
 */
import type { Clock } from "#base/clock.ts";
import { bodyIdleMsDefault, bodyParts } from "#http/body.ts";
import { Problem } from "#http/problem.ts";
import type { Repository } from "./book.ts";
import type { Copies } from "./copies.ts";
import { startGit, type GitOptions } from "./git.ts";
import type { Pusher, Pushes } from "./pushes.ts";

export type GitService = "upload-pack" | "receive-pack";

/** One call, recognised by its address. */
export type GitCall = {
  readonly repository: string;
  readonly service: GitService;
  readonly kind: "refs" | "run";
};

const name = "[A-Za-z0-9_][A-Za-z0-9._-]{0,99}";
const shape = new RegExp(`^/(${name}/${name}?)(?:\\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`);

/** Undefined for an address that is not git's. */
export function gitCallIn({ pathname, searchParams }: URL, method: string): GitCall | undefined {
  const [, repository, what] = shape.exec(pathname) ?? [];
  if (repository === undefined || what === undefined) return undefined;
  if (what === "info/refs") {
    const service = /^git-(upload-pack|receive-pack)$/.exec(searchParams.get("service") ?? "")?.[1];
    if (method !== "GET" || service === undefined) return undefined;
    return { repository, service: service as GitService, kind: "refs" };
  }
  return method === "POST" ? { repository, service: what.slice(4) as GitService, kind: "run" } : undefined;
}

export type GitPorts = {
  readonly copies: Copies;
  readonly pushes: Pushes;
  readonly clock: Clock;
  readonly pushBytesMax: number;
};

/** Where the repository is kept, if that is another node. */
export type Keeper = {
  pushRefs(): Promise<Buffer<ArrayBuffer>>;
  push(bytes: AsyncIterable<Uint8Array>): Promise<Buffer<ArrayBuffer>>;
};

const wantsBytesMax = 16 * 1024 * 1024;
const fetchMsMax = 3_600_000;

export async function serveGit(
  ports: GitPorts,
  request: Request,
  {
    repository,
    call,
    pusher,
    keeper,
  }: {
    readonly repository: Repository;
    readonly call: GitCall;
    readonly pusher: Pusher;
    readonly keeper?: Keeper | undefined;
  },
): Promise<Response> {
  if (call.service === "receive-pack" && repository.url !== undefined && !keeper)
    throw new Problem(403, "this repository is a copy of another: push to that one");
  const isPush = call.service === "receive-pack";
  const path = isPush && keeper ? "" : await ports.copies.fetch(repository);
  const options = optionsFor(request, ports);
  if (call.kind === "refs") {
    const bytes = isPush && keeper ? await keeper.pushRefs() : await advertisement(path, call.service, ports, options);
    const headers = { ...always, "content-type": `application/x-git-${call.service}-advertisement` };
    return new Response(bytes, { headers });
  }
  const type = `application/x-git-${call.service}`;
  if (request.headers.get("content-type") !== `${type}-request`) throw new Problem(415, `send ${type}-request`);
  const answer = { headers: { ...always, "content-type": `${type}-result` } };
  if (call.service === "upload-pack") {
    const input = bodyParts(request, { bytesMax: wantsBytesMax, idleMs: bodyIdleMsDefault }, ports.clock);
    const { output } = startGit(path, ["upload-pack", "--strict", "--stateless-rpc", "."], { ...options, input });
    return new Response(ReadableStream.from(output), answer);
  }
  const input = bodyParts(request, { bytesMax: ports.pushBytesMax, idleMs: bodyIdleMsDefault }, ports.clock);
  const said = keeper ? await keeper.push(input) : await receivePack(ports, input, { repository, pusher }, options);
  return new Response(said, answer);
}

const always = {
  "cache-control": "no-cache, max-age=0, must-revalidate",
  "x-content-type-options": "nosniff",
} as const;

function optionsFor(request: Request, ports: Pick<GitPorts, "pushBytesMax">): GitOptions {
  const version = /^version=[0-9]$/.exec(request.headers.get("git-protocol") ?? "")?.[0];
  return {
    ...standing(ports),
    signal: request.signal,
    ...(version !== undefined && { env: { GIT_PROTOCOL: version } }),
  };
}

function standing({ pushBytesMax }: Pick<GitPorts, "pushBytesMax">): GitOptions {
  return {
    timeoutMs: fetchMsMax,
    config: {
      "receive.fsckObjects": "true",
      "receive.maxInputSize": String(pushBytesMax),
      "receive.hideRefs": "refs/pull", // the node's own
      "receive.advertiseAtomic": "true",
      "uploadpack.allowFilter": "true",
    },
  };
}

/** The refs that a fetch or a push begins with. */
export async function advertisement(
  path: string,
  service: GitService,
  ports: Pick<GitPorts, "pushBytesMax">,
  options: GitOptions = standing(ports),
): Promise<Buffer<ArrayBuffer>> {
  const running = startGit(path, [service, "--stateless-rpc", "--http-backend-info-refs", "."], options);
  const parts: Uint8Array[] = [];
  if (service === "receive-pack" || options.env?.["GIT_PROTOCOL"] !== "version=2") parts.push(head(service));
  for await (const part of running.output) parts.push(part);
  await running.ended;
  return Buffer.concat(parts);
}

/** A line of the protocol begins with its length in hex digits, and 0000 ends a section. */
function head(service: GitService): Buffer {
  const line = `# service=git-${service}\n`;
  return Buffer.from(`${(line.length + 4).toString(16).padStart(4, "0")}${line}0000`);
}

/** The client gets its answer when the push is announced (PS1): what it is told has happened leads to runs. */
export async function receivePack(
  { copies, pushes, pushBytesMax }: Omit<GitPorts, "clock">,
  input: AsyncIterable<Uint8Array>,
  { repository, pusher }: { readonly repository: Repository; readonly pusher: Pusher },
  options: GitOptions = standing({ pushBytesMax }),
): Promise<Buffer<ArrayBuffer>> {
  const path = await copies.create(repository);
  return await copies.turns.take(path, async () => {
    await pushes.announce(repository, path, { name: pusher.name, isOperator: false }); // what an earlier push left
    // A push that was read whole is carried through, whether or not its client waits.
    const { signal: _signal, ...rest } = options;
    const running = startGit(path, ["receive-pack", "--stateless-rpc", "."], { ...rest, input });
    const parts: Uint8Array[] = [];
    try {
      for await (const part of running.output) parts.push(part);
      await running.ended;
    } finally {
      await pushes.announce(repository, path, pusher);
    }
    return Buffer.concat(parts);
  });
}
