import { Fault } from "#base/fault.ts";
import { readSmallFile } from "#edge/tls/small-file.ts";

const lengthMin = 16;

/** The shared secret of nodes on different machines; undefined if there are none. */
export async function clusterSecret(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const secret = (await readSmallFile(file, "read the cluster's secret")).trim();
  if (secret.length >= lengthMin && !/\s/.test(secret)) return secret;
  const why = `a secret of at least ${lengthMin} characters on its only line is needed`; // never its content
  throw new Fault("invalid", "read the cluster's secret", { file, why });
}
