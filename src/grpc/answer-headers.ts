/** The constant headers at the start of every answer and, after a success, at its end. */
import { ConstantHeaders } from "#h2/hpack/hpack-encoder.ts";

export const answerFields: readonly (readonly [string, string])[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];

export const okHeaders = new ConstantHeaders(answerFields);
export const okTrailers = new ConstantHeaders([["grpc-status", "0"]]);
