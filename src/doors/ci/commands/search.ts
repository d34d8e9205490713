import { command, serverFlags } from "#door/command.ts";
import { callEndpoint } from "#http/client.ts";
import { searchLogs } from "#doors/ci/endpoints.ts";
import { fetchOf, usage } from "./node-call.ts";

const limitDefault = 100;

export const ciSearch = command({
  name: "ci search",
  about: "Find lines in the logs of all runs, the newest run first.",
  words: "<text>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    repository: { type: "string", value: "OWNER/NAME", about: "only of this one" },
    workflow: { type: "string", value: "FILE", about: "only of this workflow" },
    branch: { type: "string", value: "NAME", about: "only of this branch or tag" },
    limit: { type: "string", value: "N", about: `at most so many lines (${limitDefault})` },
  },
  examples: ["millrace ci search 'out of memory'", "millrace ci search ECONNRESET --repository mill/flour --limit 20"],
  async run({ positionals: [text], values }, world) {
    const { limit = String(limitDefault), repository, workflow, branch } = values;
    const most = Number(limit);
    if (text === undefined || text === "" || !Number.isSafeInteger(most) || most < 1)
      return usage(world, "ci search ECONNRESET --limit 20");
    const fetch = await fetchOf(values, world);
    const of = {
      text,
      ...(repository !== undefined && { repository }),
      ...(workflow !== undefined && { workflow }),
      ...(branch !== undefined && { branch }),
    };
    let cursor: string | undefined;
    let left = most;
    let runs = 0;
    do {
      const query = { ...of, limit: Math.min(left, 1_000), ...(cursor !== undefined && { cursor }) };
      const found = await callEndpoint(fetch, searchLogs, { query });
      for (const item of found.items)
        world.out(values.json ? JSON.stringify(item) : `${item.run} ${item.job} ${item.at}: ${item.text}`);
      left -= found.items.length;
      runs += found.runs;
      cursor = found.next;
    } while (cursor !== undefined && left > 0);
    if (!values.json) world.note(`looked at ${runs} runs${cursor === undefined ? "" : "; there may be more"}`);
    return 0;
  },
});
