/** The life of a worker elsewhere: until a signal; gently at the first, at once at the second. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { doors } from "#app/doors.ts";
import { registered } from "#app/elsewhere/registered.ts";
import { startElsewhere, type ElsewhereOptions } from "#app/elsewhere/worker.ts";
import { version } from "#app/version.ts";
import { readRegistration } from "#app/workers/registration-token.ts";
import type { Fetch } from "#http/client.ts";
import { defaultDataPath } from "#app/node/data-folder.ts";
import { Fault } from "#base/fault.ts";
import { parseDurationMs } from "#base/units.ts";
import type { ExitCode, World } from "#door/command.ts";
import type { Door } from "#door/door.ts";
import { systemClock } from "#door/system-clock.ts";
import { logOutput } from "#cli/log-output.ts";
import { spotClouds, spotNotice, spotWhy, spotStopMs, type SpotNotice } from "./spot.ts";
import { wrong, type WorkerValues } from "./worker.ts";

const printedBytesMax = 256 * 1024 * 1024;
const slotsMax = 1_000;

/** `only`: the one door whose work it takes; left out: all that its token allows. */
export async function runElsewhere(values: WorkerValues, world: World, only?: string): Promise<ExitCode> {
  const stopMs = parseDurationMs(values["stop-within"] ?? "20s");
  if (stopMs === undefined) throw wrong("write a duration, such as 20s", { flag: "--stop-within" });
  await using undo = new AsyncDisposableStack();
  const stopping = signalled(world, undo);
  const write = logOutput(2, world.note);
  const log = (line: string): void => write(`${new Date().toISOString()} ${line}`);
  const { options, credential } = await optionsOf(values, world, log, undo);
  const ran = Promise.withResolvers<string>();
  const isEphemeral = values.ephemeral === true || credential?.isEphemeral === true;
  const onRan = isEphemeral ? () => ran.resolve("it has run its task") : undefined;
  const running = undo.use(
    await startElsewhere({ ...options, onRan }, { clock: systemClock, doors: doorsFor(only, credential), log }),
  );
  const { name, slots } = options;
  const { labels } = running;
  if (values.json) world.out(JSON.stringify({ kind: "up", name, server: options.server.url, slots, labels }));
  else world.out(`worker ${name} at ${options.server.url}: ${slots} slots, ${labels.join(" ")}`);
  const dismissed = credential?.dismissed ?? new Promise<never>(() => {});
  const { noticed, within } = spotOf(values, world, log, undo);
  const why = await Promise.race([stopping, running.ended, ran.promise, dismissed, noticed]);
  if (why !== undefined) world.note(`leaving: ${why}`);
  world.note(`stopping: ${running.worker.status().running} running (again to stop at once)`);
  await running.worker.drain(within(stopMs));
  if (isEphemeral) await credential?.leave();
  return why === undefined || onRan || why.startsWith(spotWhy) ? 0 : 1;
}

/** Nothing is asked where no cloud is named. */
function spotOf(values: WorkerValues, { env }: World, log: (line: string) => void, undo: AsyncDisposableStack) {
  const named = values.spot ?? env["MILLRACE_SPOT"];
  const url = (values["spot-url"] ?? env["MILLRACE_SPOT_URL"])?.replace(/\/+$/, "");
  const cloud = spotClouds.find((one) => one === named);
  if (named !== undefined && !cloud) throw wrong(`name one of ${spotClouds.join(", ")}`, { flag: "--spot" });
  if (url !== undefined && !/^https?:/.test(URL.parse(url)?.protocol ?? ""))
    throw wrong("write its address, such as http://127.0.0.1:1338", { flag: "--spot-url" });
  const ended = new AbortController();
  undo.defer(() => ended.abort(new Error("the worker ends")));
  let notice: SpotNotice | undefined;
  const never = new Promise<never>(() => {});
  const noticed = cloud
    ? spotNotice({ cloud, url, clock: systemClock, log }, ended.signal).then(
        (found) => (notice = found).why,
        () => never,
      )
    : never;
  const within = (stopMs: number): number => (notice ? spotStopMs(notice, stopMs, systemClock.wallMs()) : stopMs);
  return { noticed, within };
}

/** A configured token does not say what it allows, and a label that it does not allow is refused. */
function doorsFor(only: string | undefined, credential: object | undefined): readonly Door[] {
  if (only !== undefined) return doors.filter(({ name }) => name === only);
  return credential ? doors : doors.filter(({ name }) => name !== "ci");
}

async function optionsOf(values: WorkerValues, world: World, log: (line: string) => void, undo: AsyncDisposableStack) {
  const server = values.server ?? world.env["MILLRACE_SERVER"];
  if (server === undefined || !URL.canParse(server) || !/^https?:/.test(server))
    throw wrong("write its address, such as https://host:8980", { flag: "--server" });
  const { token, slots, labels } = wordsOf(values, world);
  const folder = values.data ?? join(defaultDataPath(world.env), "worker");
  const files = filesOf(values, world);
  const common = { server: serverOf(new URL(server), files), labels, printedBytesMax, folder };
  const reached: Reached = { ...values, server, ...files };
  if (!readRegistration(token)) {
    const metadata = [["authorization", `Bearer ${token}`]] as const;
    const name = values.name ?? `${await principalName({ ...reached, token }, world)}/${hostname()}`;
    return { options: { ...common, name, slots, metadata: () => metadata }, credential: undefined };
  }
  const call =
    (own: string | undefined): Fetch =>
    async (path, init) =>
      await (
        await world.http({ ...reached, ...(own !== undefined && { token: own }) })
      ).ask(path, "register this worker", init);
  const credential = undo.use(await registered(token, { clock: systemClock, call, folder, version, slots, log }));
  const { name, metadata, isEphemeral } = credential;
  const options = { ...common, name, metadata, slots: isEphemeral ? 1 : slots, registered: credential };
  return { options, credential };
}

type Files = { readonly ca?: string; readonly cert?: string; readonly "cert-key"?: string };
type Reached = Files & { readonly server: string };

function filesOf(values: WorkerValues, { env }: World): Files {
  const ca = values.ca ?? env["MILLRACE_CA"];
  const cert = values.cert ?? env["MILLRACE_CERT"];
  const key = values["cert-key"] ?? env["MILLRACE_CERT_KEY"];
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { "cert-key": key }),
  };
}

function serverOf(url: URL, { ca, cert, "cert-key": key }: Files): ElsewhereOptions["server"] {
  const isTls = url.protocol === "https:";
  const pem = {
    ...(ca !== undefined && { ca: textIn(ca) }),
    ...(cert !== undefined && { cert: textIn(cert) }),
    ...(key !== undefined && { key: textIn(key) }),
  };
  return {
    url: url.origin,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port || (isTls ? 443 : 80)),
    ...(isTls && { tls: pem }),
    ...(isTls && ca !== undefined && { caFile: resolve(ca) }),
  };
}

function wordsOf(values: WorkerValues, { env }: World) {
  const file = values["token-file"];
  const token = values.token ?? (file === undefined ? env["MILLRACE_WORKER_TOKEN"] : textIn(file).trim());
  if (token === undefined || token === "")
    throw wrong("set $MILLRACE_WORKER_TOKEN, or name the file with the worker's token", { flag: "--token-file" });
  const slots = values.ephemeral ? 1 : Number(values.slots ?? 1);
  if (!Number.isInteger(slots) || slots < 1 || slots > slotsMax)
    throw wrong(`write a number from 1 to ${slotsMax}`, { flag: "--slots" });
  const labels = (values.labels ?? []).flatMap((text) => text.split(",")).filter((label) => label !== "");
  for (const label of labels)
    if (!/^[^=\s]{1,100}=[^\s]{0,100}$/.test(label)) throw wrong("write name=value", { label });
  return { token, slots, labels };
}

function textIn(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Fault("invalid", "read file", { file, errno: (cause as NodeJS.ErrnoException).code }, cause);
  }
}

async function principalName(reached: Reached & { readonly token: string }, world: World): Promise<string> {
  const http = await world.http(reached);
  const answer = await http.ask("/v1/session", "ask who this worker is");
  return z.object({ name: z.string() }).parse(await answer.json()).name;
}

function signalled({ note }: World, undo: AsyncDisposableStack): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let seen = 0;
  const heard = (): void => {
    seen += 1;
    if (seen === 1) return resolve();
    note("stopping at once");
    process.exit(1);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, heard);
    undo.defer(() => void process.off(signal, heard));
  }
  return promise;
}
