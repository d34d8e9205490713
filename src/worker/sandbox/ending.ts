import type { End } from "#worker/process/protocol.ts";

const signals: Readonly<Record<number, string>> = {
  4: "SIGILL",
  6: "SIGABRT",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  15: "SIGTERM",
  25: "SIGXFSZ",
};

/** REAPI-84: what the exit code alone does not say. */
export function messageOf({ why, exitCode, outOfMemory }: End): string | undefined {
  if (outOfMemory) return "it exceeded its memory limit";
  if (why === "disk-full") return "the disk was nearly full, and it had written the most";
  if (why === "timed-out") return "it exceeded its time limit";
  if (why !== "exited") return `it was ended: ${why}`;
  const name = signals[exitCode - 128] ?? (exitCode > 128 && exitCode < 193 ? `signal ${exitCode - 128}` : undefined);
  return name === undefined ? undefined : `killed by ${name}, or its exit code says so`;
}
