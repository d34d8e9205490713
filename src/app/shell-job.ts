/** From a job file or a command line to a submission, for those who may not know the doors themselves. */
import { randomUUID } from "node:crypto";
import { commandJob, planSubmit } from "#doors/shell/plan.ts";
import { ShellJob } from "#doors/shell/request.ts";
import type { Order } from "#shard/client/client.ts";
import { readChecked } from "./config/yaml-file.ts";

export type SubmitWishes = {
  readonly tenant: string;
  readonly name?: string;
  readonly priority?: number;
  readonly key?: string;
  readonly merge?: string;
};

export async function orderFromFile(path: string, { name, ...wishes }: SubmitWishes): Promise<Order> {
  const job = await readChecked(path, ShellJob, "read job file");
  return planSubmit(name === undefined ? job : { ...job, name }, { ...wishes, unique: randomUUID() });
}

export const orderFromCommand = (command: readonly string[], { name, ...wishes }: SubmitWishes): Order =>
  planSubmit(ShellJob.parse(commandJob(command, name)), { ...wishes, unique: randomUUID() });
