import { callEndpoint, type Fetch } from "#http/client.ts";
import { isFault } from "#base/fault.ts";
import { command, serverFlags, type ServerFlagValues, type World } from "#door/command.ts";
import { setTimeout as pause } from "node:timers/promises";
import type { z } from "zod";
import { printable } from "#door/table.ts";
import { watchRelease, whyRelease, type ReleaseShape } from "#doors/deploy/view/endpoints.ts";
import { endLine, gridLines, newLines } from "#doors/deploy/view/terminal.ts";

type Shown = z.output<typeof ReleaseShape>;

const fetchOf = async (values: ServerFlagValues, world: World): Promise<Fetch> => {
  const http = await world.http(values);
  return (path, init) => http.reach(path, init);
};

const againMs = 500;
const patienceMs = 60_000;

export const deployWatch = command({
  name: "deploy watch",
  about: "Follow a release to its end: what its stages and waves do, and how many machines run it, by region.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy watch j3-1"],
  async run({ positionals: [job], values }, world) {
    if (job === undefined) {
      world.note("deploy watch: name a release, for example: millrace deploy watch j3-1");
      return 2;
    }
    const fetch = await fetchOf(values, world);
    const draw = drawing(world, values.json === true);
    let last: Shown | undefined;
    let heardMonoMs = performance.now();
    for (;;) {
      try {
        for await (const { data } of await callEndpoint(fetch, watchRelease, { params: { job } })) {
          heardMonoMs = performance.now();
          draw(data, last);
          last = data;
        }
        if (last && last.endedAt !== null) return last.phase === "SUCCEEDED" ? 0 : 1;
      } catch (error) {
        // A node that restarts is waited for.
        const isAway = isFault(error, "unavailable") || error instanceof TypeError;
        if (!isAway || performance.now() - heardMonoMs > patienceMs) throw error;
      }
      await pause(againMs);
    }
  },
});

/** On a terminal the table of regions and waves stays below the lines, and is drawn over. */
function drawing(world: World, json: boolean): (shown: Shown, before: Shown | undefined) => void {
  let drawn = 0;
  return (shown, before) => {
    if (json) return world.out(JSON.stringify(shown));
    const isOver = shown.endedAt !== null;
    const lines = newLines(shown, before).map(printable);
    const grid = world.isOutTerminal || isOver ? gridLines(shown) : [];
    const all = [...lines, ...grid, ...(isOver ? [printable(endLine(shown))] : [])];
    const [first, ...rest] = all;
    if (first === undefined) return;
    const over = drawn > 0 ? `\u001b[${drawn}A\u001b[J` : "";
    world.out(over + first);
    for (const line of rest) world.out(line);
    drawn = grid.length;
  };
}

export const deployWhy = command({
  name: "deploy why",
  about: "Say what a release waits for, or how it ended; or one of its waves, or a machine.",
  words: "<job> [wave | machine]",
  positionalsMax: 2,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy why j3-1", "millrace deploy why j3-1 wave-2", "millrace deploy why j3-1 web-17"],
  async run({ positionals: [job, of], values }, world) {
    if (job === undefined) {
      world.note("deploy why: name a release, for example: millrace deploy why j3-1");
      return 2;
    }
    const query = { ...(of !== undefined && { of }) };
    const answer = await callEndpoint(await fetchOf(values, world), whyRelease, { params: { job }, query });
    if (values.json) world.out(JSON.stringify(answer));
    else for (const line of answer.lines) world.out(printable(line));
    return 0;
  },
});
