/** What jobs of tenants may read and write, as the configuration says it. */
import { isAbsolute } from "node:path";
import { z } from "zod";

const Bucket = z.strictObject({
  endpoint: z.url({ protocol: /^https?$/ }).describe("Such as https://s3.eu-central-1.amazonaws.com."),
  region: z.string().min(1).max(100).default("us-east-1").describe("Part of every signature."),
  bucket: z.string().min(1).max(255).describe("The bucket."),
  prefix: z
    .string()
    .max(500)
    .regex(/^(?:[A-Za-z0-9._=-]+\/)*$/, "write folders, each followed by a slash")
    .default("")
    .describe("Only keys that begin with it."),
  virtualHost: z.boolean().default(false).describe("Whether the bucket's name is part of the host name."),
  accessKey: z.string().min(1).max(200).describe("The name of the secret with the access key's id."),
  secretKey: z.string().min(1).max(200).describe("The name of the secret with the access key itself."),
  secretsOf: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe("The tenant whose secrets these are. Left out: the tenant whose job it is."),
});

export const GrantConfig = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/, "write letters, digits, dashes and underscores")
      .describe('What queries call it: "lake" is read as lake/2026/*.parquet.'),
    tenants: z.array(z.string().min(1).max(100)).min(1).max(1_000).describe('Whose jobs may use it; "*": all tenants.'),
    folder: z
      .string()
      .max(4_096)
      .refine((path) => isAbsolute(path) && path !== "/", "write an absolute path below the root")
      .optional()
      .describe("A folder that every node reaches under this path."),
    s3: Bucket.optional().describe("A part of a bucket in S3-compatible storage."),
    write: z.boolean().default(false).describe("Whether results may be written there, too."),
  })
  .refine(({ folder, s3 }) => (folder === undefined) !== (s3 === undefined), "give a folder or s3, one of them");

export type Grant = z.output<typeof GrantConfig>;
export type BucketGrant = NonNullable<Grant["s3"]>;

export const Grants = z
  .array(GrantConfig)
  .max(1_000)
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "two have the same name")
  .default([]);
