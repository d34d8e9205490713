/** Faults on the wire: code, doing and facts are sent; causes and stacks are not. */
import { Fault, isFault, type FaultCode, type FaultFacts } from "#base/fault.ts";

export type FaultBody = { readonly code: FaultCode; readonly doing: string; readonly facts: FaultFacts };

const codes = {
  "not-found": true,
  stale: true,
  invalid: true,
  exhausted: true,
  unavailable: true,
  "unknown-outcome": true,
  corrupt: true,
  internal: true,
} satisfies Record<FaultCode, true>;

/** What is not a Fault is an internal one: a mistake of our own. */
export const faultOf = (error: unknown, doing: string): Fault =>
  isFault(error)
    ? error
    : new Fault("internal", doing, { why: error instanceof Error ? error.message : String(error) });

export function writeFault(error: unknown, doing: string): FaultBody {
  const { code, doing: what, facts } = faultOf(error, doing);
  return { code, doing: what, facts };
}

export function readFault(body: FaultBody, from: string): Fault {
  const code = Object.hasOwn(codes, body.code) ? body.code : "internal";
  return new Fault(code, String(body.doing), { ...body.facts, from });
}
