/** The door behind a real port, for its tests: callers by name, a store in memory whose blobs can be lost. */
import { tmpdir } from "node:os";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { GrpcClient } from "#grpc/client.ts";
import { GrpcServer } from "#grpc/server.ts";
import { connectH2 } from "#h2/client.ts";
import { listenH2 } from "#h2/server.ts";
import type { ActionResult, Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { assetSettingsDefault, type AssetSettings } from "#doors/build/assets/asset-download.ts";
import type { BuildAction, BuildCaller } from "#doors/build/caller.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { Spool } from "#blobs/spool.ts";
import { actionKind } from "#doors/build/plan.ts";
import { serveBuild } from "#doors/build/serve.ts";
import { buildSettingsDefault, type BuildSettings } from "#doors/build/settings.ts";
import { Seen } from "#doors/build/why/seen.ts";

/** Overridden where it matters. */
/** The result of an action that succeeded, made nothing and printed this. */
export const resultPrinting = (text: string): ActionResult => ({
  outputFiles: [],
  outputFileSymlinks: [],
  outputSymlinks: [],
  outputDirectories: [],
  outputDirectorySymlinks: [],
  exitCode: 0,
  stdoutRaw: Buffer.from(text),
  stderrRaw: Buffer.alloc(0),
});

export const noCommand: Command = {
  arguments: [],
  environmentVariables: [],
  outputFiles: [],
  outputDirectories: [],
  workingDirectory: "",
  outputPaths: [],
  outputNodeProperties: [],
  outputDirectoryFormat: 0,
};

/** A claim on an action's task, by any executor. */
export const actionClaim = {
  task: 1,
  taskId: "t0-1",
  job: 1,
  jobId: "j0-1",
  shard: 0,
  token: 1,
  stage: 0,
  stageName: "action",
  door: "build",
  key: "action",
  kind: actionKind,
  planning: false,
  generation: 1,
  leaseMs: 10_000,
  graceMs: 0,
  attemptMs: 60_000,
  effects: "pure",
} as const;

export type DoorOptions = {
  readonly settings?: Partial<BuildSettings>;
  readonly assets?: Partial<AssetSettings>;
  /** Without it, every call is asynchronous. */
  readonly isPrompt?: boolean;
  /** Left out: one in memory. */
  readonly store?: Store;
};

const roles: Readonly<Record<string, readonly BuildAction[]>> = {
  writer: ["cache.read", "cache.write", "action-cache.read", "action-cache.write"],
  uploader: ["cache.read", "cache.write", "action-cache.read"],
  reader: ["cache.read", "action-cache.read"],
  nobody: [],
};

/** `<name>@<tenant>`, where the name begins with a role: `writer-2@mill`. */
function callerOf(text: string): BuildCaller {
  const [principal = "", tenant = ""] = text.split("@");
  const may = roles[principal.split("-")[0] ?? ""] ?? [];
  return { tenant, principal, may: (action) => may.includes(action), refusal: () => undefined };
}

export type Door = Awaited<ReturnType<typeof openDoor>>;

export async function openDoor(realClock: Clock, { settings, assets, isPrompt = true, ...given }: DoorOptions = {}) {
  // Advances with every reading, so that later writes have a later time.
  let wallMs = 1_700_000_000_000;
  const clock: Clock = { ...realClock, wallMs: () => (wallMs += 1) };
  const inner = given.store ?? createMemoryStore({ clock, sizeBytesMax: 64 * 1024 * 1024 });
  const index = createMemoryIndex();
  const lost = new Set<Digest>();
  let isDown = false;
  const store = losing(inner, isPrompt, (digest) => {
    if (isDown) throw new Fault("unavailable", "ask the store", { why: "it is down" });
    return lost.has(digest);
  });
  const reported: string[] = [];
  const seen = new Seen({ index, wallMs: () => clock.wallMs() });
  const grpc = new GrpcServer<string>({ clock, admit: (_, headers) => headers.get("x-caller") ?? "writer@mill" });
  const { prompt: _, ...patient } = index;
  const paths = serveBuild(
    grpc,
    {
      clock,
      store,
      index: isPrompt ? index : patient,
      settings: { ...buildSettingsDefault, ...settings },
      assets: { ...assetSettingsDefault, ...assets },
      spool: new Spool({ folder: tmpdir(), memoryBytesEach: 1e6, memoryBytesMax: 1e7, bytesMax: 1e8 }),
      trust: new TrustRules(isPrompt ? index : patient),
      seen,
      report: (doing) => reported.push(doing),
    },
    callerOf,
  );
  const onRequest = grpc.open.bind(grpc);
  const server = await listenH2({
    host: "127.0.0.1",
    port: 0,
    clock,
    onRequest: (s, h, ended) => onRequest(s, h, ended),
  });
  const clients: GrpcClient[] = [];
  return {
    index,
    clock,
    seen,
    reported,
    paths,
    /** Removes blobs, as a janitor would. */
    lose: (...digests: readonly Digest[]) => digests.forEach((digest) => lost.add(digest)),
    find: () => lost.clear(),
    breakDown: (down: boolean) => void (isDown = down),
    as: (caller: string): GrpcClient => {
      const connect = () => connectH2({ host: "127.0.0.1", port: server.port, clock });
      const client = new GrpcClient({ clock, connect, authority: "door", metadata: [["x-caller", caller]] });
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      await server.close();
    },
  };
}

/** A store some of whose blobs are gone. */
function losing(inner: Store, isPrompt: boolean, isLost: (digest: Digest) => boolean): Store {
  const blobsOf = (blobs: BlobStore): BlobStore =>
    extend(blobs, {
      async missing(digests) {
        const gone = new Set(await blobs.missing(digests));
        return digests.filter((digest) => isLost(digest) || gone.has(digest));
      },
      async *read(digest, range, form) {
        if (isLost(digest)) throw new Fault("not-found", "read blob", { digest });
        yield* blobs.read(digest, range, form);
      },
      prompt: isPrompt
        ? {
            has: (fn, hash, at, sizeBytes) => {
              const hex = Buffer.from(hash.buffer, hash.byteOffset + at, 32).toString("hex");
              return !isLost(`${hex}/${sizeBytes}`) && (blobs.prompt?.has(fn, hash, at, sizeBytes) ?? false);
            },
            bytes: (digest) => (isLost(digest) ? undefined : blobs.prompt?.bytes(digest)),
          }
        : undefined,
    });
  return {
    forTenant(tenant) {
      const { blobs, uploads } = inner.forTenant(tenant);
      return { blobs: blobsOf(blobs), uploads };
    },
    close: () => inner.close(),
  };
}
