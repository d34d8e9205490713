/**
 * Guards of the CI door, each removed in a copy of the source: the simulation must find the promise that breaks then.
 * `node bin/node.js src/sim/ci/mutants.ts [name...]` hunts them one after the other.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { inCopy, type Mutant, plant } from "#sim/mutants.ts";

type Edit = Pick<Mutant, "file" | "find" | "replace">;
export type CiMutant = { readonly name: string; readonly finds: string; readonly edits: readonly Edit[] };

export const ciMutants: readonly CiMutant[] = [
  {
    name: "resume from a stale checkpoint",
    finds: "CS1",
    edits: [
      {
        file: "kernel/apply/task.ts",
        find: "  const { payload, digests } = event.checkpoint;\n  setCheckpoint(",
        replace: "  const { payload, digests } = event.checkpoint;\n  if (!task.checkpoint) setCheckpoint(",
      },
    ],
  },
  {
    name: "ledger commit by a stale token",
    finds: "CS3",
    edits: [
      {
        file: "effects/ledger.ts",
        find: `if (!isSame(entry.holder, holder)) return { answer: { kind: "stale", holder: entry.holder } };`,
        replace: "",
      },
    ],
  },
  {
    name: "an effect that was begun and never ended may be done again",
    finds: "CS2",
    edits: [
      {
        file: "effects/ledger.ts",
        find: `answer: { kind: "unknown", before: entry.holder, sinceMs: entry.atMs },`,
        replace: `answer: { kind: "go" },`,
      },
    ],
  },
  {
    name: "a decision about an earlier try counts for a later one",
    finds: "CS2",
    edits: [
      {
        file: "effects/ledger.ts",
        find: "if (begins !== undefined && begins !== entry.begins)",
        replace: "if (begins === -1)",
      },
    ],
  },
  {
    name: "approval counted twice",
    finds: "CS4",
    edits: [
      // the engine keeps one signal of an id, and the gate counts a person once: either is enough
      {
        file: "doors/ci/environments/gate.ts",
        find: "  for (const review of reviews) if (!seen.has(review.person)) seen.set(review.person, review);",
        replace: "  for (const [at, review] of reviews.entries()) seen.set(`${review.person} ${at}`, review);",
      },
      {
        file: "kernel/decide/plan.ts",
        find: "if (stage.gate?.signals.some((known) => known.id === id)) return accept({ recorded: true });",
        replace: "",
      },
    ],
  },
  {
    name: "lock handed on while a cancelled job's post steps run",
    finds: "CS5",
    edits: [
      {
        file: "kernel/ready/locks.ts",
        find: "stage ? isEnded(stage.phase) && stage.claims === 0 : isEnded(job.phase) && job.claims === 0;",
        replace: "stage ? isEnded(stage.phase) : isEnded(job.phase);",
      },
    ],
  },
];

export type Hunted = { readonly found: boolean; readonly what: string };

const huntMsMax = 5 * 60_000;

export async function huntCiMutant({ name, finds, edits }: CiMutant, root: string, seeds: number): Promise<Hunted> {
  return await inCopy(root, async (copy) => {
    for (const edit of edits) plant({ name, focus: [], ...edit }, join(copy, "src"));
    const args = [join(copy, "src/sim/ci/main.ts"), "--seeds", `${seeds}`];
    const child = spawn(process.execPath, args, { cwd: copy });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part: Buffer) => (text += part.toString()));
    const limit = setTimeout(() => child.kill("SIGKILL"), huntMsMax); // a mutant may also never end
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    clearTimeout(limit);
    const failed = /^FAILED (.*)$/m.exec(text)?.[1] ?? text.slice(-500);
    return { found: code === 1 && failed.includes(`: ${finds}: `), what: failed };
  });
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..", "..", "..");
  const wanted = process.argv.slice(2);
  for (const mutant of ciMutants) {
    if (wanted.length > 0 && !wanted.some((part) => mutant.name.includes(part))) continue;
    const { found, what } = await huntCiMutant(mutant, root, 200);
    process.stdout.write(`${found ? "found   " : "SURVIVED"} ${mutant.name}: ${what}\n`);
    if (!found) process.exitCode = 1;
  }
}
