/** The life of a worker elsewhere: until a signal; gently at the first, at once at the second. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { doors } from "#app/doors.ts";
import { startElsewhere, type ElsewhereOptions } from "#app/elsewhere/worker.ts";
import { defaultDataPath } from "#app/node/data-folder.ts";
import { Fault } from "#base/fault.ts";
import { parseDurationMs } from "#base/units.ts";
import type { ExitCode, World } from "#door/command.ts";
import { systemClock } from "#door/system-clock.ts";
import { logOutput } from "./log-output.ts";
import { wrong, type WorkerValues } from "./worker.ts";

const printedBytesMax = 256 * 1024 * 1024;
const slotsMax = 1_000;

export async function runElsewhere(values: WorkerValues, world: World): Promise<ExitCode> {
  const options = await optionsOf(values, world);
  const stopMs = parseDurationMs(values["stop-within"] ?? "20s");
  if (stopMs === undefined) throw wrong("write a duration, such as 20s", { flag: "--stop-within" });
  await using undo = new AsyncDisposableStack();
  const stopping = signalled(world, undo);
  const write = logOutput(2, world.note);
  const log = (line: string): void => write(`${new Date().toISOString()} ${line}`);
  const running = undo.use(await startElsewhere(options, { clock: systemClock, doors, log }));
  const { name, slots } = options;
  const { labels } = running;
  if (values.json) world.out(JSON.stringify({ kind: "up", name, server: values.server, slots, labels }));
  else world.out(`worker ${name} at ${values.server ?? ""}: ${slots} slots, ${labels.join(" ")}`);
  await Promise.race([stopping, running.ended]);
  world.note(`stopping: ${running.worker.status().running} running (again to stop at once)`);
  await running.worker.drain(stopMs);
  return 0;
}

async function optionsOf(values: WorkerValues, world: World): Promise<ElsewhereOptions> {
  const server = values.server ?? world.env["MILLRACE_SERVER"];
  if (server === undefined || !URL.canParse(server) || !/^https?:/.test(server))
    throw wrong("write its address, such as https://host:8980", { flag: "--server" });
  const url = new URL(server);
  const isTls = url.protocol === "https:";
  const file = values["token-file"];
  if (file === undefined) throw wrong("name the file with the worker's token", { flag: "--token-file" });
  const token = textIn(file).trim();
  const ca = values.ca ?? world.env["MILLRACE_CA"];
  const slots = Number(values.slots ?? 1);
  if (!Number.isInteger(slots) || slots < 1 || slots > slotsMax)
    throw wrong(`write a number from 1 to ${slotsMax}`, { flag: "--slots" });
  const labels = (values.labels ?? []).flatMap((text) => text.split(",")).filter((label) => label !== "");
  for (const label of labels)
    if (!/^[^=\s]{1,100}=[^\s]{0,100}$/.test(label)) throw wrong("write name=value", { label });
  const given = { server, token, ...(ca !== undefined && { ca }) };
  return {
    server: {
      url: url.origin,
      ...(isTls && ca !== undefined && { caFile: resolve(ca) }),
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port || (isTls ? 443 : 80)),
      ...(isTls && { tls: ca === undefined ? {} : { ca: textIn(ca) } }),
    },
    token,
    name: values.name ?? `${await principalName(given, world)}/${hostname()}`,
    labels,
    slots,
    printedBytesMax,
    folder: values.data ?? join(defaultDataPath(world.env), "worker"),
  };
}

function textIn(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Fault("invalid", "read file", { file, errno: (cause as NodeJS.ErrnoException).code }, cause);
  }
}

type Given = { readonly server: string; readonly token: string; readonly ca?: string };

async function principalName(given: Given, world: World): Promise<string> {
  const http = await world.http(given);
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
