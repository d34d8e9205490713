/** From a job's document or a command line to a submission, by the door that takes such documents. */
import { Fault } from "#base/fault.ts";
import type { Door, JobDocuments, Wishes } from "#door/door.ts";
import { checkText, readChecked } from "#door/yaml-file.ts";
import type { Order } from "#shard/client/client.ts";
import { doors } from "./doors.ts";

const doing = "read job file";

/** A command line, or a document: the text of a YAML or JSON file, or its parsed value. */
export type JobRequest =
  | { readonly command: readonly string[]; readonly array?: number | undefined }
  | { readonly document: string | object; readonly command?: undefined };

/** Left out, the door is the first that takes command lines. */
export function planJob(request: JobRequest, wishes: Wishes, door?: string, of: readonly Door[] = doors): Order {
  const { schema, plan, fromCommand } = documentsOf(door, of);
  if (request.command === undefined) {
    const { document } = request;
    // JSON is YAML: a value that was parsed already is checked by the same code.
    const text = typeof document === "string" ? document : JSON.stringify(document);
    return plan(checkText(text, schema, { doing }), wishes);
  }
  if (fromCommand) return plan(schema.parse(fromCommand(request.command, request.array)), wishes);
  throw new Fault("invalid", "submit job", { door, why: "it takes no command lines" });
}

export async function orderFromFile(path: string, wishes: Wishes): Promise<Order> {
  const { schema, plan } = documentsOf(undefined, doors);
  return plan(await readChecked(path, schema, doing), wishes);
}

export const orderFromCommand = (command: readonly string[], wishes: Wishes): Order => planJob({ command }, wishes);

function documentsOf(door: string | undefined, of: readonly Door[]): JobDocuments {
  const isMeant = ({ name, documents }: Door): boolean =>
    door === undefined ? documents?.fromCommand !== undefined : name === door;
  const found = of.find(isMeant)?.documents;
  if (found) return found;
  const known = of.flatMap(({ name, documents }) => (documents ? [name] : [])).join(", ");
  throw new Fault("invalid", "submit job", { door, why: `it takes no documents of jobs; these do: ${known}` });
}
