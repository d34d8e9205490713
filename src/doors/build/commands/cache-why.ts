import { isDigest, type Digest } from "#base/digest.ts";
import { formatDuration } from "#base/units.ts";
import { cacheFlags, CacheServer } from "./cache-server.ts";
import { command } from "#door/command.ts";

type Miss = {
  readonly action: Digest;
  readonly target: string;
  readonly mnemonic: string;
  readonly atMs: number;
  readonly reason: { readonly kind: string; readonly missing?: Digest };
};

type WhyAnswer = {
  readonly action: Digest;
  readonly verdict: string;
  readonly miss?: Omit<Miss, "action">;
  readonly nearest?: { readonly action: Digest; readonly atMs: number };
  readonly lines: readonly string[];
};

export const cacheWhy = command({
  name: "cache why",
  about: "Say why an action was not in the cache: what differs from the nearest earlier one of its target.",
  words: "[action | target]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...cacheFlags,
    instance: { type: "string", value: "NAME", about: "the instance name that the build used, if it used one" },
  },
  examples: ["millrace cache why", "millrace cache why //app:main"],
  async run({ positionals: [what], values }, world) {
    const server = await CacheServer.find(values, world);
    const actions = what !== undefined && isDigest(what) ? [what] : await missesOf(server, what);
    if (actions.length === 0) {
      const about = what === undefined ? "no action has missed" : `no action of ${what} has missed`;
      if (!values.json) world.out(`${about} since the node started`);
      return 0;
    }
    for (const action of actions) {
      const answer = await server.json<WhyAnswer>("GET", "why", { action, instance: values.instance });
      if (values.json) world.out(JSON.stringify(answer));
      else for (const line of linesOf(answer)) world.out(line);
    }
    return 0;
  },
});

/** The last ones: more would not be read. */
const shownMax = 10;

async function missesOf(server: CacheServer, target: string | undefined): Promise<readonly Digest[]> {
  const query = { target, limit: `${shownMax}` };
  const { misses } = await server.json<{ readonly misses: readonly Miss[] }>("GET", "misses", query);
  return misses.map(({ action }) => action);
}

function linesOf({ action, verdict, miss, nearest, lines }: WhyAnswer): readonly string[] {
  const ago = (atMs: number): string => `${formatDuration(Math.max(0, Date.now() - atMs))} ago`;
  const head = miss ? `${miss.target} ${miss.mnemonic}, ${ago(miss.atMs)}: ${action}` : action;
  if (verdict === "differs" && nearest)
    return [
      head,
      `  differs from ${nearest.action}, stored ${ago(nearest.atMs)}:`,
      ...lines.map((one) => `    ${one}`),
    ];
  const missing = miss?.reason.missing;
  return [
    head,
    `  ${missing === undefined ? (verdicts[verdict] ?? verdict) : `${verdicts["incomplete"]}: ${missing}`}`,
  ];
}

const verdicts: Readonly<Record<string, string>> = {
  unknown: "nobody has asked for it in vain, as far as this node knows",
  incomplete: "its result was there, and a blob that the result names was not",
  revoked: "its result has been revoked",
  "first-of-its-target": "the first action of its target and kind that this cache has seen",
  unreadable: "the action itself is not in the store, so it cannot be compared",
};
