/** Finds what a query names, and has it here as files for the engine, wherever it lies. */
import { Fault } from "#base/fault.ts";
import type { SourceFile } from "#doors/batch/plan/source.ts";
import type { Grant } from "./grant-config.ts";
import { filesMax, nodeFiles } from "./node-files.ts";
import type { Objects } from "./objects.ts";
import { resolveName, type Asker } from "./resolve.ts";

/** A plan needs to know about a file; a task reads it. */
export type Need = "plan" | "task";

export type HeldFiles = Disposable & {
  /** Where the engine reads the file. */
  readonly pathOf: (file: SourceFile) => string;
  /** The same text with the names that the query knows. */
  readonly named: (text: string) => string;
};

export type SourceFiles = {
  readonly find: (patterns: readonly string[], signal: AbortSignal) => Promise<readonly SourceFile[]>;
  readonly hold: (files: readonly SourceFile[], need: Need, signal: AbortSignal) => Promise<HeldFiles>;
};

export type FilesPorts = { readonly grants: readonly Grant[]; readonly objects?: Objects | undefined };

export const sourceFiles = (asker: Asker, { grants, objects }: FilesPorts): SourceFiles => ({
  async find(patterns, signal) {
    const files: SourceFile[] = [];
    for (const pattern of patterns) {
      const place = resolveName(pattern, asker, grants);
      const found =
        place.kind === "file"
          ? await nodeFiles(place.path, place.within)
          : await objectsOf(objects).find(place, asker.tenant, signal);
      if (found.length === 0)
        throw new Fault("not-found", "find files", {
          pattern,
          ...(!asker.isGranted && { folder: asker.folder }),
          why: "no file has such a name",
        });
      for (const file of found) files.push(file);
      if (files.length > filesMax) throw new Fault("exhausted", "find files", { pattern, filesMax });
    }
    return files;
  },
  async hold(files, need, signal) {
    const far = files.filter(({ object }) => object);
    if (far.length === 0) return nothingFar;
    const held = await objectsOf(objects).hold(far, { asker, grants, need, signal });
    const names = far.map((file) => [held.pathOf(file), file.path] as const);
    return {
      pathOf: (file) => (file.object ? held.pathOf(file) : file.path),
      named: (text) => names.reduce((all, [path, name]) => all.replaceAll(path, name), text),
      [Symbol.dispose]: () => held[Symbol.dispose](),
    };
  },
});

const nothingFar: HeldFiles = {
  pathOf: ({ path }) => path,
  named: (text) => text,
  [Symbol.dispose]() {},
};

function objectsOf(objects: Objects | undefined): Objects {
  if (objects) return objects;
  throw new Fault("unavailable", "find files", { why: "buckets are not read here" });
}
