/** Answers what executors elsewhere ask about tasks that they hold (millrace.work.v1.Tasks). */
import type { Action } from "#access/policy.ts";
import type { TaskAnswer } from "#door/door.ts";
import type { Admission, Admitted } from "#edge/port/admission.ts";
import type { GrpcServer } from "#grpc/server.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Issuer } from "#issuer/issuer.ts";
import { tokenMsMax } from "#issuer/issuer.ts";
import { Tasks } from "#wire/generated/millrace/work/v1/tasks.ts";
import { HeldClaims, type HeldPorts } from "./held-claims.ts";
import { withStatus } from "./stream-service.ts";
import { taskToken } from "./task-access.ts";

export type TaskServicePorts = HeldPorts & {
  readonly issuer: Issuer;
  /** Of doors, by question: its first word is the door's name. */
  readonly answers: Readonly<Record<string, TaskAnswer>>;
};

const bodyLengthMax = 64 * 1024;

export function serveTasks(
  server: GrpcServer<Admitted>,
  admission: Admission,
  { issuer, answers, ...ports }: TaskServicePorts,
): ReadonlyMap<string, Action> {
  const held = new HeldClaims(admission, ports);
  const access: TaskAnswer = async (claim) => await taskToken(issuer, claim, tokenMsMax);
  server.add(Tasks, {
    async ask({ question, body, ...named }, { caller }) {
      if (body.length > bodyLengthMax)
        throw new GrpcError(grpcCode.invalidArgument, `body has at most ${bodyLengthMax} characters`);
      const { claim, door } = await held.require(caller, named);
      const ofDoor =
        question.startsWith(`${door}.`) && Object.hasOwn(answers, question) ? answers[question] : undefined;
      const answer = question === "access" ? access : ofDoor;
      if (!answer)
        throw new GrpcError(grpcCode.unimplemented, `${door} answers no such question: ${question.slice(0, 50)}`);
      return { body: JSON.stringify(await withStatus(answer(claim, jsonIn(body)))) };
    },
  });
  return new Map(Object.values(Tasks.methods).map(({ path }) => [path, "service.describe"] as const));
}

function jsonIn(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new GrpcError(grpcCode.invalidArgument, "body: not JSON");
  }
}
