import { callEndpoint, type Fetch } from "#http/client.ts";
import { command, serverFlags, type ServerFlagValues, type World } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import { limitOf, pageFlags, tellNext } from "./paging.ts";
import { abortRelease, listReleases, pauseRelease, planOfRelease, showDrift } from "#doors/deploy/endpoints.ts";

const fetchOf = async (values: ServerFlagValues, world: World): Promise<Fetch> => {
  const http = await world.http(values);
  return (path, init) => http.reach(path, init);
};

export const deployJobs = command({
  name: "deploy jobs",
  about: "List releases, newest first: commit, status, and when their work was last heard of.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy jobs --json"],
  async run({ values }, world) {
    const { jobs } = await callEndpoint(await fetchOf(values, world), listReleases, {});
    if (values.json) for (const one of jobs) world.out(JSON.stringify(one));
    else {
      const headings = ["ID", "CREATED", "COMMIT", "NAME", "STATUS", "LAST HEARTBEAT", "LIVE"];
      const rows = jobs.map((one) => [
        one.id,
        one.created_at,
        one.commit_sha?.slice(0, 12) ?? "",
        one.name,
        one.status,
        one.last_heartbeat ?? "",
        one.live ? "yes" : "no",
      ]);
      for (const line of tableLines(headings, rows)) world.out(line);
    }
    return 0;
  },
});

export const deployPlan = command({
  name: "deploy plan",
  about: "Show what a release of a service file would do; nothing is changed.",
  words: "<service file>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy plan service.yaml"],
  async run({ positionals: [file], values }, world) {
    if (file === undefined) return usage(world, "deploy plan service.yaml");
    const { serviceFrom } = await import("./release-from.ts");
    const body = { service: await serviceFrom(file) };
    const plan = await callEndpoint(await fetchOf(values, world), planOfRelease, { body });
    if (values.json) {
      world.out(JSON.stringify(plan));
      return 0;
    }
    for (const note of plan.notes) world.out(note);
    const headings = ["WAVE", "SHARE", "MACHINES", "NEW", "BAKE", "APPROVALS"];
    const rows = plan.waves.map((wave) => [
      String(wave.wave),
      `${wave.sharePpm / 10_000}%`,
      String(wave.machines),
      String(wave.added),
      `${wave.bakeMs / 1_000} s`,
      String(wave.approvals),
    ]);
    for (const line of tableLines(headings, rows)) world.out(line);
    return 0;
  },
});

export const deployAbort = command({
  name: "deploy abort",
  about: "End a release now: no further wave begins, and what it changed is rolled back.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy abort j3-1"],
  async run({ positionals: [job], values }, world) {
    if (job === undefined) return usage(world, "deploy abort j3-1");
    await callEndpoint(await fetchOf(values, world), abortRelease, { params: { job } });
    if (values.json) world.out(JSON.stringify({ kind: "aborted", job }));
    return 0;
  },
});

export const deployPause = command({
  name: "deploy pause",
  about: "Let no further wave of a release begin, until it goes on with --off; a bad wave is rolled back nevertheless.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, off: { type: "boolean", about: "go on" } },
  examples: ["millrace deploy pause j3-1", "millrace deploy pause j3-1 --off"],
  async run({ positionals: [job], values }, world) {
    if (job === undefined) return usage(world, "deploy pause j3-1");
    const body = { paused: values.off !== true };
    await callEndpoint(await fetchOf(values, world), pauseRelease, { params: { job }, body });
    if (values.json) world.out(JSON.stringify({ kind: body.paused ? "paused" : "goes-on", job }));
    return 0;
  },
});

export const deployDrift = command({
  name: "deploy drift",
  about: "List machines that run something other than their goal says, and why. Exit code 1 if there are any.",
  words: "<service>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    region: { type: "strings", value: "REGION", about: "a region of the service; may be given several times" },
    ...pageFlags,
  },
  examples: ["millrace deploy drift web --region eu"],
  async run({ positionals: [service], values }, world) {
    const limit = limitOf(values.limit);
    if (service === undefined || !values.region || limit === undefined)
      return usage(world, "deploy drift web --region eu --limit 100");
    const { machines, next } = await callEndpoint(await fetchOf(values, world), showDrift, {
      params: { service },
      query: { regions: values.region.join(","), limit, after: values.cursor ?? "" },
    });
    tellNext(world, next, `deploy drift ${service} --region ${values.region.join(" --region ")}`);
    if (values.json) for (const one of machines) world.out(JSON.stringify(one));
    else {
      const rows = machines.map((one) => [
        one.machine,
        one.region,
        one.running?.slice(0, 12) ?? "nothing",
        one.wanted.slice(0, 12),
        one.state,
        one.why,
      ]);
      if (rows.length > 0)
        for (const line of tableLines(["MACHINE", "REGION", "RUNS", "SHOULD RUN", "STATE", "WHY"], rows))
          world.out(line);
    }
    return machines.length > 0 ? 1 : 0;
  },
});

function usage({ note }: World, example: string): 2 {
  note(`something is missing; for example: millrace ${example}`);
  return 2;
}
