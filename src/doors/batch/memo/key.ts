/**
 * Pure: what decides a task's output, and nothing else. Two tasks with one key write the same bytes, whichever query,
 * job or day they belong to.
 *
 * BM1 A key holds the engine, the SQL, the part that is taken and the identity of every input. What is not a function
 *     of these (random numbers, the time) has no key.
 */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import type { StageDocument } from "#doors/batch/documents.ts";
import type { SourceFile, Split } from "#doors/batch/plan/source.ts";
import { canonicalText } from "#doors/batch/plan/stage.ts";
import { packRange, type Slice } from "#doors/batch/plan/tasks.ts";

export type TaskKey = {
  readonly key: string;
  /** The same work on inputs of the same names, whatever is in them: where a task looks what it differs in. */
  readonly slot: string;
  /** Identities of the inputs by name. */
  readonly inputs: Readonly<Record<string, string>>;
};

export type KeyInputs = {
  readonly identityOf: (file: SourceFile) => string;
  /** By stage: the packs that it wrote, in order. */
  readonly packs: ReadonlyMap<string, readonly Digest[]>;
};

/** Undefined for what may come out otherwise when it is run again. */
export function taskKey(document: StageDocument, part: number, { identityOf, packs }: KeyInputs): TaskKey | undefined {
  const { engine, stage, sources, parts, packs: form } = document;
  const what = parts[part];
  const branch = what && stage.branches[what.branch];
  if (!branch || isVolatile(branch.sql) || stage.map?.function.isDeterministic === false) return undefined;
  let sql = [branch.sql, ...Object.values(branch.plain ?? {})].join(";");
  const inputs: Record<string, string> = {};
  const taken = branch.inputs.map((input, i) => {
    // Names of inputs hold ids of stages, which hold identities of files that this task may not read.
    sql = sql.replaceAll(input.name, `in${i}`);
    if (input.from === "stage") {
      const isPart = input.take === "part";
      const range = isPart ? packRange(what.slice, input.stage) : undefined;
      const taken = packs.get(input.stage) ?? [];
      inputs[`input ${i}`] = sha256((range ? taken.slice(range.from, range.to) : taken).join("\n"));
      const types = document.inputs[input.stage]?.types;
      return { types, slice: isPart ? withoutPacks(what.slice) : { by: "all" } };
    }
    const source = sources[input.source];
    const split: Split =
      input.take === "part" && what.slice.by === "source"
        ? what.slice.split
        : (source?.files ?? []).map((_, file) => ({ file }));
    const files = split.map(({ file, rows, bytes }) => {
      const one = source?.files[file];
      if (one) inputs[one.path] = identityOf(one);
      return { path: one?.path, rows, bytes };
    });
    return { format: source?.format, options: source?.options, columns: source?.columns, files };
  });
  const { types, output, map } = stage;
  const slot = sha256(
    canonicalText({ version: 1, engine, sql, types, output, taken, ...(map && { map }), ...(form && { form }) }),
  );
  return { slot, inputs, key: sha256(canonicalText({ slot, inputs })) };
}

/** Which packs are taken is in their digests; ids of stages hold what this task may not read. */
function withoutPacks(slice: Slice): unknown {
  if (slice.by === "pack") return { by: "pack" };
  return slice.by === "partition" ? { by: "partition", from: slice.from, to: slice.to } : slice;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const volatile = new RegExp(
  [
    "\\b(random|setseed|uuid|uuidv4|uuidv7|gen_random_uuid|now|today|current_\\w+|get_current_\\w+|localtime\\w*",
    "transaction_timestamp|nextval|currval|txid_current|tablesample|using\\s+sample|version|getvariable|age)\\b",
  ].join("|"),
  "i",
);

/** More than needed at worst: a column of such a name only costs the reuse. */
export const isVolatile = (sql: string): boolean => volatile.test(sql);

const shownMax = 3;

/** What a task differs in from the last one in its slot, in a few words. */
export function differences(now: TaskKey["inputs"], before: TaskKey["inputs"] | undefined): string {
  if (!before) return "it was not computed before";
  const changed = Object.keys(now).filter((name) => now[name] !== before[name]);
  const names = changed.slice(0, shownMax).join(", ");
  const more = changed.length > shownMax ? ` and ${changed.length - shownMax} more` : "";
  return changed.length === 0 ? "its earlier result is gone" : `changed: ${names}${more}`;
}
