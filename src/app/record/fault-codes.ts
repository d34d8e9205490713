import type { FaultCode } from "#base/fault.ts";

/** What each code means to the one who reads it, for docs/reference/errors.md. */
export const faultCodes = {
  "not-found": { about: "The thing is not there.", remedy: "Check its name; for a blob, make it again." },
  stale: { about: "Somebody else has taken over since.", remedy: "Ask again; the new owner answers." },
  invalid: { about: "What was given is wrong.", remedy: "Correct it; the message names the place." },
  exhausted: { about: "A limit is reached.", remedy: "Try again later, or with less." },
  unavailable: {
    about: "It could not be reached, and certainly nothing was done.",
    remedy: "Try again; look at `millrace nodes` and `millrace shards`.",
  },
  "unknown-outcome": {
    about: "The connection was lost on the way: it may or may not have been done.",
    remedy: "Ask again in the same words: every command may be repeated, and is done once.",
  },
  corrupt: {
    about: "What was read is not what was written.",
    remedy: "Stop, keep the files, and look at the disk: this is never repaired in silence.",
  },
  internal: { about: "A bug of ours.", remedy: "Please report it, with the message." },
} as const satisfies Record<FaultCode, { readonly about: string; readonly remedy: string }>;
