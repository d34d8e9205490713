import type { FaultCode } from "#base/fault.ts";

/** What each fault code means to its reader, for docs/reference/errors.md. */
export const faultCodes = {
  "not-found": { about: "The thing is not there.", remedy: "Check its name; for a blob, make it again." },
  stale: { about: "Another owner has taken over since.", remedy: "Ask again; the new owner answers." },
  invalid: { about: "The input is wrong.", remedy: "Correct it; the message names the place." },
  exhausted: { about: "A limit is reached.", remedy: "Try again later, or with less." },
  unavailable: {
    about: "It could not be reached, and certainly nothing was done.",
    remedy: "Try again; look at `millrace nodes` and `millrace shards`.",
  },
  "unknown-outcome": {
    about: "The connection was lost on the way: it may or may not have been done.",
    remedy: "Repeat the same request: every command may be repeated, and is done once.",
  },
  corrupt: {
    about: "What was read is not what was written.",
    remedy: "Stop, keep the files, and look at the disk: this is never repaired in silence.",
  },
  internal: { about: "A bug of ours.", remedy: "Please report it, with the message." },
} as const satisfies Record<FaultCode, { readonly about: string; readonly remedy: string }>;
