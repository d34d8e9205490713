/** Asks a node about tasks that this worker holds. */
import { Fault } from "#base/fault.ts";
import { asFault } from "#blobs/tiers/reapi/reapi-fault.ts";
import type { PlaceElsewhere } from "#door/ports.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { Tasks } from "#wire/generated/millrace/work/v1/tasks.ts";

const callMs = 60_000;

export const remoteAsk =
  (client: GrpcClient, executor: string): PlaceElsewhere["ask"] =>
  async ({ taskId: task, token }, question, body) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    try {
      const request = { executor, task, token, question, body: text };
      const answer = await client.unary(Tasks.methods.ask, request, { deadlineMs: callMs });
      return JSON.parse(answer.body) as unknown;
    } catch (error) {
      const doing = `ask for ${question}`;
      if (error instanceof GrpcError && error.code === grpcCode.failedPrecondition)
        throw new Fault("stale", doing, { why: error.message }, error);
      throw asFault(error, doing);
    }
  };
