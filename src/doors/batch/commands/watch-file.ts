import { watch } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { ExitCode, World } from "#door/command.ts";

/** Runs once now, and once for each change of the file. Editors replace files, so its folder is watched. */
export async function againOnChange(file: string, run: () => Promise<ExitCode>, world: World): Promise<ExitCode> {
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  process.once("SIGINT", stop);
  const safely = async (): Promise<void> => {
    await run().catch((error: unknown) => world.note(error instanceof Error ? error.message : String(error)));
    world.note(`waiting for changes of ${file}; Ctrl-C ends this`);
  };
  try {
    await safely();
    const path = resolve(file);
    for await (const { filename } of watch(dirname(path), { signal: abort.signal, overflow: "ignore" }))
      if (filename === basename(path)) await safely();
  } catch (error) {
    if (!abort.signal.aborted) throw error;
  } finally {
    process.off("SIGINT", stop);
  }
  return 0;
}
