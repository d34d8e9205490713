/** A machine's neighbours, on its disk: after a start without any node a halt still finds its way. */
import { join } from "node:path";
import { z } from "zod";
import { readIfThere, writeDurably } from "#doors/deploy/agent/durable-files.ts";

const Kept = z.object({
  address: z.string(),
  secret: z.object({ epoch: z.int(), secret: z.string() }),
  tickets: z.array(
    z.object({
      peer: z.string(),
      address: z.string(),
      identity: z.string(),
      key: z.string(),
      distance: z.enum(["rack", "region"]),
    }),
  ),
});
export type KeptNeighbours = z.output<typeof Kept>;

const pathIn = (folder: string): string => join(folder, "neighbours.json");

export async function readKept(folder: string): Promise<KeptNeighbours | undefined> {
  const text = await readIfThere(pathIn(folder));
  return text === undefined ? undefined : Kept.safeParse(JSON.parse(text)).data;
}

export const writeKept = async (folder: string, kept: KeptNeighbours): Promise<void> =>
  await writeDurably(pathIn(folder), JSON.stringify(kept));
