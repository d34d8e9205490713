import type { StoreStat, Verified } from "#blobs/upkeep.ts";
import { formatSize, parseSizeBytes, sizeHelp } from "#base/units.ts";
import { cacheFlags, CacheServer } from "./cache-server.ts";
import { showStat } from "./cache-stat.ts";
import { command } from "#door/command.ts";

export const cacheGc = command({
  name: "cache gc",
  about: "Let go of what was not used the longest, down to a size; what is promised, pinned or in use stays.",
  words: "<size>",
  positionalsMax: 1,
  takesRest: false,
  flags: cacheFlags,
  examples: ["millrace cache gc 10GiB"],
  async run({ positionals: [size], values }, world) {
    const downTo = size === undefined ? undefined : parseSizeBytes(size);
    if (downTo === undefined) {
      world.note(`cache gc: say what may stay: ${sizeHelp}`);
      return 2;
    }
    const query = { downTo: `${downTo}` };
    const stat = await (await CacheServer.find(values, world)).json<StoreStat>("POST", "gc", query);
    if (values.json) world.out(JSON.stringify(stat));
    else showStat(stat, world);
    return 0;
  },
});

export const cacheVerify = command({
  name: "cache verify",
  about: "Read every blob of a node's store against its digest; what is wrong is dropped and named.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: cacheFlags,
  examples: ["millrace cache verify"],
  async run({ values }, world) {
    const { body } = await (await CacheServer.find(values, world)).ask("POST", "verify");
    let last: Verified = { checked: 0, of: 0, bytes: 0, wrong: [] };
    let wrong = 0;
    for await (const line of linesOf(body)) {
      last = JSON.parse(line) as Verified;
      wrong += last.wrong.length;
      for (const digest of last.wrong) world.out(values.json ? JSON.stringify({ wrong: digest }) : `wrong: ${digest}`);
      world.progress(`${last.checked} of ${last.of} blobs, ${formatSize(last.bytes)}`);
    }
    world.progress("");
    const { checked, bytes } = last;
    if (values.json) world.out(JSON.stringify({ checked, bytes, wrong }));
    else
      world.out(`${checked} blobs, ${formatSize(bytes)}: ${wrong === 0 ? "all as they should be" : `${wrong} wrong`}`);
    return wrong === 0 ? 0 : 1;
  },
});

async function* linesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const part of body ?? []) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
