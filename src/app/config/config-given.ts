/** Settings given on the command line and in the environment, and where each came from. */
import { parse as parseYaml } from "yaml";
import { Fault } from "#base/fault.ts";
import { nearest } from "#base/nearest.ts";
import type { Setting } from "./config-settings.ts";

/** One setting as it was given; `from` names the flag or variable in error messages. */
export type Given = { readonly setting: Setting; readonly value: unknown; readonly from: string };

/** Variables with our prefix that are not settings: they choose the node to ask, or are passed to jobs. */
const otherVariables = new Set(
  [
    "ACTIONS ATTEMPT BENCH_FILE CA CERT CERT_KEY CHECKPOINT CONFIG CONTAINERS CORPORA DATA EFFECT_KEY INDEX JOB",
    "JOB_FOLDER MACHINE MANIFEST MANIFESTS NODE POOL REQUIRE RUNNER_LABELS SERVER SIGNALS STAGE START STEP",
    "SPOT SPOT_URL TASK TEMPLATE TENANT TOKEN TOKEN_FILE WORKER_TOKEN",
  ]
    .flatMap((names) => names.split(" "))
    .map((name) => `MILLRACE_${name}`),
);

/** Variables that Kubernetes and container runtimes set for services called millrace-something. */
function isServiceLink(name: string, text: string): boolean {
  if (/_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?$/.test(name)) return true;
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(text);
}

/** `MILLRACE_TEST_...` is for our own tests. */
const isOther = (name: string, text: string): boolean =>
  otherVariables.has(name) || name.startsWith("MILLRACE_TEST_") || isServiceLink(name, text);

/** An empty variable counts as unset. */
export function givenByEnvironment(env: NodeJS.ProcessEnv, settings: ReadonlyMap<string, Setting>): readonly Given[] {
  const byVariable = new Map([...settings.values()].flatMap((each) => (each.variable ? [[each.variable, each]] : [])));
  return Object.entries(env).flatMap(([name, text]) => {
    if (!name.startsWith("MILLRACE_") || !text) return [];
    const setting = byVariable.get(name);
    if (setting) return [{ setting, value: valueOf(setting, text, `$${name}`), from: `$${name}` }];
    if (isOther(name, text)) return [];
    throw wrong(`$${name}: there is no such setting${hint(name, [...byVariable.keys()], "$")}`);
  });
}

/** Each `path=value`. */
export function givenByFlags(set: readonly string[], settings: ReadonlyMap<string, Setting>): readonly Given[] {
  return set.map((text) => {
    const cut = text.indexOf("=");
    if (cut <= 0) throw wrong(`--set ${text}: write a setting and its value, such as worker.slots=8`);
    const path = text.slice(0, cut);
    const setting = settings.get(path);
    if (!setting) throw wrong(`--set ${path}: there is no such setting${hint(path, [...settings.keys()], "")}`);
    const from = `--set ${path}`;
    return { setting, value: valueOf(setting, text.slice(cut + 1), from), from };
  });
}

function valueOf({ isText, isTextList }: Setting, text: string, from: string): unknown {
  if (isText) return text;
  if (isTextList && !text.trimStart().startsWith("[")) return text === "" ? [] : text.split(",").map((x) => x.trim());
  try {
    return parseYaml(text) as unknown;
  } catch {
    throw wrong(`${from}: it is not valid YAML`); // not shown, because it may be a secret
  }
}

function hint(name: string, known: readonly string[], before: string): string {
  const meant = nearest(name, known);
  return meant === undefined ? "; docs/reference/config.md lists all" : ` (did you mean ${before}${meant}?)`;
}

const wrong = (why: string): Fault => new Fault("invalid", "read configuration", { why });

/** The file's settings with the given ones on top; later ones win. An invalid file is passed on unchanged. */
export function withGiven(base: unknown, given: readonly Given[], settings: ReadonlyMap<string, Setting>): unknown {
  if (!isObject(base)) return base;
  const root = { ...base };
  for (const { setting, value } of given) {
    const steps = setting.path.split(".");
    const last = steps.pop() ?? "";
    let place: Record<string, unknown> = root;
    let path = "";
    for (const step of steps) {
      path = path === "" ? step : `${path}.${step}`;
      const there = place[step];
      const next: Record<string, unknown> = { ...(isObject(there) ? there : (settings.get(path)?.fallback ?? {})) };
      place[step] = next;
      place = next;
    }
    place[last] = value;
  }
  return root;
}

/** Where the value at this path came from, if it was given. */
export function whereGiven(path: readonly PropertyKey[], given: readonly Given[]): string | undefined {
  const shown = path.map(String).join(".");
  const isWithin = (one: string, other: string): boolean => one === other || one.startsWith(`${other}.`);
  return given.findLast(({ setting }) => isWithin(shown, setting.path))?.from;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
