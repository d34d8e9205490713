/**
 * The configuration: one strict schema for everything. `cluster` must be the same on all nodes; all else may differ
 * between nodes. Without any configuration a node is complete by itself: SQLite and files below one folder, reachable
 * from this machine only.
 */
import { availableParallelism } from "node:os";
import { z } from "zod";
import type { Door } from "#door/door.ts";
import { Duration, File, Size } from "#base/config-words.ts";
import { Fault, isFault } from "#base/fault.ts";
import { featuresHere } from "#shard/features.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import { isLoopback, parseAddress } from "#shard/transport/tcp-address.ts";
import { doors } from "#app/doors.ts";
import { namePattern } from "#app/node/data-folder.ts";
import { EdgeConfig } from "./edge-config.ts";
import { MeshConfig } from "./mesh-config.ts";
import { BlobsConfig } from "./store-config.ts";
import type { TierConfig } from "./tier-config.ts";
import { WebhooksConfig } from "./webhooks-config.ts";
import { SourcesConfig } from "./sources-config.ts";
import { PoolsConfig } from "#pools/pool-config.ts";
import { TracesConfig } from "./traces-config.ts";
import { VaultConfig } from "./vault-config.ts";
import { WorkConfig } from "./work-config.ts";
import { PostgresSchema, PostgresUrl } from "#app/postgres-words.ts";

const Name = z.string().regex(namePattern, "write letters, digits, dots and dashes only");
const Label = z.string().regex(/^[^=\s]{1,100}=[^\s]{0,100}$/, 'write a label as name=value, such as "gpu=yes"');

const Address = z.string().superRefine((text, context) => {
  if (text === "unix") return;
  try {
    parseAddress(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: isFault(error) ? String(error.facts["why"]) : String(error) });
  }
});

/** A worker polls each of so few shards. */
const shardsAlone = 8;
/**
 * More than a worker polls, so that the least loaded worker hears first (ADR 0022), and enough to spread over many
 * nodes.
 */
const shardsShared = 64;

const Cluster = z.strictObject({
  name: Name.default("millrace").describe("Names the cluster; nodes of another cluster cannot join its journal."),
  shards: z
    .int()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      `The number of virtual shards. Fixed when the journal is created. Left out: ${shardsAlone}, and ${shardsShared} in ` +
        "PostgreSQL.",
    ),
  secretFile: File.optional().describe(
    "A file with a secret of at least 16 characters on its only line, the same on all nodes: nodes of other machines " +
      "speak TLS with it. Left out: nodes are on this machine only.",
  ),
  issuer: z
    .url({ protocol: /^https?$/ })
    .max(500)
    .optional()
    .describe(
      "The address at which others reach this cluster, such as https://millrace.example.com: tokens that it issues " +
        "name it, and others verify them by /.well-known/openid-configuration there. The same on all nodes.",
    ),
  workerVersionMin: z
    .string()
    .regex(/^\d+\.\d+\.\d+$/, "write a version such as 0.2.0")
    .optional()
    .describe("Workers elsewhere that registered and are older are told to update: they finish what runs, and leave."),
  ownerLease: Duration().prefault("6s").describe("How long a shard keeps its owner without a renewal."),
  isolateAt: z
    .number()
    .min(0.1)
    .max(1)
    .optional()
    .describe(
      "The part of a node's time, such as 0.5, that a shard must take for half a minute for the node to hand its " +
        "other shards to others. Left out: only `millrace shards isolate` does that.",
    ),
  isolateTenantAt: z
    .number()
    .min(0.1)
    .max(1)
    .optional()
    .describe(
      "The part of a node's time, such as 0.5, that one tenant's work must take for half a minute for the node to be " +
        "kept for that tenant. Left out: only `millrace shards isolate --tenant` does that.",
    ),
  tasksMax: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .optional()
    .describe(
      "Tasks that wait or run in the whole cluster, divided equally among its shards: beyond this, new work is " +
        "refused with a time to retry. Left out: 2,000,000 in each shard.",
    ),
  queuedMax: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(defaultLimits.queuedMax)
    .describe(
      "Tasks of one tenant that may wait in one shard, unless `millrace tenant set --queued` says otherwise: beyond " +
        "this, its new work is refused with a time to retry. 0: no limit.",
    ),
  tenantMemoryMax: Size({ min: "1MiB" })
    .optional()
    .describe(
      "Memory that the jobs of one tenant may take on one node. Left out: as much as is left for all other tenants, " +
        "which is half of it for one tenant alone, and a third for each of two.",
    ),
  tenantOutputMax: Size({ min: "1MiB" })
    .prefault("8GiB")
    .describe(
      "What the running tasks of one tenant may have printed, on all nodes together: a log that grows beyond it ends " +
        "with a line that says so, and the task goes on.",
    ),
});

const Node = z.strictObject({
  name: Name.optional().describe(
    "Names the node, as owner of shards and as worker. Left out, a name is generated once and kept in the data folder.",
  ),
  features: z
    .int()
    .min(1)
    .max(featuresHere)
    .optional()
    .describe(
      `The newest feature level that the node announces; left out: ${featuresHere}, all that it has. The cluster writes ` +
        "nothing newer than the lowest level of its nodes: a lower one keeps the way back to the version before open.",
    ),
  data: z
    .string()
    .min(1)
    .optional()
    .describe("The folder for all of the node's data. The command line and $MILLRACE_DATA take precedence."),
  listen: z
    .array(Address)
    .min(1)
    .default(process.platform === "win32" ? ["tcp:127.0.0.1:7433"] : ["unix"])
    .describe(
      'Where to listen: "unix" (a socket in the data folder), "unix:/path" or "tcp:127.0.0.1:7433". ' +
        "Other nodes use the first.",
    ),
  advertise: Address.optional().describe(
    'The address for other nodes instead of the first of `listen`, such as "tcp:10.0.0.7:7433": needed if that is ' +
      "all addresses of the machine.",
  ),
  region: Name.optional().describe(
    "Where the node is, such as eu-west: shown to others, a label of its worker (`region=eu-west`), and nodes of the " +
      "same region are asked first for bytes and for work.",
  ),
  rack: Name.optional().describe("Where in its region: shown to others, and a label of its worker (`rack=r12`)."),
  diskFreeMin: Size()
    .prefault("64MiB")
    .describe("With less free disk space, /readyz and gRPC health report that the node is not ready."),
  workMemoryMax: Size({ min: "8MiB" })
    .optional()
    .describe(
      "Memory that jobs may use in all shards of this node together; beyond it new work is refused. Left out: two " +
        "fifths of the heap that the process may have (--max-old-space-size, or what its container has), less 64MiB.",
    ),
  stopWithin: Duration()
    .prefault("20s")
    .describe(
      "How long running work may continue when the node is asked to stop; then it is released for other nodes.",
    ),
});

/** A node has a handful of connections to each. */
const serversMax = 64;

const Journal = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("sqlite").describe("Files on this machine's disk."),
    directory: z.string().min(1).optional().describe("Left out: `journal` in the data folder."),
  }),
  z
    .strictObject({
      kind: z.literal("postgres").describe("One PostgreSQL server or several, for many nodes."),
      url: PostgresUrl.optional(),
      schema: PostgresSchema.describe("The schema that holds the tables of `url`."),
      servers: z
        .array(
          z.strictObject({ url: PostgresUrl, schema: PostgresSchema.describe("The schema that holds the tables.") }),
        )
        .min(2, "for one server, write url")
        .max(serversMax)
        .optional()
        .describe(
          "Instead of `url`: databases that share the shards, the same list in the same order on all nodes. Fixed " +
            "when the journal is created (docs/how-to/several-databases.md).",
        ),
    })
    .superRefine(({ url, servers }, context) => {
      if ((url === undefined) !== (servers === undefined)) return;
      context.addIssue({ code: "custom", message: "write url for one server, or servers for several" });
    }),
  z.strictObject({ kind: z.literal("memory").describe("Nothing is kept: for trying things out.") }),
]);

const keepMsMin = 60_000;

const History = z.strictObject({
  keep: Duration()
    .refine((ms) => ms >= keepMsMin, "keep at least one minute: 1m")
    .optional()
    .describe("How long ended jobs can be looked up, such as 90d. Left out: forever."),
  results: Duration()
    .default(7 * 24 * 3_600_000)
    .describe(
      "How long the logs and other results of ended jobs stay in the store, for doors whose results are no cache.",
    ),
});

const Worker = z.strictObject({
  enabled: z.boolean().default(true).describe("Whether this node runs work itself."),
  slots: z
    .int()
    .min(1)
    .max(10_000)
    .default(Math.max(4, availableParallelism()))
    .describe("How many tasks run at once."),
  planners: z
    .int()
    .min(0)
    .max(1_000)
    .default(8)
    .describe("How many stages are planned at once, beside the tasks. 0: planning takes the place of tasks."),
  labels: z
    .array(Label)
    .max(50)
    .default([])
    .describe("Labels that this machine offers besides its system, processor and doors."),
  sandbox: z
    .enum(["auto", "bubblewrap", "plain"])
    .default("auto")
    .describe("The sandbox of build actions. auto: the best that works here; the log says which."),
  actionsIn: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The folder that build actions run in; if they run as other users, those must be able to traverse it. " +
        "Left out: in the data folder, or in /var/tmp if the data folder is closed to them.",
    ),
  inputsMax: Size({ min: "64MiB" })
    .prefault("10GiB")
    .describe("How many bytes of actions' inputs are kept as files, to be hard-linked instead of copied."),
  printedMax: Size({ min: "64KiB" })
    .prefault("256MiB")
    .describe(
      "Limit for each stream that a task prints to, such as the two of an action; " +
        "the middle of longer output is left out.",
    ),
  memoryMax: Size({ min: "64MiB" })
    .optional()
    .describe(
      "Memory limit for all actions together, if control groups are available. Left out: nine tenths of the machine's.",
    ),
  diskFreeMin: Size().prefault("512MiB").describe("With less free disk space, the action that wrote most is ended."),
  processesMax: z.int().min(1).max(1_000_000).default(4_096).describe("Processes and threads of one action at once."),
  toolsMax: z
    .int()
    .min(0)
    .max(1_000)
    .default(4)
    .describe(
      "Tools that stay for more than one action of the same tenant (Bazel's persistent workers), busy and idle ones " +
        "together, each with its memory. 0: no tool stays.",
    ),
  toolIdle: Duration({ min: "1s", max: "1d" }).prefault("5m").describe("How long an unused tool stays."),
});

/** Before the sections of doors, and behind them. */
const sections = {
  cluster: Cluster.prefault({}).describe("The same on all nodes."),
  node: Node.prefault({}).describe("This node."),
  edge: EdgeConfig.prefault({}).describe("The port for callers: other tools, workers in any language, other nodes."),
  mesh: MeshConfig.optional().describe(
    "Membership: nodes find each other, and stock serf agents can be members. Left out: no mesh.",
  ),
  journal: Journal.prefault({ kind: "sqlite" }).describe("Where work is recorded."),
  blobs: BlobsConfig.prefault({ kind: "disk" }).describe("Where bytes are stored."),
  webhooks: WebhooksConfig.prefault({}).describe("Events of the feed, sent to addresses that tenants choose."),
  sources: SourcesConfig.prefault({}).describe("Repositories, for all doors."),
};

const sectionsBehind = {
  vault: VaultConfig.prefault({}).describe(
    "What encrypts secrets, the same on all nodes (docs/how-to/secrets.md). Left out: a key in the data folder, made " +
      "at first use; nodes that share PostgreSQL have to name one.",
  ),
  history: History.prefault({}).describe(
    "How long ended jobs are kept. The owner of a shard applies its own setting: use the same on all nodes.",
  ),
  work: WorkConfig.prefault({}).describe(
    "What callers other than operators may ask for, in jobs of their own kinds " +
      "(docs/how-to/workers-in-any-language.md).",
  ),
  worker: Worker.prefault({}).describe("What this node runs."),
  pools: PoolsConfig.describe(
    "Machines that are made while work waits, and removed after (docs/how-to/pools.md). The same on all nodes.",
  ),
  traces: TracesConfig.optional().describe(
    "Traces of actions through edge, shard, worker and store, for OpenTelemetry. Left out: none.",
  ),
};

/** A section for each door that has one, under its name. What it becomes, only the door knows: see `sectionOf`. */
const doorSections = (of: readonly Door[]): object =>
  Object.fromEntries(
    of.flatMap(({ name, section }) => (section ? [[name, section.schema.prefault({}).describe(section.about)]] : [])),
  );

/** The configuration of a program with these doors. */
export const configOf = (of: readonly Door[]) =>
  z
    .strictObject({ ...sections, ...(doorSections(of) as Record<never, never>), ...sectionsBehind })
    .superRefine(({ cluster, node }, context) => {
      if (cluster.secretFile !== undefined) return;
      for (const [i, address] of node.listen.entries())
        if (address !== "unix" && !isLoopback(parseAddress(address)))
          context.addIssue({
            code: "custom",
            path: ["node", "listen", i],
            message:
              "without authentication only this machine may call: use 127.0.0.1, ::1 or a Unix socket, " +
              "or set cluster.secretFile",
          });
    });

export const Config = configOf(doors);

export type Config = z.output<typeof Config>;

/** What the door's own section says; undefined for a door without one. */
export const sectionOf = (config: Config, { name }: Pick<Door, "name">): unknown =>
  (config as Readonly<Record<string, unknown>>)[name];

/** How many shards a new journal gets. */
export const shardsOf = ({ cluster, journal }: Config): number =>
  cluster.shards ?? (journal.kind === "postgres" ? shardsShared : shardsAlone);

/** The configuration without secrets, for people and logs. */
export function withoutSecrets(config: Config): Config {
  const { journal, mesh, blobs } = config;
  const tier = blobs.kind === "disk" ? blobs.authoritative : undefined;
  return {
    ...config,
    ...(journal.kind === "postgres" && { journal: withoutPasswords(journal) }),
    ...(mesh && { mesh: { ...mesh, keys: mesh.keys.map(() => "***") } }),
    ...(tier && { blobs: { ...blobs, authoritative: withoutTierSecrets(tier) } as Config["blobs"] }),
  };
}

type PostgresConfig = Extract<Config["journal"], { kind: "postgres" }>;

/** The databases of the journal: one, or several that share the shards. */
export const serversOf = ({ url, schema, servers }: PostgresConfig) => servers ?? [{ url: url ?? "", schema }];

const withoutPasswords = ({ url, servers, ...journal }: PostgresConfig): PostgresConfig => ({
  ...journal,
  ...(url !== undefined && { url: hidePassword(url) }),
  ...(servers && { servers: servers.map((server) => ({ ...server, url: hidePassword(server.url) })) }),
});

function withoutTierSecrets(tier: TierConfig): TierConfig {
  const { names } = tier;
  return names.kind === "postgres" ? { ...tier, names: { ...names, url: hidePassword(names.url) } } : tier;
}

export function hidePassword(url: string): string {
  try {
    const parsed = new URL(url);
    if (parsed.password !== "") parsed.password = "***";
    for (const name of parsed.searchParams.keys())
      if (/pass|secret|key/i.test(name)) parsed.searchParams.set(name, "***");
    return parsed.href;
  } catch {
    return "postgres://***";
  }
}

/** The sources of settings: flags take precedence over the environment, and that over the file. */
export type ConfigSources = {
  readonly file?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Each `path=value`. */
  readonly set?: readonly string[] | undefined;
  /** Left out: of this program's doors. */
  readonly schema?: typeof Config;
};

/** Reads and checks a configuration; a Fault "invalid" names each wrong setting with its line, variable or flag. */
export async function readConfig({ file, env = {}, set = [], schema = Config }: ConfigSources = {}): Promise<Config> {
  const doing = "read configuration";
  const isGiven = set.length > 0 || Object.keys(env).some((name) => name.startsWith("MILLRACE_"));
  if (file === undefined && !isGiven) return schema.parse({});
  const [{ readChecked, checkText }, { settingsOf }, { givenByEnvironment, givenByFlags, whereGiven, withGiven }] =
    await Promise.all([import("#door/yaml-file.ts"), import("./config-settings.ts"), import("./config-given.ts")]);
  const settings = settingsOf(schema);
  const given = [...givenByEnvironment(env, settings), ...givenByFlags(set, settings)];
  const overlay = {
    put: (value: unknown) => (given.length === 0 ? value : withGiven(value, given, settings)),
    where: (path: readonly PropertyKey[]) => whereGiven(path, given),
  };
  const config =
    file === undefined ? checkText("", schema, { doing, overlay }) : await readChecked(file, schema, doing, overlay);
  if (config.journal.kind === "postgres" && config.blobs.kind === "memory")
    throw new Fault("invalid", doing, { file, why: "a journal that survives the node needs blobs that do, too" });
  return config;
}
