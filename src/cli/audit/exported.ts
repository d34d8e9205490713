/** The lines of an exported trail, from a node or a file. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream as WebStream } from "node:stream/web";
import type { ServerFlagValues, World } from "#door/command.ts";

type Wanted = ServerFlagValues & { readonly tenant?: string; readonly cluster?: boolean };

export async function* exportedLines(values: Wanted, world: World): AsyncIterable<string> {
  const { askServer, serverOf } = await import("#app/client/server.ts");
  const { tenant, cluster } = values;
  const query = new URLSearchParams({
    trail: cluster === true ? "cluster" : "tenant",
    ...(tenant !== undefined && { tenant }),
  });
  const path = `/v1/audit/export?${query.toString()}`;
  const { body } = await askServer(serverOf(values, world.env), path, "export the audit trail");
  if (body) yield* linesOf(Readable.fromWeb(body as WebStream<Uint8Array>));
}

export const fileLines = (path: string): AsyncIterable<string> => linesOf(createReadStream(path));

async function* linesOf(stream: Readable): AsyncIterable<string> {
  for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) if (line !== "") yield line;
}
