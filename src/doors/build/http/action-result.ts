/** A result over HTTP: Bazel sends protobuf; moon sends the same as JSON. */
import { ActionResult, type Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import type { NamingResult } from "#doors/build/cache/closure.ts";
import { HttpRefusal } from "./refusal.ts";

export type Form = "protobuf" | "json";

/** The blobs it names, unchecked. Throws Fault "invalid" or HttpRefusal 400 if it is not a result. */
export const readNaming = (bytes: Uint8Array, form: Form): NamingResult =>
  form === "json" ? namingInJson(bytes) : decode(ActionResult, bytes);

/** Protobuf's JSON may use either spelling of a field's name, and often has 64-bit numbers as strings. */
function namingInJson(bytes: Uint8Array): NamingResult {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new HttpRefusal(400, "the result is not JSON", {}, error);
  }
  const result = record(parsed, "a result");
  return {
    outputFiles: list(result, "outputFiles").map((file) => ({ digest: digestIn(file, "digest") })),
    outputDirectories: list(result, "outputDirectories").map((directory) => ({
      path: textIn(directory, "path"),
      treeDigest: digestIn(directory, "treeDigest"),
      rootDirectoryDigest: digestIn(directory, "rootDirectoryDigest"),
    })),
    stdoutDigest: digestIn(result, "stdoutDigest"),
    stderrDigest: digestIn(result, "stderrDigest"),
  };
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

function digestIn(of: Fields, name: string): Digest | undefined {
  const value = field(of, name);
  if (value === undefined) return undefined;
  const digest = record(value, name);
  return { hash: textIn(digest, "hash"), sizeBytes: Number(field(digest, "sizeBytes") ?? 0) };
}

function textIn(of: Fields, name: string): string {
  const value = field(of, name);
  return typeof value === "string" ? value : "";
}
