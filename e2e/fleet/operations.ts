/** The outcome of a build's actions, as any node reports it. */
import { metadataOf, responseOf } from "#e2e/node/build/execution-lab.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { Operations, type Operation } from "#wire/generated/google/longrunning/operations.ts";

export async function operationsAt(client: GrpcClient): Promise<readonly Operation[]> {
  const all: Operation[] = [];
  for (let pageToken = ""; ;) {
    const page = await client.unary(Operations.methods.listOperations, {
      name: "operations",
      filter: "",
      pageSize: 100,
      pageToken,
    });
    all.push(...page.operations);
    pageToken = page.nextPageToken;
    if (pageToken === "") return all;
  }
}

/** How many actions each worker ran. */
export function spreadOf(operations: readonly Operation[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const operation of operations) {
    if (!operation.done) continue;
    const worker = responseOf(operation).result?.executionMetadata?.worker ?? "";
    counts.set(worker, (counts.get(worker) ?? 0) + 1);
  }
  return counts;
}

export const actionsOf = (operations: readonly Operation[]): readonly string[] =>
  operations.map((operation) => metadataOf(operation).actionDigest?.hash ?? "");
