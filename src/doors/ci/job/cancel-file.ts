/** The node asks to cancel by a file: a signal would not reach into every sandbox. */
import { existsSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { names } from "./request.ts";

const lookMs = 500;

export function watchCancel(folder: string): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const look = (): void => {
    if (existsSync(join(folder, names.cancel))) controller.abort();
  };
  const watcher = watch(folder, look);
  watcher.on("error", () => {}); // then the timer alone looks
  const timer = setInterval(look, lookMs);
  look();
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      watcher.close();
      clearInterval(timer);
    },
  };
}

/** A job may have put anything there: nothing that exists is followed or changed. */
export function askToCancel(folder: string): void {
  try {
    writeFileSync(join(folder, names.cancel), "", { flag: "wx", mode: 0o644 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}
