/** Opens what is granted in buckets: the store's own client, with keys from the vault. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { createS3Client, type S3Client } from "#blobs/tiers/s3/s3-client.ts";
import type { Vault } from "#vault/vault.ts";
import type { BucketGrant } from "./grant-config.ts";

export type BucketPorts = {
  readonly clock: Clock;
  readonly random: Random;
  readonly vault: Pick<Vault, "read">;
};

export type OpenBucket = (bucket: BucketGrant, tenant: string) => Promise<S3Client>;

/** Keys are read each time: one that was changed counts at once. */
export const openBuckets =
  ({ clock, random, vault }: BucketPorts): OpenBucket =>
  async (bucket, tenant) => {
    const of = bucket.secretsOf ?? tenant;
    const secret = async (name: string): Promise<string> => {
      const value = await vault.read(of, name);
      if (value) return value.toString("utf8").trim();
      throw new Fault("invalid", "open bucket", {
        bucket: bucket.bucket,
        secret: name,
        why: "there is no such secret",
      });
    };
    const credentials = {
      accessKeyId: await secret(bucket.accessKey),
      secretAccessKey: await secret(bucket.secretKey),
    };
    const { endpoint, region, virtualHost } = bucket;
    return createS3Client({ clock, random, endpoint, region, bucket: bucket.bucket, virtualHost, credentials });
  };

/** What the bucket's server will refuse again, however often it is asked, is not worth another attempt. */
export async function orRefused<T>(name: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const { status, code } = isFault(error, "internal") ? error.facts : {};
    if (status === undefined) throw error;
    throw new Fault("invalid", "ask bucket", { name, status, code, why: "its server refused it" }, error);
  }
}
