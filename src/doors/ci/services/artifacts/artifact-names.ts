/** What an artifact may be called, and how long it stays. Pure. */
import { Problem } from "#http/problem.ts";
import type { ServiceLimits } from "#doors/ci/services/limits.ts";

const nameLengthMax = 256;
/** What no file system of a client can hold, and what would lead out of a folder. */
const forbidden = /["<>:|*?\\/\p{Cc}]/u;

export function checkArtifactName(name: string): void {
  const wrong =
    name === "" || name.length > nameLengthMax
      ? `it has 1 to ${nameLengthMax} characters`
      : forbidden.test(name) || !name.isWellFormed()
        ? 'it has none of " : < > | * ? \\ / and no control characters'
        : name === "." || name === ".."
          ? "it is the name of a file"
          : undefined;
  if (wrong !== undefined)
    throw new Problem(400, `the artifact name ${JSON.stringify(name.slice(0, 80))} is not valid: ${wrong}`);
}

/** When it ends: as asked for, at the latest after the longest time that is allowed. */
export function expiryOf(
  askedFor: string | undefined,
  nowMs: number,
  { retentionMsDefault, retentionMsMax }: Pick<ServiceLimits, "retentionMsDefault" | "retentionMsMax">,
): number {
  if (askedFor === undefined || askedFor === "") return nowMs + Math.min(retentionMsDefault, retentionMsMax);
  const atMs = Date.parse(askedFor);
  if (Number.isNaN(atMs)) throw new Problem(400, "expires_at: a time such as 2026-01-31T00:00:00Z is expected");
  if (atMs <= nowMs) throw new Problem(400, "expires_at: the time has passed already");
  return Math.min(atMs, nowMs + retentionMsMax);
}
