/**
 * `on: schedule` (CI-58): the crons of the default branch are kept as schedules of the cluster, in step with what is
 * pushed to it; each instant starts one run, whichever node looks after it (SC1, SC2).
 */
import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { cadenceOf } from "#schedules/cron.ts";
import type { CatchUp } from "#schedules/due.ts";
import { type Schedule, type Schedules, schedulesIn } from "#schedules/schedule.ts";
import { type Instant, ScheduleTimer, type TimerEvent } from "#schedules/timer.ts";
import type { Repository } from "#sources/book.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { Dictionary } from "#doors/ci/workflow/expression/value.ts";
import { allPages } from "#doors/ci/runs/all-pages.ts";
import { foreignOf } from "./called-files.ts";
import { workflowsOf } from "./files.ts";
import { startRun } from "#doors/ci/runs/start.ts";
import type { TriggerPorts } from "./trigger-event.ts";

/** What a schedule of the door remembers besides its times. */
const About = z.object({ repository: z.string(), path: z.string(), isTrusted: z.boolean() });
type About = z.output<typeof About>;

export type WorkflowSchedule = {
  readonly path: string;
  readonly cron: string;
  readonly zone: string;
  /** Undefined: it has none, or its workflow is disabled. */
  readonly nextMs?: number;
  readonly last?: { readonly atMs: number; readonly run: string };
  readonly trouble?: string;
};

export type CiScheduling = {
  readonly records: Records;
  readonly clock: Clock;
  readonly catchUp: CatchUp;
};

/** Of one repository: more crons than these are not kept. */
const schedulesOfRepositoryMax = 100;

export class CiSchedules {
  readonly #kept: Schedules;
  readonly #clock: Clock;
  readonly #catchUp: CatchUp;

  constructor({ records, clock, catchUp }: CiScheduling) {
    this.#kept = schedulesIn(records, "ci.schedule");
    this.#clock = clock;
    this.#catchUp = catchUp;
  }

  /**
   * Makes the schedules of a repository those of these files. What stays keeps its time. `isTrusted` is whether an
   * operator pushed them; undefined: they were only looked at, which changes no trust and gives none.
   */
  async sync(repository: Repository, files: readonly SourceFile[], isTrusted?: boolean): Promise<void> {
    const wanted = new Map(
      cronsIn(files)
        .slice(0, schedulesOfRepositoryMax)
        .map((one) => [nameOf(repository, one), one]),
    );
    for (const { name, tenant, value } of await this.#of(repository)) {
      const about = aboutOf(value);
      if (!wanted.has(name)) await this.#kept.remove(tenant, name);
      else if (about.isTrusted && isTrusted === false)
        await this.#kept.update(tenant, name, (was) => ({ ...was, document: JSON.stringify({ ...about, isTrusted }) }));
      wanted.delete(name);
    }
    for (const [name, { path, cron, zone }] of wanted) {
      const about: About = { repository: repository.name, path, isTrusted: isTrusted === true };
      await this.#kept.create(repository.tenant, name, {
        cron,
        zone,
        catchUp: this.#catchUp,
        priority: 0,
        document: JSON.stringify(about),
        id: randomUUID(),
        paused: false,
        by: "schedule",
        settledMs: this.#clock.wallMs(),
      });
    }
  }

  async list(repository: Repository): Promise<readonly WorkflowSchedule[]> {
    return (await this.#of(repository)).map(({ value: { cron, zone, settledMs, last, trouble, document } }) => {
      const nextMs = cadenceOf(cron, zone).after(Math.max(settledMs, this.#clock.wallMs()));
      return {
        path: aboutOf({ document }).path,
        cron,
        zone,
        ...(nextMs !== undefined && { nextMs }),
        ...(last && { last: { atMs: last.atMs, run: last.job } }),
        ...(trouble && { trouble: trouble.why }),
      };
    });
  }

  timer(ports: TriggerPorts, { owns, ...rest }: Pick<Timing, "owns" | "log" | "observe">): ScheduleTimer {
    const start = (schedule: Typed<Schedule>, instant: Instant) => startScheduled(ports, schedule, instant);
    return new ScheduleTimer({ schedules: this.#kept, clock: this.#clock, owns, start, ...rest });
  }

  async #of({ tenant, name }: Repository): Promise<readonly Typed<Schedule>[]> {
    const all = await allPages(this.#kept, tenant);
    return all.filter(({ value }) => aboutOf(value).repository.toLowerCase() === name.toLowerCase());
  }
}

type Timing = {
  readonly owns: (key: string) => boolean;
  readonly log: (line: string) => void;
  readonly observe?: (event: TimerEvent) => void;
};

const aboutOf = ({ document = "{}" }: Pick<Schedule, "document">): About => About.parse(JSON.parse(document));

type CronOf = { readonly path: string; readonly cron: string; readonly zone: string };

function cronsIn(files: readonly SourceFile[]): readonly CronOf[] {
  return files.flatMap((file) => {
    const compiled = compileOnce(file);
    if (!compiled.ok) return [];
    return compiled.workflow.on.schedules.flatMap(({ cron, timezone: zone = "UTC" }) => {
      try {
        cadenceOf(cron, zone);
        return [{ path: file.path, cron, zone }];
      } catch (error) {
        if (isFault(error, "invalid")) return []; // a zone that is unknown here
        throw error;
      }
    });
  });
}

/** Names the node that keeps the repository, which alone can look after it. */
function nameOf({ name, node }: Repository, { path, cron, zone }: CronOf): string {
  const words = JSON.stringify([name.toLowerCase(), path, cron, zone]);
  const hash = createHash("sha256").update(words).digest("hex").slice(0, 40);
  return node === undefined ? hash : `kept ${encodeURIComponent(node)} ${hash}`;
}

/** At the latest commit of the default branch, if that still says so. */
async function startScheduled(
  ports: TriggerPorts,
  { tenant, value }: Typed<Schedule>,
  { key }: Instant,
): Promise<{ readonly jobId: string }> {
  const { repository: name, path, isTrusted } = aboutOf(value);
  const repository = await found(ports.sources.get(tenant, name));
  const commit = await ports.sources.copies.resolve(repository);
  const files = await workflowsOf(ports.sources, repository, commit.sha);
  await ports.seen?.(repository, files);
  const isThere = cronsIn(files).some((one) => nameOf(repository, one) === nameOf(repository, { path, ...value }));
  if (!isThere) throw notNow(path, `the default branch no longer has ${value.cron}`);
  if ((await ports.switches.disabled(repository)).has(path)) throw notNow(path, "the workflow is disabled");
  return await startRun(ports, {
    tenant,
    repository: repository.name,
    commit,
    files,
    foreign: foreignOf(ports.sources, tenant),
    path,
    event: { name: "schedule", payload: { schedule: value.cron } },
    inputs: new Dictionary(),
    actor: value.by,
    isTrusted,
    key,
    payload: key,
  });
}

const notNow = (workflow: string, why: string): Fault =>
  new Fault("invalid", "start a scheduled run", { workflow, why });

/** A repository that was removed has no runs, however often one tries. */
async function found(repository: Promise<Repository>): Promise<Repository> {
  return await repository.catch((error: unknown) => {
    if (isFault(error, "not-found")) throw new Fault("invalid", "start a scheduled run", { why: error.message });
    throw error;
  });
}
