/** A submitted query. It belongs to the node: a client that goes away changes nothing, and attaches by its id. */
import { setTimeout as pause } from "node:timers/promises";
import { connect, type Ask, type ServerOptions } from "./connect.ts";
import { uploadMaps, type MapCall } from "./map-batches.ts";
import { fetchResult, readPlan, type Fetched } from "./fetched.ts";
import { explainPlan } from "#doors/batch/explain.ts";

export type RunOptions = ServerOptions & {
  readonly tenant?: string;
  /** The same key never makes a second job, however often it is submitted. */
  readonly key?: string;
  /** From -100 to 100: higher runs first, within the tenant (0). */
  readonly priority?: number;
  /** Where names of files begin that are not absolute; left out: the working directory. */
  readonly folder?: string;
  /** Files are read in pieces of about so many bytes. */
  readonly splitBytes?: number;
  /** Smaller sides of joins go to every task whole. */
  readonly broadcastBytes?: number;
  /** How many partitions rows are hashed into; left out: by size. */
  readonly partitions?: number;
  /** Compute all of it, whatever was computed before. */
  readonly fresh?: boolean;
};

export type StageStatus = {
  readonly wave: number;
  readonly about: string;
  readonly tasks: number;
  readonly rows: number;
  readonly bytes: number;
  readonly cpuMs: number;
};

export type JobStatus = {
  readonly phase: string;
  readonly ended: boolean;
  readonly tasks: number;
  readonly done: number;
  readonly stages: readonly StageStatus[];
  readonly failure?: string;
  /** Where the job wrote to, and how much; once it did. */
  readonly written?: Written;
};

export type Written = {
  readonly folder: string;
  readonly version: string;
  readonly files: number;
  readonly rows: number;
};

/** The job did not succeed. */
export class JobError extends Error {
  readonly jobId: string;
  readonly phase: string;

  constructor(jobId: string, phase: string, why: string) {
    super(`${jobId} ${phase}: ${why}`);
    this.name = "JobError";
    this.jobId = jobId;
    this.phase = phase;
  }
}

type View = JobStatus & { readonly plan?: string; readonly result?: readonly string[] };

/** How long to wait before asking again: little compared with how long it has taken so far. */
export const pauseAfter = (tookMs: number): number => Math.max(5, Math.min(500, tookMs / 10));

export class Job<Row = Record<string, unknown>> {
  readonly id: string;
  readonly #ask: Ask;

  constructor(id: string, ask: Ask) {
    this.id = id;
    this.#ask = ask;
  }

  async status(): Promise<JobStatus> {
    return await this.#view();
  }

  /** Resolves when it has succeeded; rejects with a JobError otherwise. */
  async done(): Promise<JobStatus> {
    return await this.#ended();
  }

  /** Its result, all of it. Whole numbers beyond 2^53 are bigints. */
  async rows(): Promise<Row[]> {
    await using result = await this.#result();
    return (await result.rows()) as Row[];
  }

  /** The first rows as a table, to standard output. */
  async show(rowsMax = 20): Promise<void> {
    await using result = await this.#result();
    const { lines, hasMore } = await result.table(rowsMax);
    for (const line of [...lines, ...(hasMore ? ["..."] : [])]) process.stdout.write(`${line}\n`);
  }

  /** How it was planned, in lines. */
  async explain(): Promise<readonly string[]> {
    const { plan } = await this.#ended();
    if (plan === undefined) throw new JobError(this.id, "unknown", "it has no plan");
    return explainPlan(await readPlan(plan, this.#readBlob));
  }

  async cancel(reason = ""): Promise<void> {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ reason }) };
    await this.#ask(`/v1/jobs/${encodeURIComponent(this.id)}/cancel`, "cancel job", init);
  }

  async #result(): Promise<Fetched> {
    const { plan, result } = await this.#ended();
    if (plan === undefined || !result)
      throw new JobError(this.id, "SUCCEEDED", "it has no result: it was planned only");
    return await fetchResult(await readPlan(plan, this.#readBlob), result, this.#readBlob);
  }

  readonly #readBlob = async (digest: string): Promise<AsyncIterable<Uint8Array>> => {
    const { body } = await this.#ask(`/v1/build-cache/blobs/${digest}`, "fetch result");
    return body ?? nothing();
  };

  async #view(): Promise<View> {
    const answer = await this.#ask(`/v1/batch/queries/${encodeURIComponent(this.id)}`, "show query");
    return (await answer.json()) as View;
  }

  async #ended(): Promise<View> {
    for (const startedMs = performance.now(); ;) {
      const view = await this.#view();
      if (view.ended && view.phase !== "SUCCEEDED")
        throw new JobError(this.id, view.phase, view.failure ?? "it does not say why");
      if (view.ended) return view;
      await pause(pauseAfter(performance.now() - startedMs));
    }
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** A job that was submitted before, by whomever. */
export async function attach<Row = Record<string, unknown>>(
  id: string,
  options: ServerOptions = {},
): Promise<Job<Row>> {
  return new Job<Row>(id, await connect(options));
}

export type Submission = {
  readonly sql: string;
  readonly maps?: readonly MapCall[];
  readonly explain?: boolean;
  readonly output?: { readonly folder: string; readonly partitionBy: readonly string[] };
};

export async function submit<Row>(submission: Submission, options: RunOptions): Promise<Job<Row>> {
  const { tenant, key, folder = process.cwd(), splitBytes, broadcastBytes, partitions, fresh, priority = 0 } = options;
  const ask = await connect(options);
  const sizes = {
    ...(splitBytes !== undefined && { splitBytes, reduceBytes: splitBytes }),
    ...(broadcastBytes !== undefined && { broadcastBytes }),
    ...(partitions !== undefined && { partitions }),
    ...(fresh && { fresh }),
  };
  const { maps = [], ...query } = submission;
  const uploaded = maps.length > 0 && { maps: await uploadMaps(maps, ask, tenant) };
  const document = { ...query, ...uploaded, folder, ...sizes };
  const body = JSON.stringify({ door: "batch", document, priority, ...(key !== undefined && { key }) });
  const path = `/v1/jobs${tenant === undefined ? "" : `?tenant=${encodeURIComponent(tenant)}`}`;
  const answer = await ask(path, "submit query", {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  return new Job<Row>(((await answer.json()) as { readonly job: string }).job, ask);
}
