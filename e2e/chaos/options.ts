import { parseArgs } from "node:util";

export type Options = {
  readonly scenario: string;
  readonly rounds: number | undefined;
  readonly smoke: boolean;
  readonly soakMinutes: number | undefined;
  readonly jsonFile: string | undefined;
  readonly seed: number;
  /** Keeps the processes' logs. */
  readonly keep: boolean;
};

export const usage = `npm run chaos -- [options]
  --scenario NAME   one of kill, stop, database, takeover, handover, or all (the default)
  --rounds N        how often, instead of the scenario's own number
  --smoke           a slice of kill, stop and database that takes little more than a minute
  --soak MINUTES    a mix of everything on one cluster, for so long
  --seed N          makes the same choices again
  --json FILE       writes the figures there
  --keep            leaves the logs of nodes and workers behind and says where
`;

export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      scenario: { type: "string", default: "all" },
      rounds: { type: "string" },
      smoke: { type: "boolean", default: false },
      soak: { type: "string" },
      seed: { type: "string" },
      json: { type: "string" },
      keep: { type: "boolean", default: false },
    },
  });
  if (positionals.length > 0) throw new Error(`what is ${positionals.join(" ")}?\n${usage}`);
  const number = (name: "rounds" | "soak" | "seed"): number | undefined => {
    const text = values[name];
    if (text === undefined) return undefined;
    const value = Number(text);
    if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} ${text}: not a number\n${usage}`);
    return value;
  };
  return {
    scenario: values.scenario,
    rounds: number("rounds"),
    smoke: values.smoke,
    soakMinutes: number("soak"),
    jsonFile: values.json,
    seed: number("seed") ?? Date.now() % 2 ** 31,
    keep: values.keep,
  };
}
