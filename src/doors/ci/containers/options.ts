/** Which of the words of `options:`, `ports:` and `volumes:` an engine is given. Pure. */
import { isAbsolute, normalize } from "node:path";
import { ContainerFault } from "#doors/ci/run/containers.ts";

/** What a container may change about itself: nothing that leads out of it. */
const allowed: ReadonlySet<string> = new Set(
  [
    "--cpus --cpu-shares --cpuset-cpus --memory -m --memory-swap --memory-reservation --shm-size --pids-limit --ulimit",
    "--health-cmd --health-interval --health-retries --health-timeout --health-start-period --no-healthcheck",
    "--env -e --user -u --workdir -w --hostname -h --add-host --dns --dns-search --label -l --tmpfs --stop-timeout",
    "--stop-signal --entrypoint --read-only --init --cap-drop --name --platform --network-alias",
  ].flatMap((line) => line.split(" ")),
);
/** They have no value of their own. */
const alone: ReadonlySet<string> = new Set(["--no-healthcheck", "--read-only", "--init"]);
/** Said by us already: accepted and left out. */
const ours: ReadonlySet<string> = new Set(["--name", "--label", "-l"]);

export type ContainerRules = {
  /** safe: only what changes the container itself; any: whatever the engine takes, which may be the whole machine. */
  readonly options: "safe" | "any";
  /** Folders of the machine that `volumes:` may name, with what is below them. */
  readonly folders: readonly string[];
};

const wordsMax = 200;

export function optionWords(line: string, { options }: Pick<ContainerRules, "options">): readonly string[] {
  const words = splitWords(line);
  if (words.length > wordsMax) throw new ContainerFault(`options: more than ${wordsMax} words`);
  if (options === "any") return words;
  const kept: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    const [flag = "", ...inline] = word.split("=");
    if (!allowed.has(flag))
      throw new ContainerFault(
        `options: '${flag}' is not allowed here. Containers of jobs may have ${[...allowed].join(" ")}; ` +
          "an operator can allow all with ci.containers.options: any",
      );
    const isWhole = inline.length > 0 || alone.has(flag);
    const value = isWhole ? [] : [words[(at += 1)] ?? ""];
    if (!ours.has(flag)) kept.push(word, ...value);
  }
  return kept;
}

/** As a shell splits them, with both kinds of quotes. */
export function splitWords(line: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? "";
    if (quote === "" && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (quote === "" && (char === '"' || char === "'")) {
      quote = char;
      word ??= "";
    } else if (char === quote) quote = "";
    else if (char === "\\" && quote !== "'" && at + 1 < line.length) word = (word ?? "") + (line[(at += 1)] ?? "");
    else word = (word ?? "") + char;
  }
  if (quote !== "") throw new ContainerFault(`a quotation mark is not closed in: ${line.slice(0, 200)}`);
  if (word !== undefined) words.push(word);
  return words;
}

/** Ports are reached from this machine alone. */
export function portWords(ports: readonly string[]): readonly string[] {
  return ports.flatMap((port) => {
    const [, host = "", inside, protocol = ""] =
      /^(?:(?:127\.0\.0\.1:)?(\d{1,5})?:)?(\d{1,5})(\/(?:tcp|udp))?$/.exec(port.trim()) ?? [];
    if (inside === undefined) throw new ContainerFault(`ports: write 80, 8080:80 or 80/udp, not '${port}'`);
    return ["-p", `127.0.0.1:${host}:${inside}${protocol}`];
  });
}

/** Named volumes are the job's own, and go with it. */
export function volumeWords(
  volumes: readonly string[],
  prefix: string,
  { folders, options }: ContainerRules,
): readonly string[] {
  return volumes.flatMap((volume) => {
    const parts = volume.trim().split(":");
    const [from = "", to = "", mode = ""] = parts.length === 1 ? ["", ...parts] : parts;
    if (!isAbsolute(to) || parts.length > 3 || !["", "ro", "rw"].includes(mode))
      throw new ContainerFault(`volumes: write name:/path or name:/path:ro, not '${volume}'`);
    const end = `${to}${mode === "" ? "" : `:${mode}`}`;
    if (from === "") return ["-v", end];
    if (!isAbsolute(from)) {
      if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,60}$/.test(from)) throw new ContainerFault(`volumes: '${from}' is no name`);
      return ["-v", `${prefix}-${from}:${end}`];
    }
    const path = normalize(from);
    if (options !== "any" && !folders.some((folder) => path === folder || path.startsWith(`${folder}/`)))
      throw new ContainerFault(
        `volumes: the folder ${path} of this machine is not open to jobs; an operator can open it with ci.containers.folders`,
      );
    return ["-v", `${path}:${end}`];
  });
}
