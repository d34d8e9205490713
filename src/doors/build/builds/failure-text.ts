/** A failed attempt stores one text: the failure for people, and where the whole answer is for programs. Pure. */
import type { Digest } from "#base/digest.ts";
import type { AnswerAt } from "#doors/build/run/outcome.ts";

const textLengthMax = 1_700;

export function failureText(text: string, action: Digest, answer: AnswerAt): string {
  const at = "response" in answer ? `response ${answer.response}` : `result ${answer.result}`;
  return `${text.slice(0, textLengthMax)} [action ${action}, ${at}]`;
}

export type Failure = { readonly text: string; readonly action: Digest; readonly answer?: AnswerAt };

const shape = /^(.*) \[action (\S+), (response|result) (\S+)\]$/s;

/** History puts the kind of the failure in front. */
const kinds = /^(?:executor-lost|preempted|timed-out|out-of-memory|input-lost|user-failure|cancelled): /;

export function readFailure(message: string): Failure {
  const bare = message.replace(kinds, "");
  const [, text = bare, action = "", kind, digest] = shape.exec(bare) ?? [];
  if (digest === undefined) return { text, action };
  return { text, action, answer: kind === "result" ? { result: digest } : { response: digest } };
}
