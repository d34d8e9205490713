import type { StoreStat } from "#blobs/upkeep.ts";
import { formatDuration, formatSize } from "#base/units.ts";
import { cacheFlags, CacheServer } from "./cache-server.ts";
import { command, type World } from "#door/command.ts";
import { fieldLines } from "#door/table.ts";

export const cacheStat = command({
  name: "cache stat",
  about: "Say how full a node's store is and what is in it.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: cacheFlags,
  examples: ["millrace cache stat", "millrace cache stat --server http://cache:8980 --json"],
  async run({ values }, world) {
    const stat = await (await CacheServer.find(values, world)).json<StoreStat>("GET", "stat");
    if (values.json) world.out(JSON.stringify(stat));
    else showStat(stat, world);
    return 0;
  },
});

export function showStat(stat: StoreStat, { out }: Pick<World, "out">): void {
  const { blobs, entries, usedBytes, reservedBytes, sizeBytesMax, indexBytes, oldestUseAtMs } = stat;
  const percent = sizeBytesMax > 0 ? ` (${Math.round((usedBytes / sizeBytesMax) * 100)}%)` : "";
  const evicted = `${stat.evictedBlobs} blobs, ${formatSize(stat.evictedBytes)}, since the node's start`;
  const fields: (readonly [string, string | number])[] = [
    ["used", `${formatSize(usedBytes)} of ${formatSize(sizeBytesMax)}${percent}`],
    ...(reservedBytes > 0 ? [["reserved", `${formatSize(reservedBytes)} for uploads under way`] as const] : []),
    ["blobs", blobs],
    ["entries", entries],
    ["index", `${formatSize(indexBytes)} in memory`],
    ...(oldestUseAtMs === undefined
      ? []
      : [["oldest", `used ${formatDuration(Date.now() - oldestUseAtMs)} ago`] as const]),
    ...(stat.damagedBlobs > 0
      ? [["damaged", `${stat.damagedBlobs} found and dropped since the node's start`] as const]
      : []),
    ...(stat.scrubbedAtMs === undefined
      ? []
      : [["checked", `all of it, ${formatDuration(Date.now() - stat.scrubbedAtMs)} ago`] as const]),
    ...(stat.evictedBlobs > 0 ? [["evicted", evicted] as const] : []),
  ];
  for (const line of fieldLines(fields)) out(line);
}
