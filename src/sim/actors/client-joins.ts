/**
 * A client that comes back to a job: joins it, starts none, and leaves again or not. Mostly it comes while the job
 * ends, like clients that lost their connection and look for the job they waited for.
 */
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Command, Submit } from "#kernel/model/command.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { Router, Settled } from "#shard/router/router.ts";
import type { Life } from "#sim/world/machine.ts";
import { joining } from "./workloads.ts";

export type JoinPorts = {
  readonly life: Life;
  readonly router: Router;
  readonly random: Random;
  readonly ask: (command: Command) => Promise<Settled | undefined>;
};

/** `name` distinguishes it from all others. */
export type ComingBack = {
  readonly name: string;
  readonly shard: number;
  readonly job: number;
  readonly submit: Submit;
};

const joinsMax = 6;
const patienceMs = 20_000;

export async function comesBack(back: ComingBack, ports: JoinPorts): Promise<void> {
  const { shard, job } = back;
  const { life, router, random } = ports;
  const abort = new AbortController();
  const cancel = life.clock.after(patienceMs, () => abort.abort(new Error("waited long enough")));
  const joins = [joinOnce(back, 0, ports)];
  try {
    for await (const { kind } of router.watch({ shard, job }, abort.signal)) {
      const isLast = kind === "end" || kind === "rejected";
      if (joins.length < joinsMax && (isLast || random.chance(0.5))) joins.push(joinOnce(back, joins.length, ports));
      if (isLast) break;
    }
  } catch (error) {
    if (!isFault(error) && !abort.signal.aborted) throw error;
  }
  cancel();
  await Promise.all(joins);
}

async function joinOnce({ name, submit }: ComingBack, serial: number, { life, random, ask }: JoinPorts): Promise<void> {
  const subscriber = `${name}-back-${serial}`;
  const isKeyed = random.chance(0.3);
  const command: Submit = {
    ...joining(submit, submit.mergeKey ?? "merge-0"),
    priority: random.between(-100, 100),
    ...(random.chance(0.8) ? { subscriber } : {}),
    ...(isKeyed ? { requestKey: `join-${name}-${serial}` } : {}),
  };
  const got = await ask(command);
  await life.clock.sleep(random.below(2_000));
  if (isKeyed && random.chance(0.5)) await ask(command);
  if (got?.kind !== "reply" || random.chance(0.4)) return;
  await ask({ kind: "leave", job: (got.reply as Replies["submit"]).job, subscriber });
}
