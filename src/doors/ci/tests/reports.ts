/**
 * Test reports of jobs: each is kept with its run, and what it says of each test goes into the history of the
 * repository, which is one blob that a record names.
 *
 * TE1 A report of a job counts once, however often it is sent: its name and bytes say whether it was seen.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { isDigest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { Store } from "#blobs/store.ts";
import type { Records } from "#records/watch.ts";
import { recordsOf } from "#records/typed.ts";
import type { Keeps } from "#retention/keeps.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { cellName } from "#doors/ci/cell-key.ts";
import { aboutOfTags } from "#doors/ci/runs/tags.ts";
import { History, merged } from "./history.ts";
import { readJunit, reportBytesMax, type TestCase } from "./junit.ts";

const DigestText = z.string().refine(isDigest, "not a digest");
const Failed = z.object({ suite: z.string(), name: z.string(), message: z.string().optional() });

export const Report = z.object({
  run: z.string(),
  job: z.string(),
  name: z.string(),
  atMs: z.number(),
  digest: DigestText,
  passed: z.int(),
  failed: z.int(),
  skipped: z.int(),
  ms: z.number(),
  failures: z.array(Failed),
});
export type Report = z.output<typeof Report>;

const Kept = z.object({ digest: DigestText, tests: z.int(), atMs: z.number() });

const reportKind = "ci.test-report";
const keptMs = 30 * 86_400_000;
const historyMs = 90 * 86_400_000;
const failuresMax = 100;
const reportsPerRunMax = 200;
const triesMax = 10;
const historyBytesMax = 64 * 1024 * 1024;

export type ReportPorts = {
  readonly records: Records;
  readonly keeps: Pick<Keeps, "keep">;
  readonly store: Store;
  readonly client: Pick<WorkClient, "job" | "task">;
  readonly clock: Pick<Clock, "wallMs">;
};

export class TestReports {
  readonly #ports: ReportPorts;
  readonly #reports;
  readonly #histories;

  constructor(ports: ReportPorts) {
    this.#ports = ports;
    const limits = { countMax: 50_000, bytesMax: 256 * 1024 * 1024 };
    this.#reports = recordsOf(ports.records, { kind: reportKind, schema: Report, limits });
    this.#histories = recordsOf(ports.records, { kind: "ci.tests", schema: Kept });
  }

  async add(
    { tenant, job: run, task }: { readonly tenant: string; readonly job: string; readonly task: string },
    { name, bytes }: { readonly name: string; readonly bytes: Uint8Array },
  ): Promise<Report> {
    const { client, clock, store, keeps } = this.#ports;
    const cases = readJunit(new TextDecoder("utf-8", { fatal: false }).decode(bytes));
    const [{ view }, { key }] = await Promise.all([client.job(run, { tasksMax: 0 }), client.task(task)]);
    const { repository, sha } = aboutOfTags(view.name, view.tags);
    if (repository === "")
      throw new Fault("invalid", "take a test report", { why: "the task is no job of a workflow" });
    const digest = digestOf(bytes);
    const atMs = clock.wallMs();
    const id = `${run}/${task}/${name}`;
    const before = await this.#reports.read(tenant, id);
    if (before?.value.digest === digest) return before.value; // TE1
    if (!before && (await this.ofRun(tenant, run)).length >= reportsPerRunMax)
      throw new Fault("exhausted", "take a test report", { why: `a run has at most ${reportsPerRunMax}` });
    await store.forTenant(tenant).blobs.write(digest, bytes);
    const drops = [{ kind: reportKind, name: id }];
    const about = `test report ${name} of run ${run}`.slice(0, 400);
    await keeps.keep({
      tenant,
      name: `ci-tests/${id}`,
      door: "ci",
      about,
      untilMs: atMs + keptMs,
      digests: [digest],
      drops,
    });
    const report = { run, job: cellName(key), name, atMs, digest, ...countsOf(cases) };
    await this.#merge(tenant, repository.toLowerCase(), cases, { job: report.job, sha, run, atMs });
    const { created } = await this.#reports.create(tenant, id, report);
    if (!created) await this.#reports.update(tenant, id, () => report);
    return report;
  }

  async ofRun(tenant: string, run: string): Promise<readonly Report[]> {
    const { records } = await this.#reports.list({ tenant, prefix: `${run}/`, limit: reportsPerRunMax });
    return records.map(({ value }) => value);
  }

  /** Empty for a repository without reports. */
  async history(tenant: string, repository: string): Promise<History> {
    const found = await this.#histories.read(tenant, repository.toLowerCase());
    return found ? await this.#read(tenant, found.value.digest) : { tests: [] };
  }

  async #merge(
    tenant: string,
    repository: string,
    cases: readonly TestCase[],
    about: Parameters<typeof merged>[2],
  ): Promise<void> {
    const { store, keeps } = this.#ports;
    for (let tries = 0; tries < triesMax; tries += 1) {
      const found = await this.#histories.read(tenant, repository);
      const history = merged(found ? await this.#read(tenant, found.value.digest) : { tests: [] }, cases, about);
      const bytes = Buffer.from(JSON.stringify(history));
      const digest = digestOf(bytes);
      await store.forTenant(tenant).blobs.write(digest, bytes);
      const untilMs = about.atMs + historyMs;
      const words = `tests of ${repository}`.slice(0, 400);
      await keeps.keep({
        tenant,
        name: `ci-tests/${repository}`,
        door: "ci",
        about: words,
        untilMs,
        digests: [digest],
      });
      const kept = { digest, tests: history.tests.length, atMs: about.atMs };
      if (!found) {
        if ((await this.#histories.create(tenant, repository, kept)).created) return;
      } else if (await this.#histories.replace(found, kept)) return;
    }
    throw new Fault("unavailable", "take a test report", { why: "other reports of the repository come all the time" });
  }

  /** Begins again where the store has lost it. */
  async #read(tenant: string, digest: Report["digest"]): Promise<History> {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const part of this.#ports.store.forTenant(tenant).blobs.read(digest)) {
        bytes += part.length;
        if (bytes > historyBytesMax) throw new Fault("corrupt", "read the history of tests", { digest });
        parts.push(Uint8Array.from(part));
      }
    } catch (error) {
      if (isFault(error, "not-found")) return { tests: [] };
      throw error;
    }
    return History.parse(JSON.parse(Buffer.concat(parts).toString("utf8")));
  }
}

function countsOf(cases: readonly TestCase[]) {
  const of = (outcome: TestCase["outcome"]): number => cases.filter((one) => one.outcome === outcome).length;
  const failures = cases
    .filter(({ outcome }) => outcome === "failed")
    .slice(0, failuresMax)
    .map(({ suite, name, message }) => ({ suite, name, ...(message !== undefined && { message }) }));
  const ms = cases.reduce((sum, one) => sum + one.ms, 0);
  return { passed: of("passed"), failed: of("failed"), skipped: of("skipped"), ms, failures };
}

/** All of a report, which is refused beyond its limit. */
export async function reportBytes(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > reportBytesMax)
      throw new Fault("invalid", "take a test report", { why: `it is longer than ${reportBytesMax} bytes` });
    parts.push(part);
  }
  return Buffer.concat(parts);
}
