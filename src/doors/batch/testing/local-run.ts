/** A query in stages without a kernel: for tests of plans, tasks and answers. Packs are files of a folder. */
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PlanDocument, StageDocument, TaskResult } from "#doors/batch/documents.ts";
import { nextStages } from "#doors/batch/plan-stages.ts";
import { factsOf, manifestOf } from "#doors/batch/stage-facts.ts";
import type { CutSettings } from "#doors/batch/plan/settings.ts";
import type { PlanType } from "#doors/batch/plan/plan-json.ts";
import type { StageFacts } from "#doors/batch/plan/stage.ts";
import { sourceFiles } from "#doors/batch/grants/source-files.ts";
import { Engines, type RunsWork } from "#doors/batch/run/engines.ts";
import { prepareQuery, type Query } from "#doors/batch/run/prepare.ts";
import { packIn, runPart, type FunctionPorts, type PartPorts } from "#doors/batch/run/task.ts";
import type { Clock } from "#base/clock.ts";

export type LocalAnswer = {
  readonly plan: PlanDocument;
  /** In order. */
  readonly paths: readonly string[];
  readonly stages: readonly StageDocument[];
  readonly types: readonly PlanType[];
};

export type LocalOptions = {
  readonly maps?: Query["maps"];
  readonly functions?: FunctionPorts;
  readonly signal?: AbortSignal;
};

const limits = { memoryBytes: 1024 ** 3, spillBytes: 4 * 1024 ** 3 };

export class LocalRuns implements AsyncDisposable {
  readonly engines: RunsWork & Partial<AsyncDisposable>;
  readonly folder: string;
  #tasks = 0;

  private constructor(folder: string, engines: LocalRuns["engines"]) {
    this.folder = folder;
    this.engines = engines;
  }

  static async open(clock: Clock, enginesMax = 2): Promise<LocalRuns> {
    return await LocalRuns.on(new Engines({ clock, enginesMax }));
  }

  static async on(engines: LocalRuns["engines"]): Promise<LocalRuns> {
    return new LocalRuns(await mkdtemp(join(tmpdir(), "millrace-batch-")), engines);
  }

  /** How many have run. */
  get tasks(): number {
    return this.#tasks;
  }

  async run(
    sql: string,
    settings: CutSettings,
    { maps, functions, signal = new AbortController().signal }: LocalOptions = {},
  ): Promise<LocalAnswer> {
    const scratch = await mkdtemp(join(this.folder, "plan-"));
    const query = { sql, settings, ...(maps && { maps }) };
    const files = sourceFiles({ tenant: "default", isGranted: false, folder: this.folder }, { grants: [] });
    const plan = await prepareQuery(query, { engines: this.engines, files, signal, scratch });
    const facts = new Map<string, StageFacts>();
    const packs = new Map<string, { types: readonly PlanType[]; paths: readonly string[] }>();
    const stages: StageDocument[] = [];
    for (;;) {
      const next = nextStages(plan, facts);
      for (const document of next.stages) {
        stages.push(document);
        const results = await Promise.all(
          document.parts.map((_, part) =>
            this.#part(document, part, packs, { signal, ...(functions && { functions }) }),
          ),
        );
        const { id, types } = document.stage;
        facts.set(id, factsOf(results));
        const paths = manifestOf(id, results).packs.map(({ digest }) => this.#pack(digest));
        packs.set(id, { types, paths });
        if (next.isLast) return { plan, paths, stages, types };
      }
    }
  }

  #pack(digest: string): string {
    return join(this.folder, `pack-${digest.replace("/", "-")}`);
  }

  async #part(
    document: StageDocument,
    part: number,
    packs: ReadonlyMap<string, { types: readonly PlanType[]; paths: readonly string[] }>,
    ports: Pick<PartPorts, "signal" | "functions">,
  ): Promise<TaskResult> {
    this.#tasks += 1;
    const folder = join(this.folder, `task-${this.#tasks}`);
    await mkdir(folder);
    const result = await runPart(document, part, { packs, folder }, { engines: this.engines, limits, ...ports });
    await rename(packIn(folder), this.#pack(result.pack));
    await rm(folder, { recursive: true, force: true });
    return { ...result, by: { task: "", generation: 1 } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engines[Symbol.asyncDispose]?.();
    await rm(this.folder, { recursive: true, force: true });
  }
}
