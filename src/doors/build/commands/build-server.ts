/** What commands about builds ask of a node over HTTP. */
import { Readable } from "node:stream";
import { createReadStream } from "node:fs";
import { Fault } from "#base/fault.ts";
import type { ExitCode, NodeHttp, World } from "#door/command.ts";
import type { Upload } from "./build-file.ts";
import { actionLine, buildLine, countsLine, endedPhases, type NewsWords } from "./build-words.ts";

const doing = "ask for a build";

export const askBuilds = async (server: NodeHttp, path: string, init: RequestInit = {}): Promise<Response> =>
  await server.ask(`/v1/builds${path}`, doing, init);

export const builds = async <T>(server: NodeHttp, path: string, init: RequestInit = {}): Promise<T> =>
  (await (await askBuilds(server, path, init)).json()) as T;

/** What the node has already is not sent again. */
export const uploadTo =
  (server: NodeHttp): Upload =>
  async (digest, bytes) => {
    const hash = digest.slice(0, digest.indexOf("/"));
    const known = await server.reach(`/cas/${hash}`, { method: "HEAD" }).catch(() => undefined);
    if (known?.ok === true) return;
    const body =
      "file" in bytes ? (Readable.toWeb(createReadStream(bytes.file)) as ReadableStream) : Buffer.from(bytes);
    const init = { method: "PUT", body, duplex: "half" as const };
    await server.ask(`/v1/build-cache/blobs/${digest}`, "upload input", init);
  };

/** Shows a build until it has ended: 0 when it succeeded. Ctrl-C ends the watching, never the build. */
export async function watchBuild(
  server: NodeHttp,
  buildId: string,
  { json }: { readonly json?: boolean },
  world: World,
): Promise<ExitCode> {
  const abort = new AbortController();
  const stop = (): void => abort.abort(new Error("watching ended"));
  process.once("SIGINT", stop);
  try {
    return await untilEnded(server, buildId, json === true, world, abort.signal);
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    world.progress("");
    world.note(`${buildId} goes on by itself; watch it again with: millrace build watch ${buildId}`);
    return 0;
  } finally {
    process.off("SIGINT", stop);
  }
}

const againMs = 500;
/** How long to wait for a node that restarts. */
const patienceMs = 60_000;

async function untilEnded(
  server: NodeHttp,
  buildId: string,
  json: boolean,
  world: World,
  signal: AbortSignal,
): Promise<ExitCode> {
  const shown = new Map<string, string>();
  for (let lostMono: number | undefined; ;) {
    try {
      for await (const news of newsOf(server, buildId, signal)) {
        lostMono = undefined;
        show(news, shown, json, world);
        if (endedPhases.has(news.phase)) return news.phase === "succeeded" ? 0 : 1;
      }
      lostMono ??= performance.now();
    } catch (error) {
      signal.throwIfAborted();
      lostMono ??= performance.now();
      const isGone = error instanceof Fault && error.code !== "unavailable";
      if (isGone || performance.now() - lostMono > patienceMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** A stream that was opened again repeats events: those are printed once. */
function show(news: NewsWords, shown: Map<string, string>, json: boolean, world: World): void {
  const changed = news.changed.filter((action) => shown.get(action.key) !== actionLine(action));
  for (const action of changed) shown.set(action.key, actionLine(action));
  const hasEnded = endedPhases.has(news.phase);
  if (json) return void ((changed.length > 0 || hasEnded) && world.out(JSON.stringify({ ...news, changed })));
  for (const action of changed) if (action.state !== "waiting") world.out(actionLine(action));
  world.progress(hasEnded ? "" : `${news.build}  ${countsLine(news.counts ?? {})}`);
  if (hasEnded) world.out(buildLine(news));
}

async function* newsOf(server: NodeHttp, buildId: string, signal: AbortSignal): AsyncGenerator<NewsWords> {
  const { body } = await askBuilds(server, `/${buildId}/watch`, { signal });
  let rest = "";
  try {
    for await (const part of (body ?? new ReadableStream<Uint8Array>()).pipeThrough(new TextDecoderStream())) {
      const lines = (rest + part).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as NewsWords;
    }
  } catch (error) {
    throw new Fault("unavailable", doing, { why: "the connection was lost" }, error);
  }
}
