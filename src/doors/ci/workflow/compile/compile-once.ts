/**
 * Compiles as `compile` does, and remembers the last results: the same file is compiled for each event, run and job.
 * A result counts as long as the file and all files that it calls are the same.
 */
import { Recent } from "#base/recent.ts";
import { compile, type Compiled } from "./compile.ts";
import type { CompileOptions, SourceFile } from "./file.ts";

type Called = NonNullable<CompileOptions["called"]>;

type Remembered = {
  readonly compiled: Compiled;
  readonly calls: readonly { readonly uses: string; readonly caller: string; readonly found: ReturnType<Called> }[];
};

/** A compiled file takes about so many times the memory of its text. */
const bytesPerCharacter = 20;
const entryBytes = 2_000;
const remembered = new Recent<Remembered>(64 << 20);

export function compileOnce(file: SourceFile, called?: Called): Compiled {
  const key = `${called ? "calls" : "alone"}\0${file.path}\0${file.text}`;
  const before = remembered.get(key);
  // `called` is asked in any case: callers note what it is asked for
  if (before?.calls.every(({ uses, caller, found }) => isSame(called?.(uses, caller), found))) return before.compiled;
  const calls: Remembered["calls"][number][] = [];
  const asked: Called = (uses, caller) => {
    const found = called?.(uses, caller);
    calls.push({ uses, caller, found });
    return found;
  };
  const compiled = compile(file, called && { called: asked });
  const length = calls.reduce(
    (sum, { found }) => sum + (typeof found === "object" ? found.text.length : 0),
    file.text.length,
  );
  remembered.set(key, { compiled, calls }, entryBytes + length * bytesPerCharacter);
  return compiled;
}

function isSame(one: ReturnType<Called>, other: ReturnType<Called>): boolean {
  if (typeof one !== "object" || typeof other !== "object") return one === other;
  return one.path === other.path && one.text === other.text;
}
