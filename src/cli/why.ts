import { command } from "#door/command.ts";
import { askServer, serverFlags, serverOf } from "./server.ts";

export const why = command({
  name: "why",
  about: "Say why an operation, a build or an action waits, was run, or was run again, and how it ended.",
  words: "<operation | build | action-digest> [action of the build]",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    instance: { type: "string", value: "NAME", about: "the instance name that the build used, if it used one" },
  },
  examples: ["millrace why operations/j0-1", "millrace why j0-1 bread", "millrace why HASH/SIZE"],
  async run({ positionals: [of, key], values }, world) {
    if (of === undefined) {
      world.note("why: name an operation, a build or an action's digest (millrace job list shows what there is)");
      return 2;
    }
    const { instance } = values;
    const query = new URLSearchParams({ of, ...(key !== undefined && { key }), ...(instance && { instance }) });
    const response = await askServer(serverOf(values, world.env), `/v1/why?${query.toString()}`, "ask why");
    const answer = (await response.json()) as { readonly told: readonly string[] };
    if (values.json) world.out(JSON.stringify(answer));
    else for (const line of answer.told) world.out(line);
    if (!values.json && answer.told.length === 0) world.out("there is nothing to say about it");
    return 0;
  },
});
