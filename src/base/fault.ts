/**
 * A failure of the environment, as opposed to a refused command (a value) or a bug (a failed assertion). Printed as
 * `<doing>: <code> (<facts>)`; the cause is kept for the log.
 */
export type FaultCode =
  | "not-found"
  | "stale"
  | "invalid"
  | "exhausted"
  | "unavailable"
  | "unknown-outcome"
  | "corrupt"
  | "internal";

export type FaultFacts = Readonly<Record<string, string | number | boolean | undefined>>;

export class Fault extends Error {
  readonly code: FaultCode;
  readonly doing: string;
  readonly facts: FaultFacts;

  constructor(code: FaultCode, doing: string, facts: FaultFacts = {}, cause?: unknown) {
    super(describe(code, doing, facts), cause === undefined ? undefined : { cause });
    this.name = "Fault";
    this.code = code;
    this.doing = doing;
    this.facts = facts;
  }
}

export const isFault = (error: unknown, code?: FaultCode): error is Fault =>
  error instanceof Fault && (code === undefined || error.code === code);

function describe(code: FaultCode, doing: string, facts: FaultFacts): string {
  const shown = Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
  return shown === "" ? `${doing}: ${code}` : `${doing}: ${code} (${shown})`;
}
