/** Settings of the tier that all nodes reach. Secrets are in files or in the environment, never in it. */
import { z } from "zod";
import { Duration, File, Size } from "#base/config-words.ts";
import { PostgresSchema, PostgresUrl } from "#app/postgres-words.ts";

const WhenDead = z
  .enum(["refuse", "serve-local"])
  .default("serve-local")
  .describe("While the tier does not answer: refuse reads too, or serve what is on this node. Nothing is guessed.");

const Lifetime = Duration({ min: "1h" })
  .optional()
  .describe("How long the tier keeps unused blobs, if it removes them by itself. Left out: forever.");

const Names = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("tier").describe("In the bucket, which must honour conditional writes.") }),
    z.strictObject({
      kind: z.literal("postgres").describe("In a PostgreSQL server."),
      url: PostgresUrl,
      schema: PostgresSchema.describe("The schema that holds the table."),
    }),
    z.strictObject({ kind: z.literal("here").describe("On each node by itself: nodes do not share results.") }),
  ])
  .describe("Where names of action results and entries of build tools are kept.");

const ShortCuts = z
  .array(
    z.strictObject({
      url: z.url({ protocol: /^https?$/ }).describe("The base URL, before /cas/<hash>."),
      token: File.optional().describe("A file with a bearer token on its only line."),
    }),
  )
  .max(8)
  .default([])
  .describe("Caches that speak Bazel's HTTP protocol, asked for bytes before the tier. Their bytes are verified.");

const Peers = z
  .strictObject({
    token: File.optional().describe(
      "A file with a bearer token on its only line, which the other nodes know. They serve what its tenant may see.",
    ),
    largerThan: Size().prefault("64KiB").describe("Smaller blobs are fetched from the tier directly."),
  })
  .optional()
  .describe(
    "Ask other nodes of the mesh for bytes before the tier: for blobs on their own disks, which are verified. " +
      "Left out: they are not asked.",
  );

export const TierConfig = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("s3").describe("A bucket in S3-compatible storage."),
    endpoint: z.url({ protocol: /^https?$/ }).describe("Such as https://s3.eu-central-1.amazonaws.com."),
    region: z.string().min(1).max(100).default("us-east-1").describe("Part of every signature."),
    bucket: z.string().min(1).max(255).describe("The bucket, which must exist."),
    prefix: z
      .string()
      .regex(/^(?:[A-Za-z0-9._-]+\/)*$/, "write folders, each followed by a slash")
      .default("millrace/")
      .describe("Prefix of every key."),
    virtualHost: z.boolean().default(false).describe("Whether the bucket's name is part of the host name."),
    credentials: File.optional().describe(
      "A file of two lines: access key, secret key. Left out: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    ),
    lifetime: Lifetime,
    knownFor: Duration({ max: "1h" })
      .prefault("10m")
      .describe("How long a blob that was seen there is assumed to be there."),
    partSize: Size({ min: "5MiB", max: "1GiB" })
      .prefault("8MiB")
      .describe("Larger blobs are sent in parts of this size."),
    whenDead: WhenDead,
    shortCuts: ShortCuts,
    peers: Peers,
    names: Names.prefault({ kind: "tier" }),
  }),
  z.strictObject({
    kind: z.literal("reapi").describe("Another server that speaks the Remote Execution API, such as a Millrace."),
    address: z
      .string()
      .regex(/^grpcs?:\/\/[^/\s]+:\d{1,5}$/, "write grpc://host:port, or grpcs:// with TLS")
      .describe("The server's address."),
    instance: z.string().max(200).default("").describe("The server's instance name."),
    tenant: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "write letters, digits, dots and dashes only")
      .default("default")
      .describe("The one tenant whose blobs go there, unless each tenant has its own token: see `tokens`."),
    token: File.optional().describe("A file with a bearer token on its only line."),
    tokens: File.optional().describe(
      "A folder with such a file for each tenant, named like the tenant. The server tells tenants apart by them.",
    ),
    answerWithin: Duration({ min: "100ms", max: "10m" })
      .prefault("30s")
      .describe("How long it may be silent before it counts as not answering."),
    authority: File.optional().describe("With grpcs: certificates to trust, as PEM. Left out: those of the system."),
    lifetime: Lifetime,
    whenDead: WhenDead,
    shortCuts: ShortCuts,
    peers: Peers,
    names: Names.prefault({ kind: "here" }),
  }),
  z.strictObject({
    kind: z.literal("directory").describe("A folder that all nodes reach, such as a network disk."),
    directory: z.string().min(1).describe("It must exist. Nothing in it is ever removed."),
    whenDead: WhenDead,
    shortCuts: ShortCuts,
    peers: Peers,
    names: Names.prefault({ kind: "here" }),
  }),
]);

export type TierConfig = z.output<typeof TierConfig>;
