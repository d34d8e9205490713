import type { ChildProcess } from "node:child_process";

/** Sends the signal and waits for the end; returns at once if there is no process. */
export async function endChild(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("close", resolve));
  child.kill(signal);
  await ended;
}
