/** What a caller submits to this door: a command line, or what a job file says. Planned here, on the server. */
import type { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { Order } from "#shard/client/client.ts";
import { commandJob, planSubmit, type Wishes } from "./plan.ts";
import { ShellJob } from "./request.ts";

export type SubmitRequest = {
  readonly command?: readonly string[] | undefined;
  /** A job file: its text, or what is in it. */
  readonly document?: string | object | undefined;
  readonly name?: string | undefined;
};

/** Checks a document against a schema; what is wrong is a Fault "invalid" that names the place. */
export type ReadDocument = <S extends z.ZodType>(document: string | object, schema: S) => z.output<S>;

export function planRequest({ command, document, name }: SubmitRequest, wishes: Wishes, read: ReadDocument): Order {
  if ((command === undefined) === (document === undefined))
    throw new Fault("invalid", "submit job", { why: "send a command or a document, one of them" });
  const given = command === undefined ? (document ?? {}) : (commandJob(command, name) as object);
  const job = read(given, ShellJob);
  return planSubmit(name === undefined ? job : { ...job, name }, wishes);
}
