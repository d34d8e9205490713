/** Takes the test reports in artifacts that are called so, for workflows that upload them and send none. */
import { isFault } from "#base/fault.ts";
import type { Store } from "#blobs/store.ts";
import { readContent } from "#doors/ci/services/content.ts";
import type { SealedArtifact } from "#doors/ci/services/artifacts/artifacts.ts";
import { reportBytesMax } from "./junit.ts";
import type { TestReports } from "./reports.ts";
import { zipEntries } from "./zip.ts";

export type ArtifactReportPorts = {
  readonly reports: Pick<TestReports, "add">;
  readonly store: Store;
  /** Errors of this node; an artifact that is no report is none. */
  readonly report: (error: unknown) => void;
};

const archiveBytesMax = 32 * 1024 * 1024;
const entriesMax = 2_000;
const reportsMax = 100;
const nameLengthMax = 200;

/** `junit`, `test-results-linux`, `my_test_reports`. */
export const isOfReports = (name: string): boolean =>
  /(?:^|[^a-z])(?:junit|tests?[-_. ]?(?:results?|reports?))(?:[^a-z]|$)/i.test(name);

/** Never throws: the artifact is there, whatever is in it. */
export async function takeReports(
  { reports, store, report }: ArtifactReportPorts,
  job: { readonly tenant: string; readonly run: string; readonly task: string },
  { name, mimeType, sealed: { content } }: SealedArtifact,
): Promise<void> {
  if (!isOfReports(name) || content.sizeBytes > archiveBytesMax) return;
  try {
    const { blobs } = store.forTenant(job.tenant);
    const parts: Uint8Array[] = [];
    for await (const part of readContent(blobs, content)) parts.push(Uint8Array.from(part));
    for (const one of await reportsIn(Buffer.concat(parts), name, mimeType))
      await reports.add({ tenant: job.tenant, job: job.run, task: job.task }, one).catch((error: unknown) => {
        if (!isFault(error, "invalid")) throw error; // XML of something else
      });
  } catch (error) {
    if (!isFault(error, "invalid") && !isFault(error, "exhausted")) report(error);
  }
}

type Found = { readonly name: string; readonly bytes: Uint8Array };

/** A single file as it is, or those of an archive; each has the name of its path. */
async function reportsIn(bytes: Buffer, artifact: string, mimeType: string): Promise<readonly Found[]> {
  const named = (path: string): string => `${artifact}.${path}`.replaceAll(/[\p{C}\\/]+/gu, ".").slice(-nameLengthMax);
  if (mimeType !== "application/zip") return bytes[0] === lessThan ? [{ name: named("xml"), bytes }] : [];
  const found: Found[] = [];
  for (const { path, read } of zipEntries(bytes, entriesMax)) {
    if (found.length >= reportsMax) break;
    const contents = path.toLowerCase().endsWith(".xml") ? await read(reportBytesMax) : undefined;
    if (contents) found.push({ name: named(path), bytes: contents });
  }
  return found;
}

const lessThan = 0x3c;
