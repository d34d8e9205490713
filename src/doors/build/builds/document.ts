/**
 * A build as people and scripts write it, in YAML or JSON, checked strictly: a typo is an error with its path. Pure
 * except for the files that it names, which `FindFile` finds.
 */
import { z } from "zod";
import { durationHelp, parseDurationMs } from "#base/units.ts";
import type { Build, BuildAction, Input, Pair } from "#wire/generated/millrace/build/v1/builds.ts";

/** Kept as it was written: a checked document can be sent on unchanged. */
const Duration = z.string().refine((text) => parseDurationMs(text) !== undefined, { message: durationHelp });
const Digest = z.string().regex(/^[0-9a-f]{64}\/\d{1,16}$/, "write a digest as HASH/SIZE, of SHA-256");
const Words = z.record(z.string().min(1), z.string());

const sources = ["file", "text", "blob", "tree", "link", "from"] as const;

const InputAt = z
  .strictObject({
    /** Where the action finds it; for a file or an output the default is the same path. */
    path: z.string().optional(),
    /** A file or a folder on the submitter's machine. */
    file: z.string().optional(),
    text: z.string().optional(),
    blob: Digest.optional(),
    tree: Digest.optional(),
    link: z.string().optional(),
    /** The key of the action that makes it, and which of its outputs it is. */
    from: z.string().optional(),
    output: z.string().optional(),
    executable: z.boolean().optional(),
  })
  .refine((input) => sources.filter((source) => input[source] !== undefined).length === 1, {
    message: `say what it is with one of ${sources.join(", ")}`,
  })
  .refine((input) => input.path !== undefined || input.file !== undefined || input.output !== undefined, {
    message: "say where it is found with path",
  })
  .refine((input) => input.from === undefined || (input.output ?? input.path) !== undefined, {
    message: "say which output it is",
  })
  .refine((input) => input.output === undefined || input.from !== undefined, {
    message: "output goes with from: the action that makes it",
  });

const Action = z.strictObject({
  /** A shell line, or a program and its arguments. */
  run: z.union([z.string().min(1), z.array(z.string()).min(1)]),
  inputs: z.array(z.union([z.string().min(1), InputAt])).default([]),
  outputs: z.array(z.string()).default([]),
  env: Words.default({}),
  platform: Words.default({}),
  /** The working directory, below the folder with its inputs. */
  in: z.string().default(""),
  timeout: Duration.optional(),
  after: z.array(z.string()).default([]),
  /** Whether a result may come from the cache and be stored there; "renew" stores it without looking. */
  cache: z.enum(["use", "renew", "off"]).default("use"),
});

export const BuildDocument = z.strictObject({
  name: z.string().min(1).default("build"),
  instance: z.string().default(""),
  deadline: Duration.optional(),
  /** For all actions; an action's own settings take precedence. */
  env: Words.default({}),
  platform: Words.default({}),
  actions: z.record(z.string().min(1), Action),
});

export type BuildDocument = z.output<typeof BuildDocument>;
export type DocumentInput = z.output<typeof InputAt>;

/** A file of the submitter, once it is in the store. */
export type FoundFile =
  | { readonly kind: "blob"; readonly digest: string; readonly isExecutable: boolean }
  | { readonly kind: "tree"; readonly digest: string };

export type FindFile = (path: string) => Promise<FoundFile>;

/** The search path for shell lines. */
const searchPath = "/usr/local/bin:/usr/bin:/bin";

export async function buildOf(document: BuildDocument, find: FindFile): Promise<Build> {
  const actions: BuildAction[] = [];
  for (const [key, action] of Object.entries(document.actions)) {
    const inputs: Input[] = [];
    for (const input of action.inputs) inputs.push(await inputOf(input, find));
    actions.push({
      key,
      arguments: typeof action.run === "string" ? ["/bin/sh", "-c", action.run] : action.run,
      environment: pairs({ PATH: searchPath, ...document.env, ...action.env }),
      workingDirectory: action.in,
      outputPaths: action.outputs,
      inputs,
      platform: pairs({ ...document.platform, ...action.platform }),
      timeoutMs: msOf(action.timeout),
      doNotCache: action.cache === "off",
      skipCacheLookup: action.cache === "renew",
      after: action.after,
    });
  }
  const { name, instance, deadline } = document;
  return { name, instanceName: instance, actions, deadlineMs: msOf(deadline) };
}

const msOf = (text: string | undefined): number => (text === undefined ? 0 : (parseDurationMs(text) ?? 0));

async function inputOf(given: string | DocumentInput, find: FindFile): Promise<Input> {
  const input: DocumentInput = typeof given === "string" ? { file: given } : given;
  const { file, text, blob, tree, link, from, output, executable } = input;
  const path = input.path ?? file ?? output ?? "";
  const isExecutable = executable ?? false;
  if (text !== undefined) return { path, isExecutable, source: { kind: "contents", value: Buffer.from(text) } };
  if (blob !== undefined) return { path, isExecutable, source: { kind: "blob", value: blob } };
  if (tree !== undefined) return { path, isExecutable, source: { kind: "tree", value: tree } };
  if (link !== undefined) return { path, isExecutable, source: { kind: "link", value: link } };
  if (from !== undefined)
    return { path, isExecutable, source: { kind: "output", value: { action: from, path: output ?? path } } };
  const found = await find(file ?? "");
  if (found.kind === "tree") return { path, isExecutable, source: { kind: "tree", value: found.digest } };
  return { path, isExecutable: executable ?? found.isExecutable, source: { kind: "blob", value: found.digest } };
}

/** Sorted by name: equal settings give the same action, in whatever order they are written. */
const pairs = (words: Readonly<Record<string, string>>): readonly Pair[] =>
  Object.entries(words)
    .map(([name, value]) => ({ name, value }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
