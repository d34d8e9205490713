/**
 * Pure: what a name in a query stands for, and whether the job may use it.
 *
 * BG1 A job of a tenant reads and writes only what is granted to that tenant, under the grant's own name, by its path
 *     or by its URL. A job of an operator reads whatever the node can.
 */
import { isAbsolute, normalize, resolve } from "node:path";
import { Fault } from "#base/fault.ts";
import type { BucketGrant, Grant } from "./grant-config.ts";

/** Who asks. */
export type Asker = {
  readonly tenant: string;
  /** Whether only grants count; otherwise the node's own rights do. */
  readonly isGranted: boolean;
  /** Where names of files begin that are not absolute, for jobs of operators. */
  readonly folder: string;
};

export type Place =
  /** `within`: a file must really lie there, whatever links lead to it. */
  | { readonly kind: "file"; readonly path: string; readonly within?: string }
  | { readonly kind: "object"; readonly grant: string; readonly bucket: BucketGrant; readonly key: string };

export const isFor = ({ tenants }: Grant, { tenant, isGranted }: Pick<Asker, "tenant" | "isGranted">): boolean =>
  !isGranted || tenants.includes("*") || tenants.includes(tenant);

/** `name` may be a pattern. */
export function resolveName(name: string, asker: Asker, grants: readonly Grant[], toWrite = false): Place {
  const doing = toWrite ? "find folder" : "find files";
  if (name.includes("\0")) throw new Fault("invalid", doing, { why: "a name has a zero byte" });
  const mine = grants.filter((grant) => isFor(grant, asker) && (!toWrite || grant.write || !asker.isGranted));
  const url = /^([a-z][a-z0-9+.-]*):\/\/([^/]*)\/?(.*)$/is.exec(name);
  if (url) {
    const [, scheme = "", bucket = "", key = ""] = url;
    if (scheme.toLowerCase() !== "s3")
      throw new Fault("invalid", doing, { name, why: "files of the node and s3://bucket/key are read, nothing else" });
    checkSteps(key, name, doing);
    const found = mine.find(({ s3 }) => s3?.bucket === bucket && key.startsWith(s3.prefix) && key !== s3.prefix);
    if (!found?.s3) throw refused(name, mine, doing);
    return { kind: "object", grant: found.name, bucket: found.s3, key };
  }
  if (!asker.isGranted) return { kind: "file", path: isAbsolute(name) ? name : resolve(asker.folder, name) };
  checkSteps(name, name, doing);
  if (isAbsolute(name)) {
    const path = normalize(name);
    const within = mine.find(({ folder }) => folder !== undefined && path.startsWith(`${normalize(folder)}/`))?.folder;
    if (within === undefined) throw refused(name, mine, doing);
    return { kind: "file", path, within };
  }
  const [first = "", ...rest] = name.split("/").filter((step) => step !== "" && step !== ".");
  const found = mine.find((grant) => grant.name === first);
  if (!found || rest.length === 0) throw refused(name, mine, doing);
  const below = rest.join("/");
  if (found.s3) return { kind: "object", grant: found.name, bucket: found.s3, key: `${found.s3.prefix}${below}` };
  const within = found.folder ?? "";
  return { kind: "file", path: `${normalize(within).replace(/\/$/, "")}/${below}`, within };
}

/** Patterns have braces, and braces may hide a step up. */
function checkSteps(path: string, name: string, doing: string): void {
  if (/(?:^|[/{,\\])\.\.(?:$|[/},\\])/.test(path)) throw new Fault("invalid", doing, { name, why: "it leads upwards" });
}

function refused(name: string, mine: readonly Grant[], doing: string): Fault {
  const names = mine.map((grant) => `${grant.name}/`).join(", ");
  const why = names === "" ? "nothing is granted to this tenant" : `names begin with what is granted: ${names}`;
  return new Fault("invalid", doing, { name: name.slice(0, 500), why });
}
