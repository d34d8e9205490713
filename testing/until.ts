import { setTimeout as pause } from "node:timers/promises";

/**
 * Waits for a state, never for a time: resolves as soon as `holds` says so, and fails, naming what it
 * waited for, when it has not by the limit.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { limitMs = 60_000, everyMs = 10 }: { limitMs?: number; everyMs?: number } = {},
): Promise<void> {
  const startedMonoMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - startedMonoMs > limitMs) throw new Error(`waited ${limitMs} ms in vain until ${what}`);
    await pause(everyMs);
  }
}
