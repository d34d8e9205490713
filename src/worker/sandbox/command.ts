/** What is run for an attempt, and what is told of its end. */
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
  /** Of each stream. */
  readonly outputBytesMax: number;
  readonly readOnly?: readonly (readonly [string, string])[];
  /** What a later life of this node has to know to go on with it, for `adopt`. */
  readonly note?: string;
  /** Pipes that it reads from and prints to, in place of nothing and a file. */
  readonly talk?: { readonly stdin: string; readonly stdout: string };
  /** How long it goes on when this node dies; for what is left of the lease, unless said. */
  readonly orphanMs?: number;
};

export type Ran = End & {
  readonly sandbox: Isolation["kind"];
  /** For people: why it ended as it did, where the exit code does not say. */
  readonly message?: string;
};
