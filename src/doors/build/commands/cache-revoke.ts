import { cacheFlags, CacheServer } from "./cache-server.ts";
import { command } from "#door/command.ts";

type NamedRule = { readonly id: string; readonly rule: Readonly<Record<string, string | number>> };

export const cacheRevoke = command({
  name: "cache revoke",
  about: "Take back entries by who wrote them, when, or by key: they miss from now on. Without flags: list what is.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...cacheFlags,
    principal: { type: "string", value: "NAME", about: "what this one wrote" },
    space: { type: "string", value: "SPACE", about: "what is in this space, as cache ls shows it" },
    name: { type: "string", value: "NAME", about: "one entry of the space" },
    all: { type: "boolean", about: "everything of the tenant" },
    last: { type: "string", value: "DURATION", about: "only what was written in the last so long" },
    from: { type: "string", value: "INSTANT", about: "only what was written from then on" },
    until: { type: "string", value: "INSTANT", about: "only what was written until then (now)" },
    why: { type: "string", value: "TEXT", about: "kept with it" },
    lift: { type: "string", value: "ID", about: "believe again what this rule took back" },
  },
  examples: ["millrace cache revoke --principal ci --last 2h --why bad-compiler", "millrace cache revoke"],
  async run({ values }, world) {
    const server = await CacheServer.find(values, world);
    const { principal, space, name, all, last, from, until, why, lift } = values;
    if (lift !== undefined) {
      await server.ask("DELETE", `rules/${encodeURIComponent(lift)}`);
      world.out(values.json ? JSON.stringify({ lifted: lift }) : `${lift} lifted`);
      return 0;
    }
    const what = { principal, space, name, all: all ? "yes" : undefined };
    const when = { last, from, until, why };
    const isAsked = Object.values({ ...what, ...when }).some((value) => value !== undefined);
    const { rules } = isAsked
      ? { rules: [await server.json<NamedRule>("POST", "rules", { ...what, ...when })] }
      : await server.json<{ readonly rules: readonly NamedRule[] }>("GET", "rules");
    for (const { id, rule } of rules) world.out(values.json ? JSON.stringify({ id, rule }) : lineOf(id, rule));
    if (rules.length === 0 && !values.json) world.out("nothing has been taken back");
    return 0;
  },
});

function lineOf(id: string, { kind, principal, space, name, fromMs, untilMs, why }: NamedRule["rule"]): string {
  const what = kind === "principal" ? `by ${principal}` : [space ?? "everything", name].filter(Boolean).join(" ");
  const instant = (ms: string | number | undefined): string => new Date(Number(ms)).toISOString();
  const since = fromMs === undefined ? "" : ` from ${instant(fromMs)}`;
  return `${id}  ${what}, written${since} until ${instant(untilMs)}: ${why}`;
}
