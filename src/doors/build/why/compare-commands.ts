/** Compares two actions, or two commands: everything that is part of the key, except the input tree. */
import type { Action, Command } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Difference } from "./difference.ts";

export function compareActions(before: Action, after: Action): readonly Difference[] {
  const found: Difference[] = [];
  const timeouts = { before: seconds(before), after: seconds(after) };
  if (timeouts.before !== timeouts.after) found.push({ kind: "timeout", ...timeouts });
  const salts = { before: hex(before.salt), after: hex(after.salt) };
  if (salts.before !== salts.after) found.push({ kind: "salt", ...salts });
  if (before.doNotCache !== after.doNotCache)
    found.push({ kind: "do-not-cache", before: before.doNotCache, after: after.doNotCache });
  return [...found, ...properties(before.platform, after.platform)];
}

export function compareCommands(before: Command, after: Command): readonly Difference[] {
  const found: Difference[] = [...comparedArguments(before.arguments, after.arguments)];
  const environments = [before, after].map(({ environmentVariables }) => pairs(environmentVariables));
  for (const change of byName(environments[0] ?? new Map(), environments[1] ?? new Map()))
    found.push({ kind: "environment", ...change });
  if (before.workingDirectory !== after.workingDirectory)
    found.push({ kind: "working-directory", before: before.workingDirectory, after: after.workingDirectory });
  const outputs = [before, after].map(outputsOf);
  for (const { name: path, before: was, after: is } of byName(outputs[0] ?? new Map(), outputs[1] ?? new Map()))
    found.push({ kind: "output", path, before: wanted(was), after: wanted(is) });
  return [...found, ...properties(before.platform, after.platform)];
}

/**
 * A common beginning and end is left out, so that one new argument in the middle is one difference. Positions are
 * counted in the later command, or in the earlier one for removed arguments.
 */
function comparedArguments(before: readonly string[], after: readonly string[]): readonly Difference[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const shorter = Math.min(before.length, after.length) - head;
  while (tail < shorter && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const was = before.slice(head, before.length - tail);
  const is = after.slice(head, after.length - tail);
  return Array.from({ length: Math.max(was.length, is.length) }, (_, i) => ({
    kind: "argument" as const,
    at: head + i,
    before: was[i],
    after: is[i],
  })).filter((one) => one.before !== one.after);
}

type Platform = { readonly properties: readonly { readonly name: string; readonly value: string }[] };

const properties = (before: Platform | undefined, after: Platform | undefined): readonly Difference[] =>
  byName(pairs(before?.properties ?? []), pairs(after?.properties ?? [])).map((change) => ({
    kind: "property",
    ...change,
  }));

/** A name may occur more than once: its values are compared together. */
function pairs(list: readonly { readonly name: string; readonly value: string }[]): Map<string, string> {
  const all = new Map<string, string>();
  for (const { name, value } of list) {
    const other = all.get(name);
    all.set(name, other === undefined ? value : `${other}, ${value}`);
  }
  return all;
}

const wanted = (path: string | undefined): "wanted" | undefined => (path === undefined ? undefined : "wanted");

const outputsOf = ({ outputPaths, outputFiles, outputDirectories }: Command): Map<string, string> =>
  new Map([...outputPaths, ...outputFiles, ...outputDirectories].map((path) => [path, path]));

type Named = { readonly name: string; readonly before: string | undefined; readonly after: string | undefined };

function byName(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly Named[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((name) => ({ name, before: before.get(name), after: after.get(name) }))
    .filter((one) => one.before !== one.after);
}

const seconds = ({ timeout }: Action): string | undefined =>
  timeout && `${timeout.seconds + timeout.nanos / 1_000_000_000} s`;

const hex = (bytes: Uint8Array): string | undefined =>
  bytes.length === 0 ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
