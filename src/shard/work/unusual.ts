import { Fault } from "#base/fault.ts";

/**
 * For readers of requests as nearly all are: this one is not. What it means, or what is wrong with it, is for the
 * readers of generated messages to say, which read it once more.
 */
export function unusual(): never {
  throw new Fault("invalid", "read request", { why: "it is not as most are" });
}
