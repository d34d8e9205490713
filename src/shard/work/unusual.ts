import { Fault } from "#base/fault.ts";

/**
 * Called by the fast decoders for a request that is not of the usual form. The generated decoder then reads it again
 * and says what it means, or what is wrong with it.
 */
export function unusual(): never {
  throw new Fault("invalid", "read request", { why: "not a fast-path request; use the generated decoder" });
}
