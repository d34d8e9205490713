/** Where the output of an action is when it has ended: its answer names what it printed. */
import { digestText, parseDigest, type Digest } from "#base/digest.ts";
import type { Store } from "#blobs/store.ts";
import { readFailure } from "#doors/build/builds/failure-text.ts";
import { readAnswer, readOutcome, type AnswerAt } from "#doors/build/run/outcome.ts";
import type { AttemptEnd, PrintedByDoor } from "#worker/follow/printed.ts";

export const actionPrinted = (store: Store): PrintedByDoor => ({
  names: ["stdout", "stderr"],
  async find(end, tenant) {
    const found = answerOf(end);
    if (!found) return undefined;
    const { blobs } = store.forTenant(tenant);
    const { result } = await readAnswer(found, blobs);
    const { fn = "sha256" } = parseDigest(found.action) ?? {};
    const wires = { stdout: result?.stdoutDigest, stderr: result?.stderrDigest };
    const streams = Object.entries(wires).flatMap(([name, wire]) =>
      wire && wire.sizeBytes > 0 ? [[name, digestText(fn, wire.hash, wire.sizeBytes)] as const] : [],
    );
    return { token: found.token, streams: Object.fromEntries(streams), blobs };
  },
});

type Found = AnswerAt & { readonly action: Digest; readonly token?: number | undefined };

function answerOf(end: AttemptEnd): Found | undefined {
  if ("result" in end) return readOutcome(end.result);
  const { action, answer } = readFailure(end.failure);
  return answer && { ...answer, action };
}
