/** The life of a node in the foreground: up, until a signal; gently at the first, at once at the second. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { existsSync } from "node:fs";
import { startNode, type Running } from "#app/compose/compose.ts";
import { readConfig, type Config } from "#app/config/config.ts";
import { dataFolder, defaultDataPath, type DataFolder } from "#app/node/data-folder.ts";
import { urlFromHere } from "#app/node/edge-notice.ts";
import { checkJoin } from "#app/config/join-check.ts";
import { withJoin } from "#app/config/mesh-config.ts";
import { systemClock } from "#door/system-clock.ts";
import { version } from "#app/version.ts";
import { Fault } from "#base/fault.ts";
import type { ExitCode, World } from "#door/command.ts";
import { logOutput } from "./log-output.ts";
import type { UpFacts } from "./up.ts";

type UpValues = {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly data?: string;
  readonly dev?: boolean;
  readonly join?: string;
};

/**
 * V8 waits for 3,000 calls of a function before it compiles it as well as it can. A node lives for days and does the
 * same few things all day, and what it does is spread over many functions: with fewer calls an action costs it a sixth
 * less CPU, also after ten thousand actions. A V8 that does not know this flag says so, and goes on.
 */
const compileSooner = "--invocation-count-for-turbofan=400";

export async function withNode(values: UpValues, world: World, ready: (facts: UpFacts) => void): Promise<ExitCode> {
  setFlagsFromString(compileSooner);
  await using undo = new AsyncDisposableStack();
  const { config, folder, file } = await configured(values, world, undo);
  const write = logOutput(2, world.note);
  const log = quietly((line) => write(`${new Date().toISOString()} ${line}`));
  const stopping = firstSignal(world, undo);
  const running = await startNode(config, folder, { log, configFile: file });
  await serving(running);
  ready(await factsOf(running, config, folder, world));
  const lost = await Promise.race([stopping, running.drain.left, running.lost]);
  if (lost) return await stoppedWithout(lost, running, world);
  const { running: tasks = 0 } = running.worker?.status() ?? {};
  world.note(
    tasks === 0
      ? "stopping"
      : `stopping: ${tasks} running, given up to ${config.node.stopWithin / 1_000} s (again to stop at once)`,
  );
  await running.stop();
  return 0;
}

/** The data folder is gone, so there is nothing to save: parts that do not stop in time are left behind. */
async function stoppedWithout(lost: Fault, running: Running, { note }: World): Promise<ExitCode> {
  note(`stopping: ${lost.message}`);
  const stopped = running.stop().catch((error: unknown) => note(`stop: ${String(error)}`));
  await Promise.race([stopped, systemClock.sleep(stopWithoutMs)]);
  process.exit(1);
}

const stopWithoutMs = 3_000;

/** Merges the flags, the environment and the configuration file. */
export async function configured(values: UpValues, world: World, undo: AsyncDisposableStack) {
  const throwaway = values.dev ? await throwawayFolder() : undefined;
  if (throwaway !== undefined) undo.defer(() => rm(throwaway, { recursive: true, force: true, maxRetries: 5 }));
  const usual = dataFolder(values.data ?? throwaway ?? defaultDataPath(world.env));
  const { env } = world;
  const named = values.config ?? (env["MILLRACE_CONFIG"] || undefined);
  const file = named ?? (existsSync(usual.config) ? usual.config : undefined);
  const read = await readConfig({ file, env, set: values.set });
  const config = { ...read, mesh: withJoin(read.mesh, values.join) };
  checkJoin(config);
  const folder =
    values.data === undefined && throwaway === undefined && config.node.data !== undefined
      ? dataFolder(config.node.data)
      : usual;
  return { config, folder, file };
}

async function throwawayFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), "millrace-dev-"));
  } catch (cause) {
    const errno = (cause as NodeJS.ErrnoException).code;
    throw new Fault("unavailable", "make a folder for --dev", { folder: tmpdir(), errno }, cause);
  }
}

/** The second signal ends the process at once: what runs is taken up again at the next start. */
function firstSignal({ note }: World, undo: AsyncDisposableStack): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let seen = 0;
  const signalled = (): void => {
    seen += 1;
    if (seen === 1) return resolve();
    note("stopping at once");
    process.exit(1);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, signalled);
    undo.defer(() => void process.off(signal, signalled));
  }
  undo.defer(whenStarterEnds(() => (note("the process that started this node has ended"), resolve())));
  return promise;
}

/**
 * bin/millrace.js starts this process with a channel that breaks when it ends, also by kill -9: without that, the node
 * that `npm start` started would go on, and nothing would stop it. Returns a function that stops listening.
 */
function whenStarterEnds(ended: () => void): () => void {
  if (!process.channel && process.connected !== false) return () => {};
  if (!process.connected) {
    ended();
    return () => {};
  }
  process.once("disconnect", ended);
  process.channel?.unref(); // by itself it keeps no process alive
  return () => void process.off("disconnect", ended);
}

/** Waits until every shard has an owner, but not for ever: one unreadable shard must not hide the others. */
async function serving({ node, journal }: Running): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const owned = (await journal.ownerships()).filter(
      ({ owner, remainingMs }) => owner !== undefined && remainingMs > 0,
    );
    const loading = node.status().shards.some(({ phase }) => phase === "loading" || phase === "taking-over");
    if (owned.length >= node.cluster.shards && !loading) return;
    await systemClock.sleep(50);
  }
}

async function factsOf(running: Running, config: Config, folder: DataFolder, world: World): Promise<UpFacts> {
  const { node, worker, labels, name } = running;
  const isUsual = folder.path === dataFolder(defaultDataPath(world.env)).path;
  return {
    version,
    node: name,
    addresses: config.node.listen.map((address) => (address === "unix" ? `unix:${folder.socket}` : address)),
    edge: running.edgeAddresses,
    login: await linkOf(running, config),
    mesh: running.mesh?.peers().address,
    data: folder.path,
    journal: await running.journal.describe(),
    shards: node.cluster.shards,
    shardsHere: node.status().shards.filter(({ phase }) => phase === "serving").length,
    slots: worker?.status().slots ?? 0,
    labels,
    flag: isUsual ? "" : ` --data ${folder.path}`,
  };
}

async function linkOf(running: Running, { edge }: Config): Promise<UpFacts["login"]> {
  if (running.edgeAddresses.length === 0) return undefined; // a browser cannot open a Unix socket
  const link = await running.loginLink();
  return (
    link && { url: `${urlFromHere(running.edgeAddresses, edge.tls !== undefined)}${link.path}`, forMs: link.forMs }
  );
}

/** Writes a repeated line at most every ten seconds, with the number of repeats. */
function quietly(say: (line: string) => void): (line: string) => void {
  const last = new Map<string, { atMs: number; times: number }>();
  return (line) => {
    const nowMs = systemClock.monotonicMs();
    const seen = last.get(line);
    if (seen && nowMs - seen.atMs < 10_000) {
      seen.times += 1;
      return;
    }
    say(seen && seen.times > 0 ? `${line} (and ${seen.times} times before)` : line);
    if (last.size > 1_000) last.clear();
    last.set(line, { atMs: nowMs, times: 0 });
  };
}
