/** Serves /v1/jobs/{job}/socket from the route that watches a job: who may see what is decided there. */
import type { z } from "zod";
import { must } from "#base/assert.ts";
import { jobSocket } from "#api/job-socket.ts";
import { watchJob, type JobDetails } from "#api/jobs.ts";
import { route, type Reply, type Route } from "#http/route.ts";
import type { ServerEvent } from "#http/live/sse.ts";

type Watched = Reply<AsyncIterable<ServerEvent<z.input<typeof JobDetails>>>>;

export function jobSocketRoutes(jobs: readonly Route[]): readonly Route[] {
  const { handle } = must(
    jobs.find(({ name }) => name === watchJob.name),
    "the route that watches a job",
  );
  return [
    route(jobSocket, async (call) => {
      const { body: changes } = (await handle(call)) as Watched; // a missing job refuses the upgrade with 404
      return {
        async body({ messages, send, signal }) {
          let latest: z.input<typeof JobDetails> | undefined;
          const answering = (async () => {
            for await (const _refresh of messages) if (latest) await send({ kind: "job", job: latest });
          })();
          answering.catch(() => {}); // the connection has gone, which ends the loop below as well
          for await (const { data } of changes) {
            if (signal.aborted) return;
            latest = data;
            await send({ kind: "job", job: data });
          }
          await send({ kind: "end" });
        },
      };
    }),
  ];
}
