/** The service file: what a team writes about one service, checked strictly. A typo is an error, never ignored. */
import { z } from "zod";
import { Duration, Size } from "#base/config-words.ts";
import { parseFreeze } from "./freeze.ts";
import { wrongWaves } from "./wave-regions.ts";

/** Parts of a million, so that shares compare exactly: "0.1%" is 1,000. */
export const wholePpm = 1_000_000;

const Share = z.string().transform((text, context) => {
  const match = /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(text);
  const ppm = match ? Math.round(Number(match[1]) * 10_000) : Number.NaN;
  if (!(ppm >= 0 && ppm <= wholePpm))
    context.addIssue({ code: "custom", message: 'write a share as a percentage, such as "0.1%" or "25%"' });
  return ppm;
});

export const ServiceName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "use lower-case letters, digits and hyphens, at most 63");
export const Region = ServiceName;
const Label = z.string().regex(/^[^=\s]{1,100}=[^\s]{0,100}$/, 'write a label as name=value, such as "role=web"');
const Command = z.union([z.string().min(1).max(10_000), z.array(z.string().max(10_000)).min(1).max(1_000)]);

const Probe = z
  .strictObject({
    /** A port and a path, such as ":8080/up". */
    http: z
      .string()
      .regex(/^:\d{1,5}\/\S{0,1000}$/, 'write a port and a path, such as ":8080/up"')
      .optional(),
    /** A port, such as ":8080". */
    tcp: z
      .string()
      .regex(/^:\d{1,5}$/, 'write a port, such as ":8080"')
      .optional(),
    /** Exit code 0 is healthy. */
    exec: Command.optional(),
    within: Duration().default(30_000),
    every: Duration().default(500),
  })
  .refine(({ http, tcp, exec }) => [http, tcp, exec].filter((one) => one !== undefined).length === 1, {
    message: "say one of http, tcp and exec",
  });
export type Probe = z.output<typeof Probe>;

const Run = z.strictObject({
  exec: Command,
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "not a name for a variable"), z.string()).default({}),
  probe: Probe.optional(),
  /** How long the old version may take to finish its requests after SIGTERM. */
  drain: Duration().default(20_000),
});
export type Run = z.output<typeof Run>;

const Wave = z
  .strictObject({
    share: Share,
    /** How long the wave must stay healthy before the next begins. */
    bake: Duration().default(0),
    /** How many different people must approve before the wave begins. */
    approve: z.int().min(0).max(10).default(0),
    /** Whose approvals count, and who may reject; left out: every approver's. */
    approvers: z.array(z.string().min(1).max(200)).min(1).max(100).optional(),
    /** Left out: all regions of the service. */
    regions: z.array(Region).min(1).max(50).optional(),
  })
  .refine(({ approve, approvers }) => approvers === undefined || approvers.length >= approve, {
    message: "fewer approvers are named than must approve",
  });

const HttpAddress = z.url({ protocol: /^https?$/, error: "write an address with http:// or https://" }).max(2_000);
const checkTimes = {
  /** How long after a wave's activation it is measured first: nothing from before may be in it. */
  after: Duration().default(30_000),
  every: Duration().default(5_000),
  /** As many good measurements as this let the wave pass. No data is not healthy. */
  samples: z.int().min(1).max(1_000).default(3),
};
const HealthCheck = z.union([
  z
    .strictObject({
      /** The address of a server with Prometheus' HTTP API. */
      prometheus: HttpAddress,
      query: z.string().min(1).max(10_000),
      max: z.number().optional(),
      min: z.number().optional(),
      ...checkTimes,
    })
    .refine(({ max, min }) => max !== undefined || min !== undefined, { message: "say max, min or both" }),
  /** Gets service, release, wave and manifest as JSON, and answers `{"healthy": true, "why": "..."}`. */
  z.strictObject({ webhook: HttpAddress, ...checkTimes }),
]);
export type HealthCheck = z.output<typeof HealthCheck>;

const Health = z.strictObject({
  failedMax: Share.default(10_000),
  silentMax: Share.default(20_000),
  /** Fewer reports than this, or than the wave has machines, decide nothing. */
  samplesMin: z.int().min(1).max(100_000).default(1),
  /** A machine that has not reported for this long is silent. */
  silentAfter: Duration().default(30_000),
  /** Beside the machines' probes: the service's own metrics, or the word of another program. */
  checks: z.array(HealthCheck).max(20).default([]),
});
export type HealthLimits = Omit<z.output<typeof Health>, "checks">;

/** How much of a service may be on its way from one version to another at once, whatever a wave's share is. */
const AtOnce = z.strictObject({
  service: Share.default(wholePpm),
  /** Of machines with the same label `rack=...`. */
  rack: Share.default(wholePpm),
});
export type AtOnce = z.output<typeof AtOnce>;

const Build = z.union([
  z.strictObject({
    run: Command,
    /** The folder, below the checkout, that holds what to deploy. */
    output: z.string().min(1).max(1_000).default("."),
    timeout: Duration().default(20 * 60_000),
  }),
  z.strictObject({
    /** A workflow of CI, by its file's name: it runs for the release's commit. */
    workflow: z.string().min(1).max(200),
    /** The repository, as CI knows it: "owner/name". */
    repository: z.string().min(1).max(300),
    /** What the run uploads with actions/upload-artifact, and is deployed. */
    artifact: z.string().min(1).max(200),
    inputs: z.record(z.string().max(200), z.string().max(10_000)).default({}),
    /** The folder, below the artifact, that holds what to deploy. */
    output: z
      .string()
      .min(1)
      .max(1_000)
      .refine((path) => !path.startsWith("/") && !path.split("/").includes(".."), "it must stay below the artifact")
      .default("."),
    timeout: Duration().default(60 * 60_000),
  }),
]);

export const ServiceFile = z
  .strictObject({
    service: ServiceName,
    build: Build.optional(),
    run: Run,
    targets: z.strictObject({
      labels: z.array(Label).max(100).default([]),
      regions: z.array(Region).min(1).max(50),
    }),
    waves: z
      .array(Wave)
      .min(1)
      .max(50)
      .default([{ share: wholePpm, bake: 0, approve: 0 }]),
    atOnce: AtOnce.prefault({}),
    /** Services whose releases must have ended before a wave of this one begins. Rollbacks do not wait. */
    notBefore: z.array(ServiceName).max(20).default([]),
    health: Health.prefault({}),
    rollback: z.enum(["automatic", "manual"]).default("automatic"),
    concurrent: z.enum(["supersede", "queue"]).default("supersede"),
    /** Times of the week in which no wave begins. Rollbacks are never frozen. */
    freeze: z
      .array(
        z.string().refine((text) => parseFreeze(text) !== undefined, {
          message: 'write a window as "Fri 16:00/Mon 08:00 Europe/Berlin"',
        }),
      )
      .max(20)
      .default([]),
    agent: z
      .strictObject({
        /** Versions that stay on a machine's disk, the running one included. */
        keep: z.int().min(2).max(100).default(3),
        disk: Size().default(40 * 1024 ** 3),
      })
      .prefault({}),
    /** The release fails, and rolls back, if it has not ended by then. */
    deadline: Duration().default(30 * 60_000),
  })
  .superRefine((file, context) => {
    const wrong = wrongWaves(file, wholePpm);
    if (wrong !== undefined) context.addIssue({ code: "custom", path: ["waves"], message: wrong });
    if (file.notBefore.includes(file.service))
      context.addIssue({ code: "custom", path: ["notBefore"], message: "a service cannot wait for itself" });
  });
export type ServiceFile = z.output<typeof ServiceFile>;
