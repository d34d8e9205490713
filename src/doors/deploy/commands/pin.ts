import { parseDurationMs } from "#base/units.ts";
import { callEndpoint } from "#http/client.ts";
import { command, serverFlags, type World } from "#door/command.ts";
import { pinMachines, unpinMachines } from "#doors/deploy/endpoints.ts";

const subjectFlags = {
  region: { type: "string", value: "REGION", about: "where the machines are" },
  machine: { type: "string", value: "NAME", about: "one machine" },
  label: { type: "string", value: "NAME=VALUE", about: "all machines with this label" },
} as const;

type Subject = { readonly region?: string; readonly machine?: string; readonly label?: string };

const bodyOf = ({ region = "", machine, label }: Subject) => ({
  region,
  ...(machine !== undefined && { machine }),
  ...(label !== undefined && { label }),
});

const isWhole = ({ region, machine, label }: Subject): boolean =>
  region !== undefined && (machine === undefined) !== (label === undefined);

export const deployPin = command({
  name: "deploy pin",
  about: "Keep a machine, or all with a label, at a version for a time, in your own name: releases pass them by.",
  words: "<service>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...subjectFlags,
    manifest: {
      type: "string",
      value: "DIGEST",
      about: "the version (what the machine runs; of a label, the stable one)",
    },
    for: { type: "string", value: "DURATION", about: "how long, such as 24h" },
    why: { type: "string", value: "TEXT", about: "for others who see it" },
  },
  examples: ["millrace deploy pin web --region eu --machine web-17 --for 24h --why 'memory is being looked at'"],
  async run({ positionals: [service], values }, world) {
    const forMs = values.for === undefined ? undefined : parseDurationMs(values.for);
    if (service === undefined || !isWhole(values) || forMs === undefined)
      return usage(world, "deploy pin web --region eu --machine web-17 --for 24h");
    const http = await world.http(values);
    const pin = await callEndpoint((path, init) => http.reach(path, init), pinMachines, {
      params: { service },
      body: { ...bodyOf(values), forMs, manifest: values.manifest, why: values.why ?? "" },
    });
    if (values.json) world.out(JSON.stringify({ kind: "pinned", ...pin }));
    else world.out(`pinned to ${pin.manifest.slice(0, 12)} until ${new Date(pin.untilMs).toISOString()}`);
    return 0;
  },
});

export const deployUnpin = command({
  name: "deploy unpin",
  about: "Take a pin away: the machines follow the service's goal again.",
  words: "<service>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, ...subjectFlags },
  examples: ["millrace deploy unpin web --region eu --machine web-17"],
  async run({ positionals: [service], values }, world) {
    if (service === undefined || !isWhole(values)) return usage(world, "deploy unpin web --region eu --machine web-17");
    const http = await world.http(values);
    const body = bodyOf(values);
    await callEndpoint((path, init) => http.reach(path, init), unpinMachines, { params: { service }, body });
    if (values.json) world.out(JSON.stringify({ kind: "unpinned", ...body }));
    return 0;
  },
});

function usage({ note }: World, example: string): 2 {
  note(`something is missing; for example: millrace ${example}`);
  return 2;
}
