/** What is done to a fleet while a build goes through it: seeded choices, real processes. */
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "#base/random.ts";
import type { PostgresServer } from "#test/postgres.ts";
import type { Fleet, Member } from "./fleet.ts";
import type { Wires } from "./wires.ts";

export type TroublePorts = {
  readonly fleet: Fleet;
  readonly postgres: PostgresServer;
  readonly random: Random;
  readonly say: (line: string) => void;
  /** Left out where nodes have no networks of their own to be cut. */
  readonly wires?: Pick<Wires, "cut" | "mend"> | undefined;
};

export type Troubles = {
  readonly kills: number;
  readonly stops: number;
  readonly outages: number;
  readonly cuts: number;
};

const everyMs = { least: 2_500, more: 2_500 };

/** Goes on until the signal, and leaves everything running again. The database goes away once. */
export async function trouble(ports: TroublePorts, signal: AbortSignal): Promise<Troubles> {
  const { fleet, random } = ports;
  const done = { kills: 0, stops: 0, outages: 0, cuts: 0 };
  const rest = (ms: number): Promise<void> => pause(ms, undefined, { signal }).catch(() => {});
  for (let turn = 0; ; turn += 1) {
    await rest(everyMs.least + random.fraction() * everyMs.more);
    if (signal.aborted) return done;
    const victim = random.pick(fleet.members);
    const other = random.pick(fleet.members.filter((member) => member !== victim));
    const [killing, stopping] = [kill(ports, victim, rest), turn % 2 === 1 ? stop(ports, other, rest) : undefined];
    done.kills += 1;
    if (turn === 2) {
      await outage(ports, rest);
      done.outages += 1;
    }
    await killing;
    if (stopping) {
      await stopping;
      done.stops += 1;
    }
    if (ports.wires && other.net && !signal.aborted) {
      await cut(ports, other, { wires: ports.wires, wire: other.net.wire }, rest);
      done.cuts += 1;
    }
  }
}

type Rest = (ms: number) => Promise<void>;

/** Killed with -9; started again at once, or when the others have taken over. */
async function kill({ fleet, random, say }: TroublePorts, victim: Member, rest: Rest): Promise<void> {
  const awayMs = random.chance(0.5) ? 0 : fleet.plan.leaseMs * 1.5;
  say(`kill -9 ${victim.name}, away for ${awayMs} ms`);
  await fleet.kill(victim);
  await rest(awayMs);
  fleet.up(victim);
  await fleet.ready(victim, 100);
}

/** Asleep until long after its leases are over; then it goes on as if nothing had been. */
async function stop({ fleet, say }: TroublePorts, victim: Member, rest: Rest): Promise<void> {
  const forMs = fleet.plan.leaseMs * 2;
  say(`SIGSTOP ${victim.name} for ${forMs} ms`);
  victim.child?.signal("SIGSTOP");
  await rest(forMs);
  victim.child?.signal("SIGCONT");
}

async function outage({ fleet, postgres, say }: TroublePorts, rest: Rest): Promise<void> {
  const forMs = fleet.plan.leaseMs * 3;
  say(`PostgreSQL is away for ${forMs} ms`);
  await postgres.stop("fast");
  await rest(forMs);
  await postgres.start();
}

/** Nobody is told: what was said on the way is lost, and connections stay open until somebody gives up on them. */
async function cut(
  { fleet, say }: TroublePorts,
  victim: Member,
  { wires, wire }: { readonly wires: Pick<Wires, "cut" | "mend">; readonly wire: number },
  rest: Rest,
): Promise<void> {
  const forMs = fleet.plan.leaseMs * 2;
  say(`the network of ${victim.name} is cut for ${forMs} ms`);
  wires.cut(wire);
  await rest(forMs);
  wires.mend(wire);
}
