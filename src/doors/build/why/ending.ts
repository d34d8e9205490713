/** How a run ended, from the answer that its worker stored, as text for people. */
import { stripVTControlCharacters } from "node:util";
import { digestText, parseDigest, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { formatDuration, formatSize } from "#base/units.ts";
import type { BlobStore } from "#blobs/store.ts";
import type {
  ActionResult,
  Digest as WireDigest,
  ExecuteResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import { decode } from "#wire/message.ts";
import { readAnswer, type AnswerAt } from "#doors/build/run/outcome.ts";

/** Where the whole output is, and how it begins. */
export type Printed = { readonly blob: string; readonly head: string };

export type Ending = {
  /** Left out if the command was never run. */
  readonly exitCode?: number;
  /** Left out for OK. */
  readonly status?: { readonly code: number; readonly message: string };
  readonly worker: string;
  readonly sandbox: string;
  readonly ranMs?: number;
  readonly message: string;
  readonly stdout?: Printed;
  readonly stderr?: Printed;
  /** The worker's notes. */
  readonly logs: readonly string[];
};

const headBytesMax = 2_048;
const headLinesMax = 20;

/** Undefined when the answer is no longer kept. */
export async function endingOf(answer: AnswerAt, action: string, blobs: BlobStore): Promise<Ending | undefined> {
  const { fn = "sha256" } = parseDigest(action) ?? {};
  const response = await orNothing(readAnswer(answer, blobs));
  if (!response) return undefined;
  const { result, status, message, serverLogs } = response;
  const stdout = await printedIn(result?.stdoutDigest, fn, blobs);
  const stderr = await printedIn(result?.stderrDigest, fn, blobs);
  return {
    ...(result && { exitCode: result.exitCode }),
    ...(status && status.code !== 0 && { status: { code: status.code, message: status.message } }),
    worker: result?.executionMetadata?.worker ?? "",
    ...usageIn(result),
    message,
    ...(stdout && { stdout }),
    ...(stderr && { stderr }),
    logs: logsIn(serverLogs, fn),
  };
}

async function orNothing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isFault(error, "not-found")) return undefined;
    throw error;
  }
}

async function printedIn(wire: WireDigest | undefined, fn: DigestFunction, blobs: BlobStore) {
  if (!wire || wire.sizeBytes === 0) return undefined;
  const blob = digestText(fn, wire.hash, wire.sizeBytes);
  const parts: Uint8Array[] = [];
  const reading = async (): Promise<void> => {
    const length = Math.min(wire.sizeBytes, headBytesMax);
    for await (const part of blobs.read(blob, { offset: 0, length })) parts.push(Uint8Array.from(part));
  };
  await orNothing(reading());
  return { blob, head: Buffer.concat(parts).toString("utf8") };
}

/** As run/usage.ts wrote it; nothing is known of results from elsewhere. */
function usageIn(result: ActionResult | undefined): Pick<Ending, "sandbox" | "ranMs"> {
  const [usage] = result?.executionMetadata?.auxiliaryMetadata ?? [];
  try {
    const measured = usage ? (JSON.parse(decode(StringValue, usage.value).value) as Record<string, unknown>) : {};
    const { sandbox, ranMs } = measured;
    return { sandbox: typeof sandbox === "string" ? sandbox : "", ...(typeof ranMs === "number" && { ranMs }) };
  } catch {
    return { sandbox: "" };
  }
}

const logsIn = (logs: ExecuteResponse["serverLogs"], fn: DigestFunction): readonly string[] =>
  [...logs.values()].flatMap(({ digest }) => (digest ? [digestText(fn, digest.hash, digest.sizeBytes)] : []));

/** The output is shown only for failed runs. */
export function tellEnding(ending: Ending): readonly string[] {
  const { exitCode, status, worker, sandbox, ranMs, stdout, stderr, logs } = ending;
  const how = [
    exitCode === undefined ? "its command was not run" : `exit code ${exitCode}`,
    ...(ranMs === undefined ? [] : [`after ${formatDuration(ranMs)}`]),
    ...(worker === "" ? [] : [`on ${worker}`]),
    ...(sandbox === "" ? [] : [`sandbox: ${sandbox}`]),
  ];
  const line = how.join(", ");
  if (exitCode === 0 && !status) return [line];
  return [
    line,
    ...(status ? [`status ${status.code}: ${status.message}`] : []),
    ...tellPrinted("stderr", stderr),
    ...tellPrinted("stdout", stdout),
    ...logs.map((log) => `what the worker noted: millrace cache get ${log}`),
  ];
}

function tellPrinted(name: string, printed: Printed | undefined): readonly string[] {
  if (!printed) return [];
  const { blob, head } = printed;
  const sizeBytes = parseDigest(blob)?.sizeBytes ?? 0;
  const lines = head.trimEnd().split("\n").slice(0, headLinesMax).map(plain);
  const size = formatSize(sizeBytes);
  return [`${name}, ${size} (all of it: millrace cache get ${blob}):`, ...lines.map((each) => `  ${each}`)];
}

/** Output of a command must not control the terminal of its reader. */
const plain = (line: string): string => stripVTControlCharacters(line).replace(/[^\P{Cc}\t]/gu, "");
