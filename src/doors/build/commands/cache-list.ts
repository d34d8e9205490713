import type { EntryPage } from "#blobs/action-index.ts";
import { formatDuration } from "#base/units.ts";
import { cacheFlags, CacheServer } from "./cache-server.ts";
import { command } from "#door/command.ts";
import { tableLines } from "#door/table.ts";

export const cacheList = command({
  name: "cache ls",
  about: "List named entries: results of actions, keys of build tools; who wrote them and when.",
  words: "[space]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...cacheFlags,
    limit: { type: "string", value: "NUMBER", about: "at most so many (100)" },
    after: { type: "string", value: "CURSOR", about: "go on where the last list ended" },
  },
  examples: ["millrace cache ls", "millrace cache ls gradle --limit 10"],
  async run({ positionals: [space], values }, world) {
    const query = { space, limit: values.limit, after: values.after };
    const { entries, next } = await (await CacheServer.find(values, world)).json<EntryPage>("GET", "entries", query);
    if (values.json) for (const entry of entries) world.out(JSON.stringify(entry));
    else if (entries.length === 0) world.out("nothing here");
    else {
      const ago = (atMs: number): string => `${formatDuration(Date.now() - atMs)} ago`;
      const rows = entries.map((entry) => [entry.space, entry.name, entry.digest, entry.principal, ago(entry.atMs)]);
      for (const line of tableLines(["SPACE", "NAME", "DIGEST", "WRITTEN BY", "WRITTEN"], rows)) world.out(line);
    }
    if (next === undefined) return 0;
    if (values.json) world.out(JSON.stringify({ kind: "more", after: next }));
    else world.note(`more: millrace cache ls ${space === undefined ? "" : `${space} `}--after ${next}`);
    return 0;
  },
});
