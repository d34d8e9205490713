/** `[instance/]operations/<job>`: contains everything needed to find the operation, so that any node can. Pure. */
import { digestText, isDigest, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { parseJob } from "#base/ids.ts";
import { checkedInstance } from "#doors/build/names.ts";
import { invalid, notFound } from "#doors/build/refusals.ts";

export type OperationName = { readonly instance: string; readonly jobId: string };

const word = "operations";
const nameLengthMax = 400;

export const operationName = (instance: string, jobId: string): string =>
  instance === "" ? `${word}/${jobId}` : `${instance}/${word}/${jobId}`;

/** For a result that came from the cache: there is no job, but any node can look the result up again. */
export function cachedName(instance: string, action: Digest): string {
  const { fn = "sha256", hash = "", sizeBytes = 0 } = parseDigest(action) ?? {};
  return operationName(instance, `cached-${fn}-${hash}-${sizeBytes}`);
}

const cachedShape = /^(?:(.*)\/)?operations\/cached-([a-z0-9]{1,20})-([0-9a-f]{1,128})-(\d{1,16})$/;

/** Undefined for all other names. */
export function parseCachedName(name: string): { readonly instance: string; readonly action: Digest } | undefined {
  const match = name.length > nameLengthMax ? null : cachedShape.exec(name);
  if (!match) return undefined;
  const [, instance = "", fn = "", hash = "", sizeBytes] = match;
  const action = digestText(fn as DigestFunction, hash, Number(sizeBytes));
  return isDigest(action) ? { instance: checkedInstance(instance), action } : undefined;
}

/** REAPI-50: an invalid name is not found; clients then start again. */
export function parseOperationName(name: string): OperationName {
  const parts = name.split("/");
  const jobId = parts.at(-1) ?? "";
  if (name.length > nameLengthMax || parts.at(-2) !== word || !parseJob(jobId))
    throw notFound(`there is no operation ${JSON.stringify(name.slice(0, 200))}`);
  return { instance: checkedInstance(parts.slice(0, -2).join("/")), jobId };
}

/** `[instance/]streams/<job>/<token>/(stdout|stderr)`: the output of an operation, while it runs under a claim. */
export type StreamName = OperationName & { readonly token: number; readonly name: "stdout" | "stderr" };

const streamShape = /^(?:(.*)\/)?streams\/([^/]+)\/(\d{1,15})\/(stdout|stderr)$/s;

/** For a valid operation name: it is not parsed again for every message. */
export const streamNameOf = (operation: string, token: number, name: StreamName["name"]): string => {
  const at = operation.lastIndexOf(`${word}/`);
  return `${operation.slice(0, at)}streams${operation.slice(at + word.length)}/${token}/${name}`;
};

/** Undefined for names of blobs and the like: these never end with such a part. */
export function parseStreamName(text: string): StreamName | undefined {
  const [, instance = "", jobId = "", token = "", name] =
    (text.length <= nameLengthMax && streamShape.exec(text)) || [];
  if (!parseJob(jobId)) return undefined;
  return { instance: checkedInstance(instance), jobId, token: Number(token), name: name as StreamName["name"] };
}

/** The instance of a collection: `[instance/]operations`, or the instance alone. */
export function parseCollection(name: string): string {
  if (name.length > nameLengthMax) throw invalid("the name is too long");
  const parts = name.split("/");
  if (parts.at(-1) === word) parts.pop();
  return checkedInstance(parts.join("/"));
}
