/**
 * One GET within limits of time and size; redirects are refused, because they would bypass the check of the address.
 */
import { Deadline } from "#base/calls/abort.ts";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";

export type FetchTextLimits = { readonly timeoutMs: number; readonly sizeBytesMax: number };

export async function fetchText(
  url: string,
  { timeoutMs, sizeBytesMax }: FetchTextLimits,
  clock: Clock,
): Promise<string> {
  const doing = "fetch an issuer's keys";
  using deadline = new Deadline(
    clock,
    timeoutMs,
    undefined,
    () => new Fault("unavailable", doing, { url, timeoutMs, why: "no complete answer in time" }),
  );
  try {
    const headers = { accept: "application/json" };
    const answer = await fetch(url, { redirect: "error", signal: deadline.signal, headers });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new Fault("unavailable", doing, { url, status: answer.status, why: "the issuer did not answer with keys" });
    }
    return await readAtMost(answer, sizeBytesMax, { doing, url });
  } catch (error) {
    if (isFault(error)) throw error;
    throw new Fault("unavailable", doing, { url, why: "the issuer cannot be reached" }, error);
  }
}

async function readAtMost(
  answer: Response,
  sizeBytesMax: number,
  { doing, url }: { readonly doing: string; readonly url: string },
): Promise<string> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of answer.body ?? []) {
    sizeBytes += piece.length;
    // Leaving the loop cancels the rest of the answer.
    if (sizeBytes > sizeBytesMax)
      throw new Fault("exhausted", doing, { url, sizeBytesMax, why: "the answer is longer than keys should be" });
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
