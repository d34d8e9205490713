import { Fault } from "#base/fault.ts";
import { readSmallFile } from "#edge/tls/small-file.ts";

const lengthMin = 16;

/** What nodes of other machines know each other by; undefined where there are none. */
export async function clusterSecret(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const secret = (await readSmallFile(file, "read the cluster's secret")).trim();
  if (secret.length >= lengthMin && !/\s/.test(secret)) return secret;
  const why = `a secret of at least ${lengthMin} characters on its only line is wanted`; // never what is in it
  throw new Fault("invalid", "read the cluster's secret", { file, why });
}
