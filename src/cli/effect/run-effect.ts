/** Runs a command under the ledger: once, unless it is known that it was not done. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseDurationMs } from "#base/units.ts";
import { Fault } from "#base/fault.ts";
import type { ExitCode, ServerFlagValues, World } from "#door/command.ts";
import { type Ledger, ledgerOf, type Named, namedBy } from "./words.ts";

type Values = ServerFlagValues & {
  readonly shared?: boolean;
  readonly probe?: string;
  readonly idempotent?: boolean;
  readonly atomic?: boolean;
  readonly wait?: string;
};

const waitDefault = "24h";
const lookEveryMs = 2_000;
const busyAgainMs = 5_000;

type Turn = {
  readonly ledger: Ledger;
  readonly named: Named;
  readonly values: Values;
  readonly world: World;
  readonly untilMono: number;
};

export async function runEffect(
  name: string,
  argv: readonly string[],
  values: Values,
  world: World,
): Promise<ExitCode> {
  const waitMs = parseDurationMs(values.wait ?? waitDefault);
  if (waitMs === undefined) throw new Fault("invalid", "run effect", { wait: values.wait, try: "such as 30m" });
  const named = namedBy(name, values, world.env);
  const turn = { ledger: ledgerOf(values, world), named, values, world, untilMono: performance.now() + waitMs };
  const key = await cleared(turn);
  if (key === undefined) return 0;
  const code = await exitOf(argv, { ...world.env, MILLRACE_EFFECT_KEY: key });
  if (code === 0) return await committed(turn);
  // without --atomic it stays begun: a command that failed may have done part of its work
  if (values.atomic) await turn.ledger.tell("undo", named);
  else
    world.note(`effect ${named.name}: the command failed, and may have done something: the next attempt has to look`);
  return 1;
}

/** The key under which the command may run; undefined: it was done already. */
async function cleared(turn: Turn): Promise<string | undefined> {
  const { ledger, named, values, world } = turn;
  for (;;) {
    const { key, answer, result = "", holder } = await ledger.tell("begin", named);
    switch (answer) {
      case "go":
        return key;
      case "done":
        world.note(`effect ${named.name}: done by an earlier attempt${result === "" ? "" : `: ${result}`}`);
        return undefined;
      case "busy":
        world.note(`effect ${named.name}: task ${holder?.task ?? "of another job"} is at it; waiting`);
        await pause(turn, busyAgainMs);
        continue;
      case "unknown": {
        if (values.idempotent) return key;
        const isDone = await probed(turn, key);
        if (isDone === "no") return key;
        if (isDone === "yes") return void (await ledger.tell("commit", named, { result: "found by the probe" }));
        await decided(turn, key);
        continue;
      }
      default:
        throw new Fault("stale", "run effect", { name: named.name, why: "a later attempt has taken over" });
    }
  }
}

async function probed({ named, values, world }: Turn, key: string): Promise<"yes" | "no" | "unclear"> {
  if (values.probe === undefined) return "unclear";
  const code = await exitOf(["sh", "-c", values.probe], { ...world.env, MILLRACE_EFFECT_KEY: key });
  if (code > 1) world.note(`effect ${named.name}: the probe ended with ${code}, which says neither yes nor no`);
  return code === 0 ? "yes" : code === 1 ? "no" : "unclear";
}

/** Until a person has said whether it was done. */
async function decided(turn: Turn, key: string): Promise<void> {
  const { ledger, named, world } = turn;
  await ledger.tell("ask", named);
  world.note(
    `effect ${named.name}: an earlier attempt began it, and it is not known whether it was done. Decide with:\n` +
      `  millrace effect decide ${key} --done    or    --not-done`,
  );
  while ((await ledger.look(key)).phase === "begun") await pause(turn, lookEveryMs);
}

async function pause({ named, untilMono }: Turn, ms: number): Promise<void> {
  if (performance.now() > untilMono)
    throw new Fault("unavailable", "run effect", { name: named.name, why: "it was not decided in time" });
  await new Promise((resolve) => setTimeout(resolve, ms));
}

async function committed({ ledger, named }: Turn): Promise<ExitCode> {
  const { answer } = await ledger.tell("commit", named);
  if (answer === "accepted") return 0;
  const why = "the command was run, but a later attempt has taken over, and it has been told that this is unknown";
  throw new Fault("stale", "commit effect", { name: named.name, why });
}

async function exitOf([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(program, args, { stdio: "inherit", env });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 255;
}
