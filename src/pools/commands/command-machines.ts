/**
 * Machines that one command creates and another destroys. What there is stands in records: a machine is written down
 * before it is created, and struck off after it was destroyed, so a crash in between leaves a record and never a
 * machine without one.
 *
 * CM1 What was not finished is destroyed before its slot is used again, once no command of a former owner can be
 *     running: `destroy` succeeds where there is none. Names of machines are never used twice, so nothing else is
 *     destroyed.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { grantedLabels } from "#pools/demand.ts";
import type { MachineMaker, NewMachine, SeenMachine } from "#pools/machine.ts";
import type { CommandsSettings } from "#pools/pool-config.ts";
import { standingOwner } from "#pools/standing.ts";

const Machine = z.object({
  slot: z.int(),
  id: z.string(),
  name: z.string(),
  template: z.string(),
  worker: z.string(),
  registration: z.string(),
  /** Which node's process creates it, so that another knows whether that can still be so. */
  by: z.string(),
  state: z.enum(["creating", "up", "failed"]),
  problem: z.string().optional(),
  atMs: z.number(),
});

export type CommandPorts = {
  readonly settings: CommandsSettings;
  readonly server: string;
  readonly records: Records;
  readonly node: string;
  readonly clock: Clock;
  readonly changed: () => void;
  readonly log: (line: string) => void;
};

export async function openCommands(ports: CommandPorts): Promise<MachineMaker> {
  const made = new CommandMachines(ports);
  await made.load();
  return made;
}

type Kept = z.output<typeof Machine>;

const slotName = (slot: number): string => String(slot);
const recordsMax = 5_000;
const printedMax = 2_000;

class CommandMachines implements MachineMaker {
  readonly #ports: CommandPorts;
  readonly #records;
  /** Tells this process from the one before it on the same node. */
  readonly #life: string;
  #known: readonly Kept[] | undefined;
  readonly #running = new Set<Promise<unknown>>();
  readonly #removing = new Set<string>();
  readonly #ending = new AbortController();

  constructor(ports: CommandPorts) {
    this.#ports = ports;
    this.#life = `${ports.node}/${randomUUID()}`;
    const limits = { countMax: recordsMax, bytesMax: 16 << 20 };
    this.#records = recordsOf(ports.records, { kind: `pool.machine.${ports.settings.name}`, schema: Machine, limits });
  }

  async load(): Promise<void> {
    const found: Kept[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#records.list({ tenant: standingOwner, limit: 500, cursor });
      found.push(...page.records.map(({ value }) => value));
      ({ cursor } = page);
    } while (cursor !== undefined);
    this.#known = found;
  }

  /** Lets commands end: what they did must be written down. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the pool is closed"));
    await Promise.allSettled(this.#running);
  }

  seen(): readonly SeenMachine[] | undefined {
    const nowMs = this.#ports.clock.wallMs();
    return this.#known?.map(({ by, state, problem, atMs, ...machine }) => {
      const isAbandoned = state === "creating" && by !== this.#life && nowMs - atMs > this.#ports.settings.timeout;
      const isOver = state === "failed" || isAbandoned;
      const leaving = this.#removing.has(machine.id);
      return {
        ...machine,
        phase: leaving ? "leaving" : isOver ? "ended" : state === "creating" ? "starting" : "up",
        ageMs: Math.max(0, nowMs - atMs),
        hasToken: true,
        ...(problem !== undefined && { problem: { reason: "failed" as const, message: problem } }),
      };
    });
  }

  /** Answers as soon as the machine is written down: commands take minutes. */
  async create({ slot, template, worker, registration, token }: NewMachine): Promise<boolean> {
    const { settings, clock } = this.#ports;
    const name = `millrace-${settings.name}-${slot}-${worker.slice(worker.lastIndexOf(".") + 1)}`;
    const about = { slot, id: randomUUID(), name, template, worker, registration };
    const machine: Kept = { ...about, by: this.#life, state: "creating", atMs: clock.wallMs() };
    const { created } = await this.#records.create(standingOwner, slotName(slot), machine);
    if (!created) {
      await this.load(); // another node made it
      return false;
    }
    this.#put(machine);
    this.#follow(this.#make(machine, token));
    return true;
  }

  giveToken(): Promise<boolean> {
    return Promise.resolve(false);
  }

  events(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  remove({ id }: SeenMachine): Promise<void> {
    const machine = this.#known?.find((one) => one.id === id);
    if (machine && !this.#removing.has(id)) {
      this.#removing.add(id);
      this.#follow(this.#unmake(machine).finally(() => this.#removing.delete(id)));
    }
    return Promise.resolve();
  }

  async #make(machine: Kept, token: string): Promise<void> {
    const { settings, server, changed } = this.#ports;
    const template = settings.templates.find(({ name }) => name === machine.template);
    const env = {
      ...this.#envOf(machine),
      MILLRACE_SERVER: server,
      MILLRACE_RUNNER_LABELS: template ? grantedLabels(template).join(",") : "",
      MILLRACE_WORKER_TOKEN: token,
    };
    const problem = await this.#runs(settings.create, env);
    const state = problem === undefined ? "up" : "failed";
    const next: Kept = {
      ...machine,
      state,
      ...(problem !== undefined && { problem: problem.replaceAll(token, "***") }),
    };
    const kept = await this.#records.update(standingOwner, slotName(machine.slot), (now) =>
      now.id === machine.id ? next : now,
    );
    if (kept?.value.id !== machine.id) return await this.#unmake(machine); // another node has given it up meanwhile
    this.#put(next);
    changed();
  }

  /** CM1 */
  async #unmake(machine: Kept): Promise<void> {
    const { settings, changed, log } = this.#ports;
    const problem = await this.#runs(settings.destroy, this.#envOf(machine));
    if (problem !== undefined) return log(`destroy ${machine.name}: ${problem}`); // the next look tries again
    const found = await this.#records.read(standingOwner, slotName(machine.slot));
    if (found?.value.id === machine.id) await this.#records.remove(standingOwner, found.name, found.version);
    this.#known = this.#known?.filter(({ id }) => id !== machine.id);
    changed();
  }

  #put(machine: Kept): void {
    this.#known = [...(this.#known ?? []).filter(({ id }) => id !== machine.id), machine];
  }

  #follow(work: Promise<void>): void {
    const followed = work
      .catch((error: unknown) => this.#ports.log(error instanceof Error ? error.message : String(error)))
      .finally(() => this.#running.delete(followed));
    this.#running.add(followed);
  }

  #envOf({ name, template }: Kept): Readonly<Record<string, string>> {
    return { MILLRACE_MACHINE: name, MILLRACE_TEMPLATE: template, MILLRACE_POOL: this.#ports.settings.name };
  }

  /** Undefined: it succeeded. Otherwise the end of what it printed. */
  async #runs([program = "", ...args]: readonly string[], more: Readonly<Record<string, string>>) {
    const { settings } = this.#ports;
    const { PATH = "", HOME = "" } = process.env;
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH, HOME, ...more },
      timeout: settings.timeout,
      killSignal: "SIGKILL",
    });
    let printed = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => (printed = (printed + part.toString("utf8")).slice(-printedMax)));
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    child.on("error", (cause) =>
      resolve(new Fault("unavailable", "run a command", { program, why: cause.message }).message),
    );
    child.on("close", (code, signal) => {
      const how = signal === null ? `exit code ${code}` : signal === "SIGKILL" ? "it took too long" : signal;
      resolve(code === 0 ? undefined : `${how}: ${printed.trim()}`);
    });
    return await promise;
  }
}
