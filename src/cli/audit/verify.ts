import { command } from "#door/command.ts";
import { trailFlags } from "./list.ts";

export const auditVerify = command({
  name: "audit verify",
  about: "Check an audit trail's chain of hashes: of a node, or of a file that audit export wrote.",
  words: "[file]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...trailFlags,
    hash: { type: "string", value: "HASH", about: "an entry's hash that was noted before: it has to be in the trail" },
  },
  examples: ["millrace audit verify", "millrace audit verify trail.ndjson"],
  async run({ positionals: [file], values }, world) {
    const { exportedLines, fileLines } = await import("./exported.ts");
    const { AuditEntry, ChainCheck } = await import("#audit/chain.ts");
    const check = new ChainCheck();
    let isKnown = values.hash === undefined;
    let count = 0;
    const say = (found: object, text: string): void => world.out(values.json ? JSON.stringify(found) : text);
    for await (const line of file === undefined ? exportedLines(values, world) : fileLines(file)) {
      count += 1;
      const parsed = AuditEntry.safeParse(parsedJson(line));
      const wrong = parsed.success
        ? check.add(parsed.data)
        : ({ ok: false, seq: 0, why: `line ${count} is no entry of an audit trail` } as const);
      if (wrong && !wrong.ok) {
        say(wrong, `broken at entry ${wrong.seq}: ${wrong.why}`);
        return 1;
      }
      if (parsed.data?.hash === values.hash) isKnown = true;
    }
    const verdict = check.verdict();
    if (!isKnown) {
      say({ ...verdict, ok: false }, "broken: no entry has the hash that was given");
      return 1;
    }
    if (verdict.ok)
      say(verdict, `intact: ${verdict.entries} entries, ${verdict.first} to ${verdict.last}, ${verdict.hash}`);
    return 0;
  },
});

function parsedJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
