/** Injects failures into a fleet during a build: seeded choices, real processes. */
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "#base/random.ts";
import type { PostgresServer } from "#testing/postgres.ts";
import type { Balancer } from "./balancer.ts";
import type { Fleet, Member } from "./fleet.ts";
import { planTurn, type Seen, type Turn, type Wants } from "./trouble-plan.ts";
import type { Sleep } from "./verdict.ts";
import type { Wires } from "./wires.ts";

export type TroublePorts = {
  readonly fleet: Fleet;
  readonly postgres: PostgresServer;
  readonly balancer: Pick<Balancer, "carried">;
  readonly random: Random;
  readonly wants: Wants;
  /** Whether actions have started. Before that there is nothing to disturb. */
  readonly isUnderWay: () => Promise<boolean>;
  readonly say: (line: string) => void;
  /** Left out where nodes have no separate networks to be cut. */
  readonly wires?: Pick<Wires, "cut" | "mend"> | undefined;
};

/** Only failures that lasted as long as planned; the end of the build interrupts the others. */
export type Troubles = Omit<Seen, "claimsLost">;

type Done = { -readonly [what in keyof Troubles]: number } & { readonly sleeps: Sleep[] };

export const noTroubles = (): Done => ({ kills: 0, killsCarried: 0, stops: 0, outages: 0, cuts: 0, sleeps: [] });

const firstAfterMs = { least: 500, more: 500 };
const everyMs = { least: 2_500, more: 2_500 };
/** Between the beginnings of a turn's failures. */
const beatMs = 500;
/** How long a worker that is to be suspended has to start something. */
const busyWithinMs = 5_000;

/** Goes on until the signal, and leaves everything running again. The database goes down once. */
export async function trouble(ports: TroublePorts, signal: AbortSignal): Promise<Readonly<Done>> {
  const { fleet, balancer, random, wants } = ports;
  const done = noTroubles();
  const rest: Rest = (ms) =>
    pause(ms, undefined, { signal }).then(
      () => true,
      () => false,
    );
  while (!signal.aborted && !(await ports.isUnderWay())) await rest(100);
  for (let turn = 0; ; turn += 1) {
    const { least, more } = turn === 0 ? firstAfterMs : everyMs;
    if (!(await rest(least + random.fraction() * more))) return done;
    const members = fleet.members.map(({ name, edge }) => ({ name, carried: balancer.carried.get(edge) ?? 0 }));
    await play(planTurn(turn, { members, random, leaseMs: fleet.plan.leaseMs, wants }), ports, { done, rest });
  }
}

/** False when it was interrupted. */
type Rest = (ms: number) => Promise<boolean>;

type Course = { readonly done: Done; readonly rest: Rest };

async function play(turn: Turn, ports: TroublePorts, course: Course): Promise<void> {
  const { rest } = course;
  const begun = [kill(turn.kill, ports, course)];
  if (turn.stop && (await rest(beatMs))) begun.push(stop(turn.stop, ports, course));
  if (turn.outage && (await rest(beatMs))) begun.push(outage(turn.outage, ports, course));
  await Promise.all(begun);
  if (turn.cut) await cut(turn.cut, ports, course);
}

async function kill(
  { victim, awayMs }: Turn["kill"],
  { fleet, balancer, say }: TroublePorts,
  { done, rest }: Course,
): Promise<void> {
  const member = fleet.member(victim);
  const carried = balancer.carried.get(member.edge) ?? 0;
  say(`kill -9 ${victim}, which has ${carried} of Bazel's connections, away for ${awayMs} ms`);
  await fleet.kill(member);
  done.kills += 1;
  if (carried > 0) done.killsCarried += 1;
  await rest(awayMs);
  fleet.up(member);
  await fleet.ready(member, 100);
}

/** Suspended until long after its leases are over; then it continues. */
async function stop(
  { victim, forMs }: NonNullable<Turn["stop"]>,
  { fleet, say }: TroublePorts,
  { done, rest }: Course,
): Promise<void> {
  const member = fleet.member(victim);
  const { child } = member;
  await untilBusy(member, fleet, rest);
  say(`SIGSTOP ${victim} for ${forMs} ms`);
  const fromMs = Date.now();
  child?.signal("SIGSTOP");
  if (await rest(forMs)) done.stops += 1;
  done.sleeps.push({ name: victim, fromMs, toMs: Date.now() });
  child?.signal("SIGCONT");
  say(`SIGCONT ${victim}`);
}

/** An idle worker would have no claim to lose. */
async function untilBusy(member: Member, fleet: Fleet, rest: Rest): Promise<void> {
  for (const untilMs = performance.now() + busyWithinMs; performance.now() < untilMs;) {
    const running = await fleet.running(member).catch(() => 0);
    if (running > 0 || !(await rest(20))) return;
  }
}

async function outage(
  { forMs }: NonNullable<Turn["outage"]>,
  { postgres, say }: TroublePorts,
  { done, rest }: Course,
): Promise<void> {
  say(`PostgreSQL is away for ${forMs} ms`);
  await postgres.stop("fast");
  if (await rest(forMs)) done.outages += 1;
  await postgres.start();
}

/** Silently: packets on the way are lost, and connections stay open until one side gives up. */
async function cut(
  { victim, forMs }: NonNullable<Turn["cut"]>,
  { fleet, wires, say }: TroublePorts,
  { done, rest }: Course,
): Promise<void> {
  const { net } = fleet.member(victim);
  if (!wires || !net || !(await rest(0))) return;
  say(`the network of ${victim} is cut for ${forMs} ms`);
  wires.cut(net.wire);
  if (await rest(forMs)) done.cuts += 1;
  wires.mend(net.wire);
}
