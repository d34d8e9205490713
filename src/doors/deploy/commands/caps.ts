import { parseSizeBytes } from "#base/units.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { command, serverFlags } from "#door/command.ts";
import { setCaps, showCaps } from "#doors/deploy/endpoints.ts";

const kinds = ["host", "rack", "wan"] as const;
type Kind = (typeof kinds)[number];
type Rates = Record<Kind, number | null>;

const rateFlag = (about: string) => ({ type: "string", value: "RATE", about }) as const;

export const deployCaps = command({
  name: "deploy caps",
  about: "Show how much each machine may send to others, or change it while releases spread.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    host: rateFlag("all that a machine sends in a second, such as 60MiB; none: no limit"),
    rack: rateFlag("what leaves its rack"),
    wan: rateFlag("what leaves its region"),
  },
  examples: [
    "millrace deploy caps",
    "millrace deploy caps --host 60MiB --rack 20MiB",
    "millrace deploy caps --host none",
  ],
  async run({ values }, world) {
    const http = await world.http(values);
    const fetch: Fetch = (path, init) => http.reach(path, init);
    const { host, rack, wan } = await callEndpoint(fetch, showCaps, {});
    const rates: Rates = { host, rack, wan };
    const changed = kinds.filter((kind) => values[kind] !== undefined);
    for (const kind of changed) {
      const rate = rateOf(values[kind] ?? "");
      if (rate === undefined) {
        world.note(`--${kind} ${values[kind]}: write a size, such as 60MiB, or none`);
        return 2;
      }
      rates[kind] = rate;
    }
    if (changed.length > 0) await callEndpoint(fetch, setCaps, { body: rates });
    if (values.json) world.out(JSON.stringify({ kind: "caps", ...rates }));
    else
      for (const kind of kinds) world.out(`${kind}: ${rates[kind] === null ? "no limit" : `${rates[kind]} bytes/s`}`);
    return 0;
  },
});

const rateOf = (text: string): number | null | undefined => (text === "none" ? null : parseSizeBytes(text));
