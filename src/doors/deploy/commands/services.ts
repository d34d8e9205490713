import { callEndpoint, type Fetch } from "#http/client.ts";
import { command, serverFlags, type ServerFlagValues, type World } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import { shownStates } from "#doors/deploy/view/machine-state.ts";
import { limitOf, pageFlags, tellNext } from "./paging.ts";
import {
  approveWave,
  forgetMachine,
  haltService,
  listMachines,
  listServices,
  showService,
  startRollback,
} from "#doors/deploy/endpoints.ts";

const fetchOf = async (values: ServerFlagValues, world: World): Promise<Fetch> => {
  const http = await world.http(values);
  return (path, init) => http.reach(path, init);
};

const regionsFlag = {
  region: { type: "strings", value: "REGION", about: "a region of the service; may be given several times" },
} as const;

const states = shownStates.join(", ");

const short = (digest: string | null): string => digest?.slice(0, 12) ?? "nothing";

export const deployStatus = command({
  name: "deploy status",
  about: "Show what a service's machines should run and what they do run, by region.",
  words: "[service]",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, ...regionsFlag },
  examples: ["millrace deploy status", "millrace deploy status web", "millrace deploy status web --region eu"],
  async run({ positionals: [service], values }, world) {
    if (service === undefined) return await listAll(values, world);
    const { regions } = await callEndpoint(await fetchOf(values, world), showService, {
      params: { service },
      query: { regions: values.region?.join(",") ?? "" },
    });
    if (values.json) for (const one of regions) world.out(JSON.stringify(one));
    else {
      const rows = regions.map((one) => [
        one.region,
        `version ${one.version}`,
        one.kind === "rollback" ? "rollback" : `wave ${one.wave + 1}, ${one.sharePpm / 10_000}%`,
        short(one.manifest),
        `${one.running} of ${one.machines} machines`,
        short(one.stable),
        [one.halted ? "HALTED" : "", one.pins.length > 0 ? `${one.pins.length} pins` : ""].join(" ").trim(),
      ]);
      const headings = ["REGION", "VERSION", "SHARE", "MANIFEST", "RUNNING IT", "STABLE", ""];
      for (const line of tableLines(headings, rows)) world.out(line);
    }
    return 0;
  },
});

async function listAll(values: ServerFlagValues & { readonly json?: boolean }, world: World): Promise<0> {
  const { services } = await callEndpoint(await fetchOf(values, world), listServices, {});
  if (values.json) for (const one of services) world.out(JSON.stringify(one));
  else {
    const rows = services.map((one) => [one.service, one.sha.slice(0, 12), one.releasedAt, one.regions.join(" ")]);
    for (const line of tableLines(["SERVICE", "COMMIT", "RELEASED", "REGIONS"], rows)) world.out(line);
  }
  return 0;
}

export const deployMachines = command({
  name: "deploy machines",
  about: "List the machines that are attached, and what each of them runs, a page at a time.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...regionsFlag,
    ...pageFlags,
    service: { type: "string", value: "SERVICE", about: "only machines that report about it" },
    state: { type: "string", value: "STATE", about: `only machines with a service in this state: ${states}` },
  },
  examples: ["millrace deploy machines --json", "millrace deploy machines --region eu --state failed"],
  async run({ values }, world) {
    const { service, region } = values;
    const state = shownStates.find((one) => one === values.state);
    const limit = limitOf(values.limit);
    if (limit === undefined || (values.state !== undefined && state === undefined))
      return usage(world, `deploy machines --limit 100 --state failed (states: ${states})`);
    const regions = region?.join(",");
    const query = { limit, after: values.cursor ?? "", service, state, regions };
    const { machines, next } = await callEndpoint(await fetchOf(values, world), listMachines, { query });
    tellNext(world, next, "deploy machines");
    if (values.json) for (const one of machines) world.out(JSON.stringify(one));
    else {
      const rows = machines.map(({ machine, region, labels, reports }) => {
        const services = reports.map(({ service, state, running }) => `${service} ${state} ${short(running)}`);
        return [machine, region, labels.join(" "), services.join("; ") || "none"];
      });
      for (const line of tableLines(["MACHINE", "REGION", "LABELS", "SERVICES"], rows)) world.out(line);
    }
    return 0;
  },
});

export const deployRollback = command({
  name: "deploy rollback",
  about: "Go back to the version that was good before, on all machines at once.",
  words: "<service>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, ...regionsFlag },
  examples: ["millrace deploy rollback web --region eu"],
  async run({ positionals: [service], values }, world) {
    if (service === undefined || !values.region) return usage(world, "deploy rollback web --region eu");
    const { job } = await callEndpoint(await fetchOf(values, world), startRollback, {
      params: { service },
      body: { regions: [...values.region] },
    });
    world.out(values.json ? JSON.stringify({ kind: "rollback", job }) : job);
    return 0;
  },
});

const halting = (name: string, about: string, halted: boolean) =>
  command({
    name,
    about,
    words: "<service>",
    positionalsMax: 1,
    takesRest: false,
    flags: { ...serverFlags, ...regionsFlag },
    examples: [`millrace ${name} web --region eu`],
    async run({ positionals: [service], values }, world) {
      if (service === undefined || !values.region) return usage(world, `${name} web --region eu`);
      const body = { regions: [...values.region], halted };
      await callEndpoint(await fetchOf(values, world), haltService, { params: { service }, body });
      return 0;
    },
  });

export const deployHalt = halting(
  "deploy halt",
  "Stop every activation of a service at once; what runs stays up.",
  true,
);
export const deployResume = halting("deploy resume", "Let activations of a halted service go on.", false);

export const deployApprove = command({
  name: "deploy approve",
  about: "Approve the next wave of a release, in your own name.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    wave: { type: "string", value: "NUMBER", about: "the wave, counted from 1" },
    reject: { type: "boolean", about: "reject it instead: the release rolls back" },
  },
  examples: ["millrace deploy approve j3-1 --wave 2"],
  async run({ positionals: [job], values }, world) {
    const wave = Number(values.wave);
    if (job === undefined || !Number.isInteger(wave)) return usage(world, "deploy approve j3-1 --wave 2");
    const body = { wave, reject: values.reject ?? false };
    await callEndpoint(await fetchOf(values, world), approveWave, { params: { job }, body });
    return 0;
  },
});

export const deployForget = command({
  name: "deploy forget",
  about: "Forget the key of a machine, so that one that was set up anew can have its name.",
  words: "<machine>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace deploy forget web-17"],
  async run({ positionals: [machine], values }, world) {
    if (machine === undefined) return usage(world, "deploy forget web-17");
    await callEndpoint(await fetchOf(values, world), forgetMachine, { params: { machine } });
    if (values.json) world.out(JSON.stringify({ kind: "forgotten", machine }));
    return 0;
  },
});

function usage({ note }: World, example: string): 2 {
  note(`something is missing; for example: millrace ${example}`);
  return 2;
}
