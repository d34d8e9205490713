import { parseSizeBytes } from "#base/units.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { command, serverFlags } from "#door/command.ts";
import { setCaps, showCaps } from "#doors/deploy/endpoints.ts";

const flags = { host: "host", rack: "rack", wan: "wan", rackLink: "rack-link", wanLink: "wan-link" } as const;
const kinds = ["host", "rack", "wan", "rackLink", "wanLink"] as const;
type Kind = (typeof kinds)[number];
type Rates = Record<Kind, number | null>;

const rateFlag = (about: string) => ({ type: "string", value: "RATE", about }) as const;

export const deployCaps = command({
  name: "deploy caps",
  about:
    "Show how much machines may send to others, each and through shared links, or change it while releases spread.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    host: rateFlag("all that a machine sends in a second, such as 60MiB; none: no limit"),
    rack: rateFlag("what leaves its rack"),
    wan: rateFlag("what leaves its region"),
    "rack-link": rateFlag("what leaves a rack, by all its machines together; rollbacks go first"),
    "wan-link": rateFlag("what a region's nodes fetch for it, and send to machines of other regions"),
  },
  examples: [
    "millrace deploy caps",
    "millrace deploy caps --host 60MiB --rack 20MiB",
    "millrace deploy caps --rack-link 1GiB --wan-link 200MiB",
    "millrace deploy caps --host none",
  ],
  async run({ values }, world) {
    const http = await world.http(values);
    const fetch: Fetch = (path, init) => http.reach(path, init);
    const rates: Rates = await callEndpoint(fetch, showCaps, {});
    const changed = kinds.filter((kind) => values[flags[kind]] !== undefined);
    for (const kind of changed) {
      const rate = rateOf(values[flags[kind]] ?? "");
      if (rate === undefined) {
        world.note(`--${flags[kind]} ${values[flags[kind]]}: write a size, such as 60MiB, or none`);
        return 2;
      }
      rates[kind] = rate;
    }
    if (changed.length > 0) await callEndpoint(fetch, setCaps, { body: rates });
    if (values.json) world.out(JSON.stringify({ kind: "caps", ...rates }));
    else
      for (const kind of kinds)
        world.out(`${flags[kind]}: ${rates[kind] === null ? "no limit" : `${rates[kind]} bytes/s`}`);
    return 0;
  },
});

const rateOf = (text: string): number | null | undefined => (text === "none" ? null : parseSizeBytes(text));
