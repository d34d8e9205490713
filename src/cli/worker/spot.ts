/**
 * Notices of a cloud that this machine is about to be taken away, as its metadata service gives them: asked for every
 * few seconds, within a bounded time, and never anywhere but at the address that was configured.
 */
import type { Clock } from "#base/clock.ts";

export const spotClouds = ["aws", "gcp"] as const;
export type SpotCloud = (typeof spotClouds)[number];
export type SpotNotice = {
  readonly why: string;
  /** Of the wall clock; undefined: the cloud does not say. */ readonly atMs?: number;
};

export type SpotPorts = {
  readonly cloud: SpotCloud;
  /** Left out: where the cloud has it. */
  readonly url?: string | undefined;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: (line: string) => void;
};

/** How each begins. */
export const spotWhy = "a spot notice";

const askEveryMs = 5_000;
const answerMs = 2_000;
const answerBytesMax = 10_000;
const standardUrls = { aws: "http://169.254.169.254", gcp: "http://metadata.google.internal" } as const;

/** Resolves with the notice; rejects with the signal's reason. */
export async function spotNotice({ cloud, url, clock, log }: SpotPorts, signal: AbortSignal): Promise<SpotNotice> {
  const base = url ?? standardUrls[cloud];
  let isSilent = false;
  for (;;) {
    try {
      const notice = cloud === "aws" ? await askAws(base) : await askGcp(base);
      if (notice) return notice;
      isSilent = false;
    } catch (error) {
      if (!isSilent) log(`spot: ${base} does not answer: ${error instanceof Error ? error.message : String(error)}`);
      isSilent = true;
    }
    await clock.sleep(askEveryMs, signal);
  }
}

type Answer = { readonly status: number; readonly text: string };

async function ask(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(answerMs) });
  const text = (await response.text()).slice(0, answerBytesMax);
  return { status: response.status, text };
}

/** Version 2 of the service: each look begins with a token of its own. */
async function askAws(base: string): Promise<SpotNotice | undefined> {
  const asked = { method: "PUT", headers: { "x-aws-ec2-metadata-token-ttl-seconds": "60" } };
  const token = await ask(`${base}/latest/api/token`, asked);
  if (token.status !== 200) throw new Error(`no token, status ${token.status}`);
  const headers = { "x-aws-ec2-metadata-token": token.text };
  return readAws(await ask(`${base}/latest/meta-data/spot/instance-action`, { headers }));
}

/** Undefined: the machine stays. Throws where the answer is none of the service. */
export function readAws({ status, text }: Answer): SpotNotice | undefined {
  if (status === 404) return undefined;
  if (status !== 200) throw new Error(`status ${status}`);
  const { action, time } = JSON.parse(text) as { readonly action?: unknown; readonly time?: unknown };
  const atMs = Date.parse(String(time));
  return { why: `${spotWhy}: ${String(action).slice(0, 50)}`, ...(Number.isFinite(atMs) && { atMs }) };
}

async function askGcp(base: string): Promise<SpotNotice | undefined> {
  const headers = { "metadata-flavor": "Google" };
  return readGcp(await ask(`${base}/computeMetadata/v1/instance/preempted`, { headers }));
}

export function readGcp({ status, text }: Answer): SpotNotice | undefined {
  if (status !== 200) throw new Error(`status ${status}`);
  return text.trim() === "TRUE" ? { why: `${spotWhy}: preempted` } : undefined;
}

/** Kept for giving jobs back before the machine goes. */
const marginMs = 10_000;

/** How long tasks may run on: as long as always, unless the machine goes before. */
export const spotStopMs = (notice: SpotNotice, stopMs: number, wallMs: number): number =>
  notice.atMs === undefined ? stopMs : Math.max(0, Math.min(stopMs, notice.atMs - wallMs - marginMs));
