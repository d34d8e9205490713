/** The tier that all nodes reach, behind this node's own store. */
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import { observed } from "#blobs/observed.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { breaker } from "#blobs/tiers/breaker.ts";
import { createHttpCaller } from "#blobs/tiers/s3/http-call.ts";
import { httpCache, type ReadOnly } from "#blobs/tiers/http.ts";
import { pinEither } from "#blobs/tiers/pin-either.ts";
import { peerCaches } from "#blobs/tiers/peer-caches.ts";
import { openPostgresIndex } from "#blobs/tiers/postgres/postgres-index.ts";
import { readThrough } from "#blobs/tiers/read-through.ts";
import { withParts, type RawPart } from "#blobs/tiers/ranges/part-reads.ts";
import { reapiBlobs } from "#blobs/tiers/reapi/reapi.ts";
import { createS3Client } from "#blobs/tiers/s3/s3-client.ts";
import { checkConditions, s3Index } from "#blobs/tiers/s3/s3-index.ts";
import { s3Blobs } from "#blobs/tiers/s3/s3.ts";
import { sealedInto } from "#blobs/output/sealed-into.ts";
import { openSharedDirectory } from "#blobs/tiers/shared-directory.ts";
import { directorySegments } from "#blobs/tiers/streams/directory-segments.ts";
import { reapiSegments, whyNoSegments } from "#blobs/tiers/streams/reapi-segments.ts";
import { s3Segments } from "#blobs/tiers/streams/s3-segments.ts";
import type { Streams } from "#blobs/streams.ts";
import { segmentStreams } from "#blobs/tiers/streams/segment-streams.ts";
import type { Segments } from "#blobs/tiers/streams/segments.ts";
import { withShortCuts, type ShortCutOptions } from "#blobs/tiers/short-cut.ts";
import type { S3Credentials } from "#blobs/tiers/s3/sigv4.ts";
import { tieredStore } from "#blobs/tiers/tiered-store.ts";
import { readSmallFile } from "#edge/tls/small-file.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import type { PinsOf } from "#shard/host/prepare.ts";
import type { ComposedStore } from "./store.ts";
import type { TierConfig } from "#app/config/tier-config.ts";
import { LateTierMetrics, tierMetrics } from "#app/record/tier-metrics.ts";

export type TierPorts = {
  readonly clock: Clock;
  readonly random: Random;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
  /** Base URLs of other nodes; empty if they are not known. */
  readonly peers?: () => readonly string[];
};

type ReapiConfig = Extract<TierConfig, { kind: "reapi" }>;

type TierBlobs = BlobStore & { readonly raw: RawPart };

type Tier = {
  /** A tenant's part of it. */
  readonly part: (tenant: string) => Promise<TierBlobs> | TierBlobs;
  readonly index?: ActionIndex;
  /** Where streams lie; left out where it cannot hold them. */
  readonly segments?: Segments | undefined;
  readonly close: () => Promise<void> | void;
};

/** The node's own blobs are in a part whose name no tenant can have. */
const ownPart = "_node";

export async function composeTiers(local: ComposedStore, config: TierConfig, ports: TierPorts): Promise<ComposedStore> {
  await using undo = new AsyncDisposableStack();
  undo.defer(() => local.close());
  const tier = await openTier(config, ports);
  undo.defer(async () => await tier.close());
  const metrics = new LateTierMetrics();
  const served = (from: "near" | "far" | "peer"): void => metrics.read(from);
  const shortCuts = await openShortCuts(config, ports, { undo, served: () => served("peer") });
  const named = await openNames(config, tier, local.index, undo);
  const { clock } = ports;
  const reached = (blobs: BlobStore, tenant: string): Far => {
    const far = breaker(observed(blobs, metrics.observer(clock, tenant)), { clock });
    return shortCuts ? withShortCuts({ clock, far, shortCuts }) : far;
  };
  const parts = new Map<string, Far>();
  const part = (tenant: string): Far => {
    const found = parts.get(tenant);
    if (found) return found;
    const opened = later(async () => {
      const { raw, ...far } = await tier.part(tenant);
      return tier.segments ? withParts(far, raw, tier.segments) : far;
    });
    const made = reached(opened, tenant);
    parts.set(tenant, made);
    return made;
  };
  await part(ownPart).missing([]); // so that a tier that cannot be opened is reported now
  const { whenDead } = config;
  const near: Store = { ...local.store, forTenant: (tenant) => local.store.forTenant(tenant), close: async () => {} };
  const blobs = readThrough({ near: local.blobs, far: part(ownPart), whenDead, served });
  const { streams } = local;
  const owned = undo.move();
  const store = tieredStore({ near, far: part, whenDead, served, close: () => owned.disposeAsync() });
  // Doors read what tasks printed from the node's own part, or from their tenant's: CI shows a tenant nothing else.
  const readable = (sealed: Streams): Streams => sealedInto(sealed, ({ tenant }) => store.forTenant(tenant).blobs);
  const shared = tier.segments && segmentStreams({ segments: tier.segments, clock, blobsOf: () => blobs });
  return {
    ...local,
    blobs,
    ...(shared
      ? { streams: readable(shared), areStreamsShared: true }
      : streams && { streams: readable(sealedInto(streams, () => blobs)) }),
    pins: pinsOf(part),
    store,
    index: named,
    observe: (registry) => metrics.bind(tierMetrics(registry, config.kind)),
    close: () => owned.disposeAsync(),
  };
}

type Far = BlobStore & { readonly isDead: boolean };

/** Outputs of actions belong to the tenant; outputs of other work belong to the node. */
function pinsOf(part: (tenant: string) => Far): PinsOf {
  const known = new Map<string, Pick<BlobStore, "pin">>();
  return (tenant, whose) => {
    if (whose === "tenant") return part(tenant);
    let pins = known.get(tenant);
    if (!pins) known.set(tenant, (pins = pinEither(part(tenant), part(ownPart))));
    return pins;
  };
}

type ShortCutParts = { readonly undo: AsyncDisposableStack; readonly served: () => void };

/** Undefined if there are none. Configured ones come before other nodes. */
async function openShortCuts(
  { shortCuts, peers }: TierConfig,
  { peers: urls }: TierPorts,
  { undo, served }: ShortCutParts,
): Promise<ShortCutOptions["shortCuts"] | undefined> {
  if (shortCuts.length === 0 && !(peers && urls)) return undefined;
  const caller = undo.use(createHttpCaller({ connectionsMax: 32, idleMs: 5_000 }));
  const tokenIn = async (file: string | undefined): Promise<{ readonly token?: string }> =>
    file === undefined ? {} : { token: (await readSmallFile(file, "open a short cut")).trim() };
  const named = await Promise.all(
    shortCuts.map(async ({ url, token }): Promise<ReadOnly> => httpCache({ caller, url, ...(await tokenIn(token)) })),
  );
  if (!peers || !urls) return () => named;
  const options = { caller, urls, sizeBytesMin: peers.largerThan, served, ...(await tokenIn(peers.token)) };
  const others = peerCaches(options);
  return (digest) => [...named, ...others(digest)];
}

/**
 * Opens the store at the first call, and again at the next call if that failed. It has no `prompt`: before the store
 * is open, nothing can be answered without waiting.
 */
export function later(open: () => Promise<BlobStore>): BlobStore {
  let opening: Promise<BlobStore> | undefined;
  const opened = (): Promise<BlobStore> =>
    (opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    }));
  return {
    missing: async (digests) => await (await opened()).missing(digests),
    write: async (digest, source, form) => await (await opened()).write(digest, source, form),
    pin: async (digests, forMs) => await (await opened()).pin(digests, forMs),
    file: async (digest) => await (await opened()).file?.(digest),
    adopt: async (digest, path) => (await (await opened()).adopt?.(digest, path)) ?? false,
    path: async (digest) => await (await opened()).path?.(digest),
    part: async (digest, range) => await (await opened()).part?.(digest, range),
    async *read(digest, range, form) {
      yield* (await opened()).read(digest, range, form);
    },
  };
}

async function openTier(config: TierConfig, ports: TierPorts): Promise<Tier> {
  switch (config.kind) {
    case "s3":
      return await openBucket(config, ports);
    case "reapi":
      return await openServer(config, ports);
    case "directory":
      return {
        part: (tenant) => openSharedDirectory(config.directory, ports.clock, `tenants/${tenant}`),
        segments: await directorySegments(config.directory),
        close: () => {},
      };
    default:
      return config satisfies never;
  }
}

async function openBucket(
  config: Extract<TierConfig, { kind: "s3" }>,
  { clock, random, env }: TierPorts,
): Promise<Tier> {
  const { endpoint, region, bucket, virtualHost, prefix } = config;
  const credentials = await s3Credentials(config.credentials, env);
  const client = createS3Client({ clock, random, endpoint, region, bucket, virtualHost, credentials });
  await client.list(prefix, undefined, 1); // so that a missing or foreign bucket is reported now
  if (config.names.kind === "tier") await checkConditions(client, prefix);
  return {
    part: (tenant) =>
      s3Blobs({
        clock,
        client,
        prefix: `${prefix}tenants/${tenant}/`,
        ...(config.lifetime !== undefined && { lifetimeMs: config.lifetime }),
        knownForMs: config.knownFor,
        partBytes: config.partSize,
      }),
    index: s3Index({ client, prefix }),
    segments: s3Segments({ client, prefix }),
    close: () => client[Symbol.dispose](),
  };
}

async function s3Credentials(file: string | undefined, env: NodeJS.ProcessEnv): Promise<S3Credentials> {
  const [accessKeyId, secretAccessKey, sessionToken] =
    file === undefined
      ? [env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"]]
      : (await readSmallFile(file, "read credentials of the bucket")).split(/\r?\n/).map((line) => line.trim());
  if (accessKeyId === undefined || !secretAccessKey)
    throw new Fault("invalid", "read credentials of the bucket", {
      file,
      why: file === undefined ? "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" : "it must have two lines",
    });
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

/**
 * A server shows each caller its own blobs, whatever the instance. So tenants are separated by their tokens, or there
 * is one tenant alone (B5).
 */
async function openServer(config: ReapiConfig, { clock, random, log }: TierPorts): Promise<Tier> {
  const lifetime = config.lifetime === undefined ? {} : { lifetimeMs: config.lifetime };
  const callMs = config.answerWithin;
  const clients = new Map<string, GrpcClient>();
  const clientFor = async (tokenFile: string | undefined): Promise<GrpcClient> => {
    const found = clients.get(tokenFile ?? "");
    if (found) return found;
    const made = await reapiClient(config, tokenFile, clock);
    clients.set(tokenFile ?? "", made);
    return made;
  };
  const own = await clientFor(config.token);
  const common = { clock, random, client: own, instance: config.instance, callMs };
  const segments = reapiSegments({ ...common, blobs: reapiBlobs({ ...common, ...lifetime }) });
  const why = await whyNoSegments(segments);
  if (why !== undefined) log(`output of tasks stays on this node: the tier does not keep streams (${why})`);
  return {
    ...(why === undefined && { segments }),
    async part(tenant) {
      if (config.tokens === undefined && tenant !== config.tenant && tenant !== ownPart)
        throw new Fault("invalid", "reach the tier", {
          tenant,
          why: `it is for the tenant ${config.tenant} alone; give each its token with blobs.authoritative.tokens`,
        });
      const isOwn = tenant === ownPart || config.tokens === undefined;
      const client = await clientFor(isOwn ? config.token : join(config.tokens ?? "", tenant));
      return reapiBlobs({ clock, random, client, instance: config.instance, callMs, ...lifetime });
    },
    close() {
      for (const client of clients.values()) client.close();
    },
  };
}

async function reapiClient(config: ReapiConfig, tokenFile: string | undefined, clock: Clock): Promise<GrpcClient> {
  const doing = "reach the tier";
  const { protocol, hostname, port } = new URL(config.address.replace(/^grpc/, "http"));
  const isTls = protocol === "https:";
  const ca = config.authority === undefined ? undefined : await readSmallFile(config.authority, doing);
  const token = tokenFile === undefined ? undefined : (await readSmallFile(tokenFile, doing)).trim();
  const [host, number] = [hostname.replace(/^\[|\]$/g, ""), Number(port || (isTls ? 443 : 80))];
  const tls = isTls ? { tls: { servername: host, ...(ca !== undefined && { ca }) } } : {};
  return new GrpcClient({
    clock,
    authority: `${hostname}:${number}`,
    scheme: isTls ? "https" : "http",
    connect: () => connectH2({ host, port: number, clock, ...tls }),
    ...(token !== undefined && { metadata: [["authorization", `Bearer ${token}`]] as const }),
  });
}

async function openNames(
  { kind, names }: TierConfig,
  tier: Tier,
  here: ActionIndex,
  undo: AsyncDisposableStack,
): Promise<ActionIndex> {
  switch (names.kind) {
    case "here":
      return here;
    case "tier":
      if (tier.index) return tier.index;
      throw new Fault("invalid", "open names", { tier: kind, why: "it cannot keep names: choose postgres or here" });
    case "postgres": {
      const index = await openPostgresIndex({ url: names.url, schema: names.schema });
      undo.defer(() => index[Symbol.asyncDispose]());
      return index;
    }
    default:
      return names satisfies never;
  }
}
