/** Containers of one job: a network of its own, services, the container that its steps run in, and actions. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ActionContainer,
  ContainerFault,
  type ContainerWanted,
  type Inside,
  type JobContainers,
  type StartedContainer,
  type Tell,
} from "#doors/ci/run/containers.ts";
import type { ProcessEnd, ProcessRequest } from "#doors/ci/run/process.ts";
import { Engine, envWords } from "./engine.ts";
import type { ContainerHost } from "./host.ts";
import { optionWords, portWords, splitWords, volumeWords } from "./options.ts";
import { waitHealthy } from "./health.ts";
import { scriptName, StepHost } from "./step-host.ts";

/** A folder of the job, which has the same name inside as outside: a path is right wherever it is read. */
export type Mount = { readonly folder: string; readonly readOnly?: boolean; readonly also?: readonly string[] };

export type DeskParts = {
  readonly host: ContainerHost;
  /** What all of the job's containers bear, with which they are found again. */
  readonly labels: readonly string[];
  /** Unique on this machine, in letters, digits and dashes. */
  readonly name: string;
  readonly mounts: readonly Mount[];
  readonly workspace: string;
  readonly home: string;
  /** For pipes between here and the inside. */
  readonly folder: string;
  /** Our Node, for JavaScript actions inside. */
  readonly node: string;
  readonly env: Readonly<Record<string, string | undefined>>;
};

export class ContainerDesk implements JobContainers {
  readonly network: string;
  readonly home: string;
  readonly #parts: DeskParts;
  readonly #engine: Engine;
  readonly #images = new Map<string, Promise<string>>();
  /** The network, once something needs it. */
  #made: Promise<unknown> | undefined;
  #stepHost: StepHost | undefined;
  #acts = 0;

  constructor(parts: DeskParts) {
    this.#parts = parts;
    this.#engine = new Engine(parts.host, parts.env);
    this.network = parts.name;
    this.home = parts.home;
  }

  async services(
    wanted: ReadonlyMap<string, ContainerWanted>,
    tell: Tell,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, StartedContainer>> {
    const ends = await Promise.allSettled(
      [...wanted].map(async ([id, one]) => [id, await this.#service(id, one, tell, signal)] as const),
    );
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    return new Map(ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : [])));
  }

  async #service(id: string, wanted: ContainerWanted, tell: Tell, signal: AbortSignal): Promise<StartedContainer> {
    tell("plain", `Starting service container ${id} (${wanted.image})`);
    const command = wanted.command === undefined ? [] : splitWords(wanted.command);
    const started = await this.#start(id, wanted, { words: ["--network-alias", id], after: command }, signal);
    try {
      await waitHealthy(this.#engine, started.id, signal);
    } catch (error) {
      const { out, err } = await this.#engine.try(["logs", "--tail", "200", started.id]);
      tell("error", `Service container ${id} failed: ${(error as Error).message}. It said:`);
      for (const line of `${out}${err}`.split("\n").slice(-200)) if (line !== "") tell("plain", `${id} | ${line}`);
      throw new ContainerFault(`the service ${id} is not there: ${(error as Error).message}`);
    }
    return started;
  }

  async job(
    wanted: ContainerWanted,
    tell: Tell,
    signal: AbortSignal,
  ): Promise<StartedContainer & { readonly inside: Inside }> {
    const { folder, node, mounts, workspace } = this.#parts;
    tell("plain", `Starting job container (${wanted.image})`);
    const host = await StepHost.open(folder);
    this.#stepHost = host;
    const words = [
      ...mountWords(mounts),
      "-v",
      `${folder}:${folder}`,
      "-v",
      `${node}:/__e/node:ro`,
      "--workdir",
      workspace,
    ];
    const after = [join(folder, scriptName), folder, "/__e/node"];
    const started = await this.#start("job", { ...wanted, entrypoint: "sh" }, { words, after }, signal);
    const ready = new AbortController();
    const watched = this.#watch(started.id, host, ready.signal);
    try {
      return { ...started, inside: await host.ready(signal) };
    } finally {
      ready.abort();
      await watched;
    }
  }

  /** An image without a shell ends before the script begins, and nothing is ever said through the pipe. */
  async #watch(id: string, host: StepHost, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(200, signal);
      if (signal.aborted) return;
      const { code, out } = await this.#engine.try(["inspect", "--format", "{{.State.Status}}", id]);
      if (code === 0 && !/created|running|initialized|configured/.test(out)) {
        const { out: said, err } = await this.#engine.try(["logs", "--tail", "20", id]);
        return host.over(`it ended at once; does its image have a shell? ${`${said}${err}`.trim().slice(-500)}`);
      }
    }
  }

  async act(
    { image, entrypoint, args }: ActionContainer,
    { env, ...request }: Omit<ProcessRequest, "program" | "args" | "folder">,
    run: (request: ProcessRequest) => Promise<ProcessEnd>,
  ): Promise<ProcessEnd> {
    const { name, workspace, mounts } = this.#parts;
    const used =
      typeof image === "string"
        ? await this.#pulled(image, undefined, request.signal)
        : await this.#built(image, request.signal);
    this.#acts += 1;
    const own = `${name}-act-${this.#acts}`;
    const given = envWords(Object.entries({ ...env, HOME: this.home }).filter(([variable]) => variable !== "PATH"));
    const words = [
      ...this.#common(own),
      "--rm",
      ...(this.#made ? ["--network", this.network] : []),
      ...mountWords(mounts),
      "--workdir",
      workspace,
      ...given.words,
      ...(entrypoint === undefined ? [] : ["--entrypoint", entrypoint]),
    ];
    const [program, ...rest] = this.#engine.words("run", ...words, used, ...args);
    try {
      return await run({
        ...request,
        program,
        args: rest,
        folder: workspace,
        env: { ...given.env, ...this.#engine.env },
      });
    } finally {
      if (request.signal.aborted) await this.#engine.try(["rm", "-f", own]);
    }
  }

  async close(): Promise<void> {
    this.#stepHost?.[Symbol.dispose]();
    await Promise.resolve();
  }

  async #start(
    id: string,
    wanted: ContainerWanted,
    more: { readonly words: readonly string[]; readonly after: readonly string[] },
    signal: AbortSignal,
  ): Promise<StartedContainer> {
    const { host, name } = this.#parts;
    await this.#needNetwork();
    const image = await this.#pulled(wanted.image, wanted.credentials, signal);
    const own = `${name}-${id}`;
    const env = envWords(wanted.env);
    const words = [
      ...this.#common(own),
      "--network",
      this.network,
      ...more.words,
      ...portWords(wanted.ports),
      ...volumeWords(wanted.volumes, name, host),
      ...env.words,
      ...optionWords(wanted.options, host),
      ...(wanted.entrypoint === undefined ? [] : ["--entrypoint", wanted.entrypoint]),
    ];
    await this.#volumes(wanted.volumes);
    const what = `starting the container ${id}`;
    const out = await this.#engine.call(what, ["run", "-d", ...words, image, ...more.after], { env: env.env, signal });
    const container = out.trim().split("\n").at(-1) ?? own;
    return { id: container, ports: await this.#ports(container, wanted) };
  }

  #common(name: string): readonly string[] {
    const { host, labels } = this.#parts;
    return ["--name", name, ...labels.flatMap((label) => ["--label", label]), ...host.runOptions];
  }

  /** Named volumes bear the label, too: so they go with the job. */
  async #volumes(volumes: readonly string[]): Promise<void> {
    const { name, labels } = this.#parts;
    for (const volume of volumes) {
      const [from = "", to] = volume.trim().split(":");
      if (to === undefined || from === "" || from.startsWith("/")) continue;
      await this.#engine.try(["volume", "create", ...labels.flatMap((label) => ["--label", label]), `${name}-${from}`]);
    }
  }

  async #needNetwork(): Promise<void> {
    const labels = this.#parts.labels.flatMap((label) => ["--label", label]);
    this.#made ??= this.#engine.call("making the job's network", ["network", "create", ...labels, this.network]);
    await this.#made;
  }

  async #ports(id: string, { ports }: ContainerWanted): Promise<ReadonlyMap<string, string>> {
    if (ports.length === 0) return new Map();
    const out = await this.#engine.call("asking for ports", ["port", id]);
    const found = [...out.matchAll(/^(\d+)\/(tcp|udp) -> .*:(\d+)$/gm)];
    return new Map(
      found.map(([, inside = "", protocol = "", host = ""]) => [protocol === "tcp" ? inside : `${inside}/udp`, host]),
    );
  }

  /** Once for each image of the job; what the machine has already is used as it is. */
  async #pulled(image: string, credentials: ContainerWanted["credentials"], signal: AbortSignal): Promise<string> {
    const known = this.#images.get(image);
    if (known) return await known;
    const pulling = this.#pull(image, credentials, signal);
    this.#images.set(image, pulling);
    return await pulling;
  }

  async #pull(image: string, credentials: ContainerWanted["credentials"], signal: AbortSignal): Promise<string> {
    if ((await this.#engine.try(["image", "inspect", "--format", "{{.Id}}", image])).code === 0) return image;
    if (!credentials) {
      await this.#engine.call(`pulling the image ${image}`, ["pull", "-q", image], { signal });
      return image;
    }
    // The password is in a file of this call alone, and goes there by a pipe.
    const folder = await mkdtemp(join(tmpdir(), "millrace-login-"));
    try {
      const [first = ""] = image.split("/");
      const registry = image.includes("/") && /[.:]|^localhost$/.test(first) ? first : "docker.io";
      const isPodman = this.#engine.kind === "podman";
      const auth = isPodman ? ["--authfile", join(folder, "auth.json")] : [];
      const before = isPodman ? [] : ["--config", folder];
      const login = [...before, "login", ...auth, "-u", credentials.username, "--password-stdin", registry];
      await this.#engine.call(`signing in at ${registry}`, login, { input: credentials.password, signal });
      await this.#engine.call(`pulling the image ${image}`, [...before, "pull", "-q", ...auth, image], { signal });
      return image;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #built({ folder, file }: Exclude<ActionContainer["image"], string>, signal: AbortSignal): Promise<string> {
    const path = join(folder, file);
    if (!existsSync(path)) throw new ContainerFault(`the action has no ${file}`);
    const known = this.#images.get(path);
    if (known) return await known;
    const image = `localhost/millrace-action:${createHash("sha256").update(`${this.#parts.name} ${path}`).digest("hex").slice(0, 24)}`;
    const network = this.#engine.kind === "podman" ? ["--network=host"] : [];
    const labels = this.#parts.labels.flatMap((label) => ["--label", label]);
    const words = ["build", "-q", ...network, ...labels, "-t", image, "-f", path, folder];
    const building = this.#engine.call("building the action's image", words, { signal }).then(() => image);
    this.#images.set(path, building);
    return await building;
  }
}

function mountWords(mounts: readonly Mount[]): readonly string[] {
  return mounts.flatMap(({ folder, readOnly = false, also = [] }) =>
    [folder, ...also].flatMap((at) => ["-v", `${folder}:${at}${readOnly ? ":ro" : ""}`]),
  );
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const stop = (): void => resolve();
  signal.addEventListener("abort", stop, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", stop);
}
