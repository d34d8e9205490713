/**
 * A worker on a machine that only reaches out: the worker of a node, with everything that it talks to behind one
 * connection to a node. What it prints waits here until the node has acknowledged it.
 */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { Random } from "#base/random.ts";
import { reapiBlobs } from "#blobs/tiers/reapi/reapi.ts";
import type { Door } from "#door/door.ts";
import type { PlaceElsewhere } from "#door/ports.ts";
import { askers } from "#shard/client/ask.ts";
import { executorClient } from "#shard/client/executor.ts";
import { createRouter } from "#shard/router/router.ts";
import { createGrpcTransport, type GrpcTransport } from "#shard/transport/grpc-transport.ts";
import type { Address } from "#shard/transport/transport.ts";
import type { StreamKeeper } from "#worker/printed/live-output.ts";
import type { RunContext, Runners } from "#worker/runner.ts";
import { reclaimScratch, ScratchDir } from "#worker/scratch.ts";
import { createWorker } from "#worker/create-worker.ts";
import type { Worker } from "#worker/worker.ts";
import { openProcesses, plainEnvironment } from "#app/compose/place.ts";
import { remoteAsk } from "./ask.ts";
import { remoteStreams } from "./remote-streams.ts";
import type { Metadata } from "#grpc/metadata.ts";
import { labelsRegistered, ownLabels } from "./labels.ts";
import type { Registered } from "./registered.ts";

export type ElsewhereOptions = {
  /** Of the node: host, port, and how to trust it. */
  readonly server: {
    /** The whole address. */
    readonly url: string;
    readonly host: string;
    readonly port: number;
    readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
    /** The file that `tls.ca` came from, for what runs here. */
    readonly caFile?: string | undefined;
  };
  /** What it calls with; the same value until that changes. */
  readonly metadata: () => Metadata;
  /** As the node knows it: the name of its principal, or one below it. */
  readonly name: string;
  readonly labels: readonly string[];
  /** What its registration lets it offer; left out: what it says, as far as its grant allows. */
  readonly registered?: Pick<Registered, "pools" | "labels"> | undefined;
  /** Called whenever an attempt has run. */
  readonly onRan?: (() => void) | undefined;
  readonly slots: number;
  readonly printedBytesMax: number;
  /** Where it keeps what runs. */
  readonly folder: string;
};

export type ElsewherePorts = {
  readonly clock: Clock;
  readonly doors: readonly Door[];
  readonly log: (line: string) => void;
};

export type RunningElsewhere = AsyncDisposable & {
  readonly worker: Worker;
  readonly labels: readonly string[];
  /** Resolves when it has left. */
  readonly ended: Promise<void>;
};

const pathsOf = (folder: string) => ({ scratch: join(folder, "scratch"), launcher: join(folder, "launcher") });

export async function startElsewhere(options: ElsewhereOptions, ports: ElsewherePorts): Promise<RunningElsewhere> {
  const { clock, log } = ports;
  await using undo = new AsyncDisposableStack();
  const random = new Random(randomUUID());
  const { host, port, tls } = options.server;
  const address: Address = `grpc:${host.includes(":") ? `[${host}]` : host}:${port}`;
  const { metadata } = options;
  const transport = createGrpcTransport({ clock, via: "router", metadata, ...(tls && { tls }) });
  undo.defer(() => transport.close());
  const shards = await shardsOf(transport, address, clock);
  const grpc = transport.client(address);
  const ask = remoteAsk(grpc, options.name);
  const streams = remoteStreams(grpc, options.name);
  const place = await openPlaceElsewhere(options, { ...ports, streams, ask }, undo);
  const opened = await Promise.all(ports.doors.map(async ({ elsewhere }) => await elsewhere?.(place)));
  const runners: Runners = Object.assign({}, ...opened.map((one) => one?.runners ?? {}));
  const labels = labelsOf(
    options,
    opened.flatMap((one) => one?.labels ?? []),
  );
  const worker = createWorker({
    client: executorOver(transport, address, shards, { clock, random }),
    blobs: reapiBlobs({ clock, random, client: grpc, instance: "" }),
    clock,
    random: random.fork("worker"),
    executor: options.name,
    offers: labels,
    shards,
    sources: () => new Map(),
    runners: counted(runners, options.onRan),
    planners: {},
    access: async (task) => ({
      server: options.server.url,
      ...Access.parse(await ask(task, "access")),
      ...caOf(options),
    }),
    // The call that names shards with work is for nodes, so a request is held at each shard.
    options: { slots: options.slots, heldShardsMax: shards },
    log,
  });
  const crash = new AbortController();
  undo.defer(() => crash.abort());
  const ended = worker.run(crash.signal);
  const owned = undo.move();
  return { worker, labels, ended, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const counted = (runners: Runners, onRan: (() => void) | undefined): Runners =>
  onRan === undefined
    ? runners
    : Object.fromEntries(
        Object.entries(runners).map(([kind, runner]) => [
          kind,
          Object.assign((context: RunContext) => runner(context).finally(onRan), {
            prepares: runner.prepares ?? false,
          }),
        ]),
      );

const Access = z.object({ token: z.string() });

const caOf = ({ server: { caFile } }: ElsewhereOptions) => (caFile === undefined ? {} : { ca: caFile });

type PlacePorts = ElsewherePorts & {
  readonly streams: ReturnType<typeof remoteStreams>;
  readonly ask: PlaceElsewhere["ask"];
};

async function openPlaceElsewhere(
  { folder, slots, printedBytesMax, name, server }: ElsewhereOptions,
  { clock, log, streams, ask }: PlacePorts,
  undo: AsyncDisposableStack,
): Promise<PlaceElsewhere> {
  const paths = pathsOf(folder);
  await mkdir(paths.scratch, { recursive: true, mode: 0o700 });
  const live = { streams, keeper: nothingKept, isAlways: true };
  const processes = await openProcesses({ home: paths.launcher, slots }, { clock, live, log }, undo);
  await reclaimScratch(paths.scratch);
  const scratch = (task: string) => ScratchDir.create(paths.scratch, task);
  const here = { slots, processes, env: plainEnvironment(process.env), live, printedBytesMax, scratch };
  return { ...here, name, server: server.url, dataFolder: folder, ask };
}

/** The node keeps the streams; it removes old ones by itself. */
const nothingKept: StreamKeeper = { keep: async () => {} };

/** The node passes each request on to the shard's owner. */
function executorOver(
  transport: GrpcTransport,
  address: Address,
  shards: number,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
) {
  const owners = Array.from({ length: shards }, (_, shard) => ({
    shard,
    epoch: 0,
    owner: address,
    address,
    remainingMs: 1,
  }));
  const router = createRouter({ ownerships: async () => owners, transport, clock, random });
  const { command, query } = askers(router);
  return executorClient(command, query, random);
}

/** Asks until the node answers: a worker may be started before its node. */
async function shardsOf(transport: GrpcTransport, address: Address, clock: Clock): Promise<number> {
  for (let tries = 0; ; tries += 1)
    try {
      return (await transport.map(address, new AbortController().signal)).cluster.shards;
    } catch (error) {
      if (tries >= startTries || !mayPass(error)) throw error;
      await clock.sleep(Math.min(5_000, 100 * 2 ** tries));
    }
}

const startTries = 10;
const mayPass = (error: unknown): boolean =>
  ["unavailable", "unknown-outcome"].includes((error as { code?: string }).code ?? "");

function labelsOf({ labels, registered }: ElsewhereOptions, ofDoors: readonly string[]): readonly string[] {
  if (registered) return labelsRegistered(registered, labels, ofDoors);
  const isPooled = labels.some((label) => label.startsWith("pool="));
  const own = [...ownLabels(), ...(isPooled ? [] : ["pool=default"])];
  return [...new Set([...own, ...ofDoors, ...labels])].map((label) => must(label, "a label"));
}
