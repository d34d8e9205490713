/** Asks the checks of a wave over HTTP. Everything but a clear answer counts as no data (HC2). */
import { z } from "zod";
import { afterLook, freshCheck, isDue, type CheckState, type Measured } from "#doors/deploy/health/checks.ts";
import type { HealthCheck } from "#doors/deploy/service/service-file.ts";

const answerMsMax = 10_000;
const answerBytesMax = 1024 * 1024;

const Vector = z.object({
  status: z.literal("success"),
  data: z.object({
    resultType: z.literal("vector"),
    result: z.array(z.object({ value: z.tuple([z.number(), z.string()]) })).max(10_000),
  }),
});
const Said = z.object({ healthy: z.boolean(), why: z.string().max(1_000).default("") });

export type About = {
  readonly service: string;
  readonly release: string;
  readonly wave: number;
  readonly manifest: string;
};

export class Checks {
  states: readonly CheckState[];
  readonly #about: About;
  #lookedAtMs = new Map<HealthCheck, number>();

  constructor(checks: readonly HealthCheck[], about: About) {
    this.states = checks.map(freshCheck);
    this.#about = about;
  }

  async look(times: { readonly nowMs: number; readonly activatedAtMs: number }, signal: AbortSignal): Promise<void> {
    const { nowMs, activatedAtMs } = times;
    const looks = this.states.map(async (state) => {
      const sinceLookMs = nowMs - (this.#lookedAtMs.get(state.check) ?? -Infinity);
      if (!isDue(state, { sinceActivationMs: nowMs - activatedAtMs, sinceLookMs })) return state;
      this.#lookedAtMs.set(state.check, nowMs);
      return afterLook(state, await measure(state.check, this.#about, signal));
    });
    this.states = await Promise.all(looks);
  }
}

export async function measure(check: HealthCheck, about: About, stop: AbortSignal): Promise<Measured> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMsMax)]);
  try {
    if ("webhook" in check) {
      const headers = { "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(about), signal, redirect: "error" } as const;
      return { kind: "said", ...Said.parse(await jsonOf(await fetch(check.webhook, init))) };
    }
    const url = new URL(`${check.prometheus.replace(/\/$/, "")}/api/v1/query`);
    url.searchParams.set("query", check.query);
    const { data } = Vector.parse(await jsonOf(await fetch(url, { signal, redirect: "error" })));
    const values = data.result.map(({ value: [, text] }) => Number(text));
    if (values.length === 0) return { kind: "none", why: "no data" };
    if (!values.every(Number.isFinite)) return { kind: "none", why: "not a number" };
    // Of several series the worst decides.
    return { kind: "value", value: check.max === undefined ? Math.min(...values) : Math.max(...values) };
  } catch (error) {
    if (stop.aborted) throw error;
    return { kind: "none", why: (error as Error).message.slice(0, 200) };
  }
}

async function jsonOf(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    if ((bytes += part.length) > answerBytesMax) throw new Error(`an answer of more than ${answerBytesMax} bytes`);
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}
