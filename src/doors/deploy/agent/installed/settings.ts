/** What an installed agent knows from its installation, in its folder. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { writeDurably } from "#doors/deploy/agent/durable-files.ts";

export const Settings = z.strictObject({
  server: z.url(),
  /** PEM; left out: whom the machine trusts. */
  ca: z.string().optional(),
  machine: z.string(),
  region: z.string(),
  labels: z.array(z.string()),
  rack: z.string().optional(),
  peer: z.string().optional(),
  upload: z.string().optional(),
  /** The keys to trust, as PEM; left out: those of the node at the first start. */
  trusted: z.array(z.string()).optional(),
  /** The release of Millrace that the agent was installed from. */
  version: z.string(),
});
export type Settings = z.output<typeof Settings>;

const path = (root: string): string => join(root, "agent.json");
export const tokenFileIn = (root: string): string => join(root, "token");

export const writeSettings = async (root: string, settings: Settings): Promise<void> =>
  await writeDurably(path(root), JSON.stringify(settings));

export const readSettings = async (root: string): Promise<Settings> =>
  Settings.parse(JSON.parse(await readFile(path(root), "utf8")));
