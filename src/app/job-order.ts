/** From a job file or a command line to a submission, by the door that takes such documents. */
import { assert } from "#base/assert.ts";
import type { JobDocuments, Wishes } from "#door/door.ts";
import { readChecked } from "#door/yaml-file.ts";
import type { Order } from "#shard/client/client.ts";
import { doors } from "./doors.ts";

export async function orderFromFile(path: string, wishes: Wishes): Promise<Order> {
  const { schema, plan } = documents();
  return plan(await readChecked(path, schema, "read job file"), wishes);
}

export function orderFromCommand(command: readonly string[], wishes: Wishes): Order {
  const { schema, plan, fromCommand } = documents();
  return plan(schema.parse(fromCommand(command)), wishes);
}

type CommandDocuments = JobDocuments & { readonly fromCommand: NonNullable<JobDocuments["fromCommand"]> };

function documents(): CommandDocuments {
  const [first] = doors.flatMap(({ documents: own }) => (own?.fromCommand ? [own as CommandDocuments] : []));
  assert(first !== undefined, "no door takes command lines");
  return first;
}
