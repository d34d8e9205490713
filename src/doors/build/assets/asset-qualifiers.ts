/** What may be said of an asset besides its address. Pure. */
import { parseDigest, type DigestFunction } from "#base/digest.ts";
import { detail, grpcCode, GrpcError } from "#grpc/status.ts";
import type { Qualifier } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import { BadRequest } from "#wire/generated/google/rpc/error_details.ts";
import { invalid } from "#doors/build/refusals.ts";

export type Qualifiers = {
  /** The checksums that the bytes must have, all of them. */
  readonly checksums: readonly Checksum[];
  /** Header fields for every address, and those only for the address with this index. */
  readonly headers: readonly { readonly name: string; readonly value: string; readonly uri?: number }[];
  /** The qualifiers that identify a different asset: sorted, and without those that only say how to fetch it. */
  readonly identity: readonly Qualifier[];
};

export type Checksum = { readonly fn: DigestFunction; readonly hash: string };

const plainNames = new Set([
  "checksum.sri",
  "bazel.canonical_id",
  "resource_type",
  "directory",
  "vcs.branch",
  "vcs.commit",
]);
const headerAll = /^http_header:([A-Za-z0-9-]{1,100})$/;
const headerOne = /^http_header_url:(\d{1,4}):([A-Za-z0-9-]{1,100})$/;
const qualifiersMax = 200;

/** Throws INVALID_ARGUMENT with every unknown qualifier: ignoring one might fetch a different asset. */
export function readQualifiers(qualifiers: readonly Qualifier[]): Qualifiers {
  if (qualifiers.length > qualifiersMax) throw invalid(`more than ${qualifiersMax} qualifiers`);
  const names = new Set<string>();
  const unknown: string[] = [];
  const headers: Qualifiers["headers"][number][] = [];
  for (const { name, value } of qualifiers) {
    if (names.has(name)) throw invalid(`the qualifier ${name} is given twice`);
    names.add(name);
    const all = headerAll.exec(name);
    const one = headerOne.exec(name);
    if (all) headers.push({ name: all[1] ?? "", value });
    else if (one) headers.push({ name: one[2] ?? "", value, uri: Number(one[1]) });
    else if (!plainNames.has(name)) unknown.push(name);
  }
  if (unknown.length > 0) throw notUnderstood(unknown);
  const sri = qualifiers.find(({ name }) => name === "checksum.sri")?.value;
  const identity = qualifiers.filter(({ name }) => plainNames.has(name)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return { checksums: sri === undefined ? [] : checksumsOf(sri), headers, identity };
}

/** `sha256-<base64>`, or several separated by blanks, of which the strongest counts. */
function checksumsOf(sri: string): readonly Checksum[] {
  const found = sri
    .trim()
    .split(/\s+/)
    .flatMap((one): Checksum[] => {
      const [, fn, base64 = ""] = /^(sha1|sha256|sha384|sha512|blake3)-([A-Za-z0-9+/]+={0,2})$/.exec(one) ?? [];
      const hash = Buffer.from(base64, "base64").toString("hex");
      const checksum = { fn: fn as DigestFunction, hash };
      return fn !== undefined && parseDigest(`${fn}:${hash}/1`) ? [checksum] : [];
    });
  if (found.length === 0) throw invalid("checksum.sri names no checksum that is understood here");
  const strongest = found.toSorted((a, b) => b.hash.length - a.hash.length)[0] as Checksum;
  return [strongest];
}

function notUnderstood(names: readonly string[]): GrpcError {
  const fieldViolations = names.map((name) => ({
    field: "qualifiers.name",
    description: `"${name.slice(0, 200)}" not supported`,
  }));
  return new GrpcError(
    grpcCode.invalidArgument,
    `qualifiers that are not understood: ${names.join(", ").slice(0, 500)}`,
    [detail(BadRequest, { fieldViolations })],
  );
}
