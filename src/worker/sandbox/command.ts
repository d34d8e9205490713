/** What is run for an attempt, and how it ended. */
import type { End, Limits } from "#worker/process/protocol.ts";
import type { Isolation } from "./isolation.ts";

export type Command = {
  readonly tag: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Below the attempt's root; "" is the root. It must exist, and no part of it may be a symbolic link. */
  readonly workingDirectory: string;
  readonly network: boolean;
  readonly limits: Limits;
  readonly timeoutMs: number;
  readonly leaseMs: number;
  /** Per stream. */
  readonly outputBytesMax: number;
  readonly readOnly?: readonly (readonly [string, string])[];
  /** What a later process of this node needs to continue it, for `adopt`. */
  readonly note?: string;
  /** Pipes for its stdin and stdout, instead of nothing and a file. */
  readonly talk?: { readonly stdin: string; readonly stdout: string };
  /** How long it continues if this node dies; if left out, the rest of the lease. */
  readonly orphanMs?: number;
};

export type Ran = End & {
  readonly sandbox: Isolation["kind"];
  /** For people: why it ended, if the exit code does not say. */
  readonly message?: string;
};
