/** A node as `millrace up` starts it, with two slots, and what its processes use while a query runs. */
import { createWriteStream, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { processCpuUs, processMb, processTimes } from "#bench/measure.ts";
import { pauseAfter } from "#doors/batch/api/job.ts";
import type { QueryView } from "#doors/batch/endpoints.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import type { Sizes } from "./workloads.ts";

export type Used = { readonly wallMs: number; readonly cpuMs: number; readonly peakMb: number };

const sampleMs = 50;

export class BenchNode implements AsyncDisposable {
  readonly #node: NodeProcess;
  readonly #folder: string;

  private constructor(node: NodeProcess, folder: string) {
    this.#node = node;
    this.#folder = folder;
  }

  static async open(slots = 2): Promise<BenchNode> {
    const folder = mkdtempSync(join(tmpdir(), "millrace-bench-batch-"));
    const blobs = { kind: "disk", sizeMax: "40GiB" };
    return new BenchNode(await NodeProcess.open(folder, { worker: { slots }, cluster: { shards: 1 }, blobs }), folder);
  }

  async submit(sql: string, more: Sizes & { readonly fresh?: boolean } = {}): Promise<string> {
    const { splitBytes, ...others } = more;
    const document = { sql, ...others, ...(splitBytes !== undefined && { splitBytes, reduceBytes: splitBytes }) };
    const { job } = await this.#ask<{ job: string }>("/v1/jobs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ door: "batch", document }),
    });
    return job;
  }

  async ended(job: string): Promise<QueryView> {
    for (const startedMs = performance.now(); ;) {
      const view = await this.#ask<QueryView>(`/v1/batch/queries/${job}`);
      if (view.ended && view.phase !== "SUCCEEDED") throw new Error(`${job} ${view.phase}: ${view.failure}`);
      if (view.ended) return view;
      await pause(pauseAfter(performance.now() - startedMs));
    }
  }

  /** What node and engines used; memory is the most that all of them had in use when it was looked, each 50 ms. */
  async measured<T>(run: () => Promise<T>): Promise<readonly [T, Used]> {
    let peakMb = 0;
    const look = (): void => {
      const mb = this.#pids().reduce((sum, pid) => sum + (processMb(pid) || 0), 0);
      peakMb = Math.max(peakMb, mb);
    };
    const before = this.#cpuMs();
    const startedMs = performance.now();
    const timer = setInterval(look, sampleMs);
    try {
      const done = await run();
      return [done, { wallMs: performance.now() - startedMs, cpuMs: this.#cpuMs() - before, peakMb }];
    } finally {
      clearInterval(timer);
    }
  }

  /** The packs of a result as files, in order. */
  async fetch({ job, result = [] }: QueryView): Promise<readonly string[]> {
    const paths: string[] = [];
    for (const [i, digest] of result.entries()) {
      const { body } = await fetch(`http://${this.#node.address}/v1/build-cache/blobs/${digest}`, {
        headers: this.#node.headers,
      });
      if (!body) throw new Error(`${digest} has no body`);
      const path = join(this.#folder, `${job}-${i}.parquet`);
      await finished(Readable.fromWeb(body as never).pipe(createWriteStream(path)));
      paths.push(path);
    }
    return paths;
  }

  #pids(): readonly number[] {
    const { pid } = this.#node;
    const children = readdirSync("/proc").filter(
      (name) => /^\d+$/.test(name) && processTimes(Number(name))?.parent === pid,
    );
    return [pid, ...children.map(Number)];
  }

  #cpuMs(): number {
    const ended = processTimes(this.#node.pid)?.endedUs ?? 0;
    return this.#pids().reduce((sum, pid) => sum + processCpuUs(pid), ended) / 1_000;
  }

  async #ask<T>(path: string, init: RequestInit = {}): Promise<T> {
    const headers = { ...this.#node.headers, ...(init.headers as Record<string, string>) };
    const answer = await fetch(`http://${this.#node.address}${path}`, { ...init, headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#node[Symbol.asyncDispose]();
    clearAway(this.#folder);
  }
}
