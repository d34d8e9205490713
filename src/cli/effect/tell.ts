/** `effect begin`, `commit` and `undo`: for scripts that do more between them than one command. */
import { command, serverFlags } from "#door/command.ts";
import { shared } from "./flags.ts";

const flags = { ...serverFlags, ...shared } as const;

const missing = (name: string): string => `${name}: name the effect, for example: millrace ${name} deploy-production`;

export const effectBegin = command({
  name: "effect begin",
  about: "Ask, as a task, whether an effect may be done. Prints go, done, unknown or busy.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace effect begin deploy-production"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note(missing("effect begin"));
      return 2;
    }
    const { ledgerOf, namedBy } = await import("./words.ts");
    const said = await ledgerOf(values, world).tell("begin", namedBy(name, values, world.env));
    world.out(values.json ? JSON.stringify(said) : said.answer);
    return said.answer === "stale" ? 1 : 0;
  },
});

export const effectCommit = command({
  name: "effect commit",
  about: "Say, as a task, that an effect was done. Refused once a later attempt has begun it.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...flags, result: { type: "string", value: "TEXT", about: "what it came to, told to later attempts" } },
  examples: ["millrace effect commit deploy-production --result v12"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note(missing("effect commit"));
      return 2;
    }
    const { ledgerOf, namedBy } = await import("./words.ts");
    const more = values.result === undefined ? {} : { result: values.result };
    const said = await ledgerOf(values, world).tell("commit", namedBy(name, values, world.env), more);
    world.out(values.json ? JSON.stringify(said) : said.answer);
    return said.answer === "accepted" ? 0 : 1;
  },
});

export const effectUndo = command({
  name: "effect undo",
  about: "Say, as a task, that nothing was done: the next who begins the effect may go.",
  words: "<name>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace effect undo deploy-production"],
  async run({ positionals: [name], values }, world) {
    if (name === undefined) {
      world.note(missing("effect undo"));
      return 2;
    }
    const { ledgerOf, namedBy } = await import("./words.ts");
    const said = await ledgerOf(values, world).tell("undo", namedBy(name, values, world.env));
    world.out(values.json ? JSON.stringify(said) : said.answer);
    return said.answer === "accepted" ? 0 : 1;
  },
});
