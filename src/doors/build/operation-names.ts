/** `[instance/]operations/<job>`: says all by itself where the operation is kept, so that any node can look. Pure. */
import { parseJob } from "#base/ids.ts";
import { checkedInstance } from "./names.ts";
import { invalid, notFound } from "./refusals.ts";

export type OperationName = { readonly instance: string; readonly jobId: string };

const word = "operations";
const nameLengthMax = 400;

export const operationName = (instance: string, jobId: string): string =>
  instance === "" ? `${word}/${jobId}` : `${instance}/${word}/${jobId}`;

/** 50: a name that can be none of ours is not found; clients begin anew then. */
export function parseOperationName(name: string): OperationName {
  const parts = name.split("/");
  const jobId = parts.at(-1) ?? "";
  if (name.length > nameLengthMax || parts.at(-2) !== word || !parseJob(jobId))
    throw notFound(`there is no operation ${JSON.stringify(name.slice(0, 200))}`);
  return { instance: checkedInstance(parts.slice(0, -2).join("/")), jobId };
}

/** Of a collection: `[instance/]operations`, or the instance alone. */
export function parseCollection(name: string): string {
  if (name.length > nameLengthMax) throw invalid("the name is too long");
  const parts = name.split("/");
  if (parts.at(-1) === word) parts.pop();
  return checkedInstance(parts.join("/"));
}
