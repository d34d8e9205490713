import { command, serverFlags } from "#door/command.ts";
import { callEndpoint } from "#http/client.ts";
import { listJobAttempts, listRunAttempts, listRunners } from "#doors/ci/lists/endpoints.ts";
import { fetchOf, usage } from "./node-call.ts";

export const ciAttempts = command({
  name: "ci attempts",
  about: "List the attempts at a job of a run, with who ran them and how they ended; without a job, a run's re-runs.",
  words: "<run> [job]",
  positionalsMax: 2,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace ci attempts j0-1 build", "millrace ci attempts j0-1"],
  async run({ positionals: [run, job], values }, world) {
    if (run === undefined) return usage(world, "ci attempts j0-1 build");
    const fetch = await fetchOf(values, world);
    if (job === undefined) {
      const { items } = await callEndpoint(fetch, listRunAttempts, { params: { run } });
      for (const one of items) {
        const line = `${one.attempt ?? 1}  ${one.run}  ${one.conclusion ?? one.status}  ${one.createdAt}`;
        world.out(values.json ? JSON.stringify(one) : line);
      }
      return 0;
    }
    const { items } = await callEndpoint(fetch, listJobAttempts, { params: { run, job } });
    for (const one of items) {
      const why = one.reason === undefined ? "" : `: ${one.reason}`;
      const line = `${one.number}  ${one.runner || "-"}  ${one.startedAt ?? "-"}  ${one.outcome}${why}`;
      world.out(values.json ? JSON.stringify(one) : line);
    }
    if (items.length === 0 && !values.json) world.note("no runner has had it yet");
    return 0;
  },
});

export const ciRunners = command({
  name: "ci runners",
  about: "List the runners that can take jobs, on nodes and elsewhere: their labels, groups and what they run.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    group: { type: "string", value: "NAME", about: "only those of this group" },
    label: { type: "string", value: "NAME", about: "only those with this label" },
  },
  examples: ["millrace ci runners --label gpu"],
  async run({ values }, world) {
    const { group, label } = values;
    const query = { ...(group !== undefined && { group }), ...(label !== undefined && { label }) };
    const { items } = await callEndpoint(await fetchOf(values, world), listRunners, { query });
    for (const one of items) {
      const state = one.drained === undefined ? `${one.running} running` : `drained: ${one.drained}`;
      const groups = one.groups.length === 0 ? "" : `  groups ${one.groups.join(", ")}`;
      world.out(values.json ? JSON.stringify(one) : `${one.name}  ${state}  ${one.labels.join(", ")}${groups}`);
    }
    if (items.length === 0 && !values.json) world.note("no runner has asked for work yet");
    return 0;
  },
});
