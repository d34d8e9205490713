/** Waits until a container is healthy, if its image or its options say how that is found out. */
import { ContainerFault } from "#doors/ci/run/containers.ts";
import type { Engine } from "./engine.ts";

type Check = {
  readonly Interval?: number;
  readonly Retries?: number;
  readonly StartPeriod?: number;
  readonly Test?: readonly string[];
};

const retriesDefault = 3;
const lookMsMin = 100;
const lookMsMax = 5_000;
/** Whatever it says itself. */
const waitMsMax = 10 * 60_000;

export async function waitHealthy(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const check = await checkOf(engine, id);
  if (!check) return await mustRun(engine, id);
  const { Interval = 1e9, Retries = retriesDefault, StartPeriod = 0 } = check;
  const everyMs = Math.min(lookMsMax, Math.max(lookMsMin, Interval / 1e6));
  const retries = Math.max(1, Retries || retriesDefault);
  const startedMs = performance.now();
  for (let failed = 0; ;) {
    if (signal.aborted) throw new ContainerFault("stopped");
    await mustRun(engine, id);
    const state = await stateOf(engine, id);
    if (state === "healthy") return;
    const tookMs = performance.now() - startedMs;
    if (state === "unhealthy" && tookMs > StartPeriod / 1e6) failed += engine.kind === "podman" ? 1 : retries;
    if (failed >= retries) throw new ContainerFault(`its health check failed ${failed} times`);
    if (tookMs > waitMsMax) throw new ContainerFault(`it was not healthy after ${waitMsMax / 60_000} minutes`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

async function checkOf(engine: Engine, id: string): Promise<Check | undefined> {
  const text = await engine.call("looking at a container", ["inspect", "--format", "{{json .Config.Healthcheck}}", id]);
  const check = JSON.parse(text.trim() || "null") as Check | null;
  return !check?.Test || check.Test[0] === "NONE" ? undefined : check;
}

/** podman leaves looking to systemd's timers, which few machines with jobs have: it is asked to look now. */
async function stateOf(engine: Engine, id: string): Promise<"healthy" | "unhealthy" | "starting"> {
  if (engine.kind === "podman") {
    const { code } = await engine.try(["healthcheck", "run", id]);
    return code === 0 ? "healthy" : "unhealthy";
  }
  const { out } = await engine.try(["inspect", "--format", "{{.State.Health.Status}}", id]);
  const state = out.trim();
  return state === "healthy" || state === "unhealthy" ? state : "starting";
}

async function mustRun(engine: Engine, id: string): Promise<void> {
  const format = "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}";
  const out = await engine.call("looking at a container", ["inspect", "--format", format, id]);
  const [status = "", code = "", isOutOfMemory = ""] = out.trim().split(" ");
  if (isOutOfMemory === "true") throw new ContainerFault("it ran out of memory");
  if (status === "exited" || status === "dead" || status === "stopped")
    throw new ContainerFault(`it ended with exit code ${code}`);
}
