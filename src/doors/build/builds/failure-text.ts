/** A failed attempt keeps one text: what went wrong for people, and where the whole answer is for programs. Pure. */
import type { Digest } from "#base/digest.ts";

const textLengthMax = 1_700;

export const failureText = (text: string, action: Digest, response: Digest): string =>
  `${text.slice(0, textLengthMax)} [action ${action}, response ${response}]`;

export type Failure = { readonly text: string; readonly action: Digest; readonly response: Digest };

const shape = /^(.*) \[action (\S+), response (\S+)\]$/s;

/** What history tells begins with the kind of the failure. */
const kinds = /^(?:executor-lost|preempted|timed-out|out-of-memory|input-lost|user-failure|cancelled): /;

export function readFailure(message: string): Failure {
  const told = message.replace(kinds, "");
  const [, text = told, action = "", response = ""] = shape.exec(told) ?? [];
  return { text, action, response };
}
