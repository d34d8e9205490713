/** Names of instances, and names of resources in ByteStream. Pure. */
import { hashBytes, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import type { Form } from "#blobs/store.ts";
import { digestFor, shown } from "./digests.ts";
import { invalid } from "./refusals.ts";

/** Keywords of resource names: no part of an instance name may be one of them. */
const reserved = new Set([
  "blobs",
  "uploads",
  "actions",
  "actionResults",
  "operations",
  "capabilities",
  "compressed-blobs",
]);
const instanceLengthMax = 200;
const nameLengthMax = 4_096;

/** Throws for an invalid instance name. */
export function checkedInstance(name: string): string {
  if (name === "") return name;
  if (name.length > instanceLengthMax) throw invalid(`an instance's name has at most ${instanceLengthMax} characters`);
  for (const part of name.split("/")) {
    if (part === "" || part === "." || part === "..") throw invalid(`not an instance's name: ${shown(name)}`);
    if (reserved.has(part)) throw invalid(`no part of an instance's name may be ${part}: ${shown(name)}`);
  }
  if (/\p{Cc}/u.test(name)) throw invalid("an instance's name has no control characters");
  return name;
}

export type BlobName = { readonly instance: string; readonly digest: Digest; readonly form: Form };
export type UploadName = BlobName & { readonly uuid: string };

/** `[instance/](blobs|compressed-blobs/zstd)/[function/]hash/size` */
export function parseReadName(name: string): BlobName {
  return plainName(name) ?? anyName(name);
}

const kindAndSlash = "blobs/";
const slash = 0x2f;

/** The form of nearly all names, parsed without splitting: `blobs/<hash of SHA-256>/size`. */
function plainName(name: string): BlobName | undefined {
  if (!name.startsWith(kindAndSlash)) return undefined;
  const digest = name.slice(kindAndSlash.length);
  const parts = digest.charCodeAt(hashBytes.sha256 * 2) === slash ? parseDigest(digest) : undefined;
  return parts && parts.sizeBytes > 0 ? { instance: "", digest, form: "plain" } : undefined;
}

function anyName(name: string): BlobName {
  const parts = partsOf(name);
  const at = parts.findIndex((part) => part === "blobs" || part === "compressed-blobs");
  if (at === -1) throw notAName(name, "a name to read");
  const { digest, form, end } = blobAt(parts, at, name);
  if (end !== parts.length) throw notAName(name, "a name to read");
  return { instance: instanceOf(parts, at), digest, form };
}

/** `[instance/]uploads/uuid/(blobs|compressed-blobs/zstd)/[function/]hash/size[/anything]` */
export function parseWriteName(name: string): UploadName {
  const parts = partsOf(name);
  const at = parts.indexOf("uploads");
  const uuid = parts[at + 1];
  const kind = parts[at + 2];
  if (at === -1 || uuid === undefined || uuid === "" || (kind !== "blobs" && kind !== "compressed-blobs"))
    throw notAName(name, "a name to write");
  const { digest, form } = blobAt(parts, at + 2, name);
  return { instance: instanceOf(parts, at), uuid, digest, form };
}

function partsOf(name: string): readonly string[] {
  if (name.length > nameLengthMax) throw invalid(`a resource's name has at most ${nameLengthMax} characters`);
  return name.split("/");
}

/** Without an instance there is no slash either. */
function instanceOf(parts: readonly string[], end: number): string {
  if (end > 0 && parts[0] === "") throw invalid("a name does not begin with a slash");
  return checkedInstance(parts.slice(0, end).join("/"));
}

function blobAt(parts: readonly string[], kindAt: number, name: string) {
  let at = kindAt + 1;
  let form: Form = "plain";
  if (parts[kindAt] === "compressed-blobs") {
    if (parts[at] !== "zstd") throw invalid(`the only compressor here is zstd: ${shown(name)}`);
    form = "zstd";
    at += 1;
  }
  const given = functionNames.get(parts[at] ?? "");
  if (given) at += 1;
  const hash = parts[at] ?? "";
  const size = parts[at + 1] ?? "";
  if (hash === "" || !/^(0|[1-9][0-9]{0,15})$/.test(size)) throw notAName(name, "a name of a blob");
  return { digest: digestFor(given, hash, Number(size)), form, end: at + 2 };
}

/** As written in names; SHA-256 and others of unique length may be left out. */
const functionNames: ReadonlyMap<string, DigestFunction> = new Map(
  (Object.keys(hashBytes) as DigestFunction[]).map((fn) => [fn, fn]),
);

/** How a missing blob is named in a refusal: without an instance. */
export function blobSubject(digest: Digest): string {
  const { fn = "sha256", hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
  return fn === "blake3" ? `blobs/${fn}/${hash}/${sizeBytes}` : `blobs/${hash}/${sizeBytes}`;
}

const notAName = (name: string, what: string) => invalid(`not ${what}: ${shown(name)}`);
