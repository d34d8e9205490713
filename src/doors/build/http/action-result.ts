/** What an action's result names. Bazel sends protobuf; moon sends the same as JSON. */
import { digestText, isDigest, type Digest } from "#base/digest.ts";
import type { DigestFunction } from "#base/digest.ts";
import { ActionResult, Tree } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { HttpRefusal } from "./refusal.ts";

export type Named = {
  /** Blobs that a result stands for: whoever takes the result will want them. */
  readonly blobs: readonly Digest[];
  /** Those of them that are trees, which name blobs in turn. */
  readonly trees: readonly Digest[];
};

type WireDigest = { readonly hash: string; readonly sizeBytes: number };

/** Throws HttpRefusal 400 for what is no result, or names what cannot be a blob. */
export function namedBy(bytes: Uint8Array, fn: DigestFunction, form: "protobuf" | "json"): Named {
  return form === "json" ? namedInJson(bytes, fn) : namedInProtobuf(bytes, fn);
}

function namedInProtobuf(bytes: Uint8Array, fn: DigestFunction): Named {
  const result = decode(ActionResult, bytes);
  const trees = result.outputDirectories.flatMap(({ treeDigest }) => (treeDigest ? [asDigest(treeDigest, fn)] : []));
  const others = [...result.outputFiles.map(({ digest }) => digest), result.stdoutDigest, result.stderrDigest];
  const blobs = others.flatMap((digest) => (digest ? [asDigest(digest, fn)] : []));
  return { blobs: [...blobs, ...trees], trees };
}

/** Digests of all files of a tree. */
export function namedByTree(bytes: Uint8Array, fn: DigestFunction): readonly Digest[] {
  const { root, children } = decode(Tree, bytes);
  const files = [...(root ? [root] : []), ...children].flatMap((directory) => directory.files);
  return files.flatMap(({ digest }) => (digest ? [asDigest(digest, fn)] : []));
}

/** Protobuf's JSON is written with either spelling of a field's name, and numbers of 64 bits often as text. */
function namedInJson(bytes: Uint8Array, fn: DigestFunction): Named {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new HttpRefusal(400, "the result is not JSON", {}, error);
  }
  const result = record(parsed, "a result");
  const trees = list(result, "outputDirectories").flatMap((one) => digestIn(one, "treeDigest", fn));
  const blobs = [
    ...list(result, "outputFiles").flatMap((one) => digestIn(one, "digest", fn)),
    ...digestIn(result, "stdoutDigest", fn),
    ...digestIn(result, "stderrDigest", fn),
  ];
  return { blobs: [...blobs, ...trees], trees };
}

type Fields = Readonly<Record<string, unknown>>;

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const field = (of: Fields, name: string): unknown => of[name] ?? of[snake(name)] ?? undefined;

function record(value: unknown, what: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new HttpRefusal(400, `${what} is an object`);
  return value as Fields;
}

function list(of: Fields, name: string): readonly Fields[] {
  const value = field(of, name) ?? [];
  if (!Array.isArray(value)) throw new HttpRefusal(400, `${name} is a list`);
  return value.map((one) => record(one, `each of ${name}`));
}

function digestIn(of: Fields, name: string, fn: DigestFunction): readonly Digest[] {
  const value = field(of, name);
  if (value === undefined) return [];
  const digest = record(value, name);
  const sizeBytes = Number(field(digest, "sizeBytes") ?? 0);
  const { hash } = digest;
  return [asDigest({ hash: typeof hash === "string" ? hash : "", sizeBytes }, fn)];
}

function asDigest({ hash, sizeBytes }: WireDigest, fn: DigestFunction): Digest {
  const digest = digestText(fn, hash, sizeBytes);
  if (!isDigest(digest)) throw new HttpRefusal(400, `the result names what is no digest: ${digest.slice(0, 100)}`);
  return digest;
}
