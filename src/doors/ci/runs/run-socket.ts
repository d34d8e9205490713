/** A run over a WebSocket: its jobs and steps, whenever something has changed. */
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { RunDetails, RunSocketSends } from "#doors/ci/endpoints.ts";

/** Changes closer together than this are one message. */
const pauseMs = 200;

type Connection = {
  readonly messages: AsyncIterable<unknown>;
  readonly send: (message: z.input<typeof RunSocketSends>) => Promise<void>;
  readonly signal: AbortSignal;
};

export async function tellRun(
  { client, clock }: { readonly client: Pick<WorkClient, "watch">; readonly clock: Pick<Clock, "sleep"> },
  { run, look }: { readonly run: string; readonly look: () => Promise<z.input<typeof RunDetails>> },
  { messages, send, signal }: Connection,
): Promise<void> {
  let latest: z.input<typeof RunDetails> | undefined;
  let sent = "";
  const answering = (async () => {
    for await (const _refresh of messages) if (latest) await send({ kind: "run", run: latest });
  })();
  answering.catch(() => {}); // the connection has gone, which ends the loop below as well
  const tell = async (): Promise<boolean> => {
    latest = await look();
    const text = JSON.stringify(latest);
    if (text !== sent) await send({ kind: "run", run: latest });
    sent = text;
    return latest.status === "completed";
  };
  for await (const message of client.watch(run, signal)) {
    if (message.kind === "heartbeat") continue;
    if (await tell()) break;
    await clock.sleep(pauseMs, signal);
  }
  if (signal.aborted) return;
  await tell();
  await send({ kind: "end" });
}
