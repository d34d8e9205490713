/** From a job file or a command line to a submission, for rooms that may not import doors. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { planRequest, type ReadDocument } from "#doors/shell/serve.ts";
import type { Order } from "#shard/client/client.ts";
import { checkText } from "./config/yaml-file.ts";

export type SubmitWishes = {
  readonly tenant: string;
  readonly name?: string;
  readonly priority?: number;
  readonly key?: string;
  readonly merge?: string;
};

/** JSON is YAML: a value that was parsed already is checked by the same code. */
export const readDocument: ReadDocument = (document, schema) =>
  checkText(typeof document === "string" ? document : JSON.stringify(document), schema, { doing: "read job file" });

export async function orderFromFile(path: string, { name, ...wishes }: SubmitWishes): Promise<Order> {
  const document = await readFile(path, "utf8");
  return planRequest({ document, name }, { ...wishes, unique: randomUUID() }, readDocument);
}

export const orderFromCommand = (command: readonly string[], { name, ...wishes }: SubmitWishes): Order =>
  planRequest({ command, name }, { ...wishes, unique: randomUUID() }, readDocument);
