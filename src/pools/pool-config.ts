/** Settings of pools: machines that are made while work waits for them, and removed after. The same on all nodes. */
import { z } from "zod";
import { Duration, File, Size } from "#base/config-words.ts";

/** Part of names of pods, so letters of host names only. */
const Name = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?$/, "write small letters, digits and dashes");
const RunsOn = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)
  .transform((label) => label.toLowerCase());
const Label = z.string().regex(/^[^=\s*]{1,100}=[^\s*]{0,100}$/, 'write a label as name=value, such as "gpu=yes"');
/** As Kubernetes writes labels; keys may have a prefix. */
const KubeKey = z.string().regex(/^[A-Za-z0-9._/-]{1,250}$/);
const KubeValue = z.string().regex(/^[A-Za-z0-9._-]{0,63}$/);

const template = {
  name: Name.default("default").describe("Names it in lists and metrics."),
  runsOn: z
    .array(RunsOn)
    .min(1)
    .max(20)
    .describe("What jobs may ask for with runs-on to get one of these, besides self-hosted."),
  labels: z.array(Label).max(20).default([]).describe("Labels that its machines offer besides, such as group=gpu."),
  warm: z.int().min(0).max(1_000).default(0).describe("So many idle machines are kept ready."),
};

const PodTemplate = z.strictObject({
  ...template,
  image: z.string().min(1).max(500).describe("Has millrace in it, and what jobs need: best with tools built in."),
  pullSecret: Name.optional().describe("The Secret with which the image is pulled."),
  arch: z.enum(["x64", "arm64"]).default("x64").describe("Of the machines that it runs on."),
  cpu: z
    .string()
    .regex(/^\d+(?:\.\d{1,3}|m)?$/, 'write "2" or "500m"')
    .default("1")
    .describe("Processors that a pod gets at least."),
  memory: Size({ min: "128MiB" }).prefault("2GiB").describe("Memory that a pod gets; a job that takes more is ended."),
  disk: Size({ min: "64MiB" }).prefault("10GiB").describe("Disk for the job's folder."),
  nodeSelector: z.record(KubeKey, KubeValue).default({}).describe("Labels that the machines below must have."),
  tolerations: z
    .array(
      z.strictObject({
        key: KubeKey,
        value: KubeValue.optional(),
        effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).optional(),
      }),
    )
    .max(20)
    .default([])
    .describe("Taints that its pods do not mind, such as those of spot machines."),
  egress: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?$/)
    .default("nodes")
    .describe(
      "Where its pods may connect to: the label millrace/egress of the pod, which a NetworkPolicy selects. The " +
        "example in deploy/kubernetes/runners has nodes (only to Millrace and for names) and internet.",
    ),
  serviceAccount: Name.optional().describe("Left out: the namespace's default one, whose token no pod is given."),
  cacheClaim: Name.optional().describe(
    "A volume claim for layers of container images, mounted at /var/lib/containers.",
  ),
});

const common = {
  name: Name,
  tenant: z.string().min(1).max(200).optional().describe("Whose jobs it runs; left out: every tenant's."),
  server: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("How its machines reach a node, such as https://millrace:8980; left out: cluster.issuer."),
  max: z.int().min(1).max(5_000).describe("Machines at once."),
  idle: Duration({ min: "0s", max: "1d" }).prefault("1m").describe("A machine that no work waits for goes after this."),
  startWithin: Duration({ min: "5s", max: "1d" })
    .prefault("10m")
    .describe("A machine that has not registered after this is removed, and another is made."),
  life: Duration({ min: "1m", max: "30d" }).prefault("1d").describe("No machine gets older than this."),
  stopWithin: Duration({ min: "0s", max: "1h" })
    .prefault("20s")
    .describe(
      "A machine that is to go, preempted ones included, lets its job run on for so long; then the job is given back " +
        "and goes on elsewhere after its last finished step.",
    ),
  onRunnerLoss: z
    .enum(["resume", "restart", "fail"])
    .optional()
    .describe(
      "What becomes of a job whose machine of this pool is lost, if the job does not say it; left out: as ci says. " +
        "Jobs whose labels fit several pools go by the first.",
    ),
  price: z.number().min(0).max(1_000_000).default(0).describe("Of one machine for an hour, for `millrace usage`."),
};

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

const KubernetesPool = z.strictObject({
  kind: z.literal("kubernetes").describe("Each job in a pod of its own."),
  ...common,
  api: z
    .url({ protocol: /^https?$/ })
    .default("https://kubernetes.default.svc")
    .describe("The API server."),
  tokenFile: File.default(`${serviceAccount}/token`).describe("Read again every minute: tokens are renewed."),
  caFile: File.default(`${serviceAccount}/ca.crt`).describe("Who signs the API server's certificate, as PEM."),
  namespace: Name.default("millrace-runners").describe("Where its pods are: best one for nothing else."),
  spot: z.boolean().default(false).describe("Its machines may go at any time: shown as such, nothing else."),
  templates: z.array(PodTemplate).min(1).max(20),
});

const Argv = z.array(z.string().min(1).max(4_000)).min(1).max(50);

const CommandsPool = z.strictObject({
  kind: z.literal("commands").describe("Machines that one command creates and another destroys."),
  ...common,
  create: Argv.describe(
    "Makes a machine that runs `millrace runner`, or nothing. Its environment says which: MILLRACE_MACHINE, " +
      "MILLRACE_SERVER, MILLRACE_TEMPLATE, MILLRACE_RUNNER_LABELS, and MILLRACE_WORKER_TOKEN, a secret.",
  ),
  destroy: Argv.describe("Destroys the machine of this name; succeeds where there is none."),
  timeout: Duration({ min: "1s", max: "1h" }).prefault("5m").describe("How long each may take."),
  templates: z.array(z.strictObject(template)).min(1).max(20),
});

const ExternalPool = z.strictObject({
  kind: z.literal("external").describe("Others make the machines, by /v1/pools/{name}/desired or the metrics."),
  ...common,
  templates: z.array(z.strictObject(template)).min(1).max(20),
});

const Pool = z
  .discriminatedUnion("kind", [KubernetesPool, CommandsPool, ExternalPool])
  .superRefine(({ templates }, context) => {
    const names = templates.map(({ name }) => name);
    if (new Set(names).size < names.length)
      context.addIssue({ code: "custom", path: ["templates"], message: "templates of a pool have different names" });
  });

export const PoolsConfig = z
  .array(Pool)
  .max(100)
  .default([])
  .superRefine((pools, context) => {
    if (new Set(pools.map(({ name }) => name)).size < pools.length)
      context.addIssue({ code: "custom", message: "pools have different names" });
  });

export type PoolSettings = z.output<typeof Pool>;
export type KubernetesSettings = Extract<PoolSettings, { kind: "kubernetes" }>;
export type CommandsSettings = Extract<PoolSettings, { kind: "commands" }>;
export type TemplateSettings = PoolSettings["templates"][number];
export type PodTemplateSettings = z.output<typeof PodTemplate>;
