import { isFault } from "#base/fault.ts";
import { parseJob } from "#base/ids.ts";
import { command, serverFlags } from "#door/command.ts";
import { askServer, serverOf } from "./server.ts";

export const why = command({
  name: "why",
  about: "Say why a job, a build or an action waits, was run, or was run again, and how it ended.",
  words: "<job | build | operation | action-digest> [action of the build]",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    instance: { type: "string", value: "NAME", about: "the instance name that the build used, if it used one" },
  },
  examples: ["millrace why j0-1", "millrace why operations/j0-1", "millrace why j0-1 bread", "millrace why HASH/SIZE"],
  async run({ positionals: [of, key], values }, world) {
    if (of === undefined) {
      world.note(
        "why: name a job, a build, an operation or an action's digest (millrace job list shows what there is)",
      );
      return 2;
    }
    const { instance } = values;
    const query = new URLSearchParams({ of, ...(key !== undefined && { key }), ...(instance && { instance }) });
    const server = serverOf(values, world.env);
    let answer: { readonly told: readonly string[] };
    try {
      const response = await askServer(server, `/v1/why?${query.toString()}`, "ask why");
      answer = (await response.json()) as typeof answer;
    } catch (error) {
      // A door explains what is its own; any other job is explained by what its tasks wait for.
      if (!isFault(error, "not-found") || key !== undefined || !parseJob(of)) throw error;
      const { explainJob } = await import("./job/explain-job.ts");
      return await explainJob(values, of, world);
    }
    if (values.json) world.out(JSON.stringify(answer));
    else for (const line of answer.told) world.out(line);
    if (!values.json && answer.told.length === 0) world.out("there is nothing to say about it");
    return 0;
  },
});
