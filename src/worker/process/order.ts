/**
 * An order for a lane's shell: a few lines that turn a fork of it into the wanted process. Pure. A shell forks much
 * faster than this program, and handles redirection and limits.
 */
import { markLine } from "./launcher/marks.ts";
import { folderNames, type Boxes, type Limits, type Network, type StartRequest } from "./protocol.ts";

export type OrderOptions = {
  /** Whether the shell exports exactly the given variables; otherwise env(1) is used. */
  readonly cleanShell: boolean;
  /** Controllers that enforce limits, so that rlimits need not. */
  readonly grouped: readonly string[];
  /** Other processes that the lane's user has or may get: the rlimit counts all of a user's. */
  readonly othersMax: number;
  /** The user that the command drops to, if the shell has another one. */
  readonly dropTo?: number | undefined;
  /** The mark by which its processes are found again. */
  readonly mark?: number | undefined;
};

const name = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Shells treat these specially: some cannot be set, some have a meaning. */
const special = new Set(["PWD", "OLDPWD", "SHLVL", "_", "IFS", "OPTIND", "PPID", "PS4", "UID", "EUID", "LINENO"]);
/** Variables without meaning for setpriv and its libraries; others might have one. */
const harmless = /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TMP|TEMP|(BAZEL|TEST|RUNFILES|MILLRACE)_[A-Z0-9_]*)$/;

export function orderText(start: StartRequest, options: OrderOptions): string {
  const { stdout, stderr, statusPath, talk } = start;
  // Not truncated first: its content was erased already, and some file systems would flush it at once.
  const status = statusPath === undefined ? "" : ` 9<>${quoted(statusPath)}`;
  const out = talk ? talkRedirections(talk) : `>>${quoted(stdout.path)}`;
  // One open file, so that both keep their order.
  const err = stderr.path === stdout.path ? "2>&1" : `2>>${quoted(stderr.path)}`;
  return [`exec 6<&- ${out} ${err}${status}`, "umask 022", ...restLines(start, options)].join("\n");
}

/** Opening either waits for the other side, which is already there, unless it died. */
const talkRedirections = ({ stdin, stdout }: NonNullable<StartRequest["talk"]>): string =>
  `<${quoted(stdin)} >${quoted(stdout)}`;

export type BoxOrders = {
  readonly network: Network;
  /** For the sandbox in this folder, which waits for this number. */
  text(folder: string, no: number): string;
};

/**
 * Makes a sandbox in which a shell waits until it reads the number (on descriptor 6), then runs the file that was
 * opened for it (descriptor 8), and nothing else. Its long argument list is quoted only once.
 */
export function boxOrders({ before, after, env, network }: Boxes): BoxOrders {
  const blank = "\0";
  const argv = [...before, blank, ...after, "/bin/sh", "-c", blank];
  const command = commandLines({ argv, env }, { cleanShell: true }).join("\n");
  const [first, second, last] = command.split(quoted(blank));
  const { root, stdout, stderr, status } = folderNames;
  const text = (folder: string, no: number): string => {
    const at = quoted(`${folder}/`);
    const wait = `while read -r no <&6; do if [ "$no" = ${no} ]; then . /proc/self/fd/8; exit 126; fi; done; exit 125`;
    return `exec >>${at}${stdout} 2>>${at}${stderr} 9<>${at}${status} 8<./${boxOrderFile} || exit 126
umask 022
cd / || exit 126
unset PWD OLDPWD
${first}${at}${root}${second}'${wait}'${last}
`;
  };
  return { network, text };
}

/** The file in a lane's folder that holds the order for its waiting sandbox. */
export const boxOrderFile = "told";

/** The order: everything around it is set up already. */
export const boxOrderText = (start: StartRequest, options: OrderOptions): string =>
  ["exec 6<&- 8<&-", ...restLines(start, options)].join("\n");

const restLines = (start: StartRequest, options: OrderOptions): readonly string[] => [
  ...limitLines(start.limits, options),
  `cd ${quoted(start.cwd)} || exit 126`,
  // Variables that a shell sets by itself would be visible to the command.
  "unset PWD OLDPWD",
  ...commandLines(start, options),
  "",
];

function commandLines(
  { argv, env }: Pick<StartRequest, "argv" | "env">,
  { cleanShell, dropTo }: Pick<OrderOptions, "cleanShell" | "dropTo">,
): readonly string[] {
  const names = Object.keys(env);
  const command = argv.map(quoted).join(" ");
  const isPlain = !argv[0]?.startsWith("-") && names.every((key) => name.test(key) && !special.has(key));
  const drop = dropTo === undefined ? "" : `${dropArguments(dropTo).join(" ")} `;
  // Variables such as LD_PRELOAD can run code: they are set only after the privileges are dropped.
  if (cleanShell && isPlain && (dropTo === undefined || names.every((key) => harmless.test(key)))) {
    const exported = names.map((key) => `${key}=${quoted(env[key] ?? "")}`).join(" ");
    return [...(exported === "" ? [] : [`export ${exported}`]), `exec ${drop}${command}`];
  }
  const variables = names.map((key) => quoted(`${key}=${env[key]}`)).join(" ");
  // env(1) would take such a program name for a variable.
  const hidden = argv[0]?.includes("=") ? `/bin/sh -c 'exec "$0" "$@"' ` : "";
  return [`exec ${drop}/usr/bin/env -i ${variables} ${hidden}${command}`];
}

/** The command prefix that switches to another user for good. */
export const dropArguments = (uid: number): readonly string[] => [
  "/usr/bin/setpriv",
  `--reuid=${uid}`,
  `--regid=${uid}`,
  "--clear-groups",
  "--no-new-privs",
  "--inh-caps=-all",
  "--bounding-set=-all",
];

/**
 * A share of CPU cannot be limited per process: without a group, the node reports at its start that this limit is
 * missing.
 */
function limitLines(limits: Limits, { grouped, othersMax, mark }: OrderOptions): readonly string[] {
  const { memoryBytes = 0, pids = 0, fileBytes = 0, openFiles = 0 } = limits;
  return [
    "ulimit -c 0",
    ...(mark === undefined ? [] : [markLine(mark)]),
    ...(openFiles > 0 ? [`ulimit -n ${openFiles}`] : []),
    ...(fileBytes > 0 ? [`ulimit -f ${Math.ceil(fileBytes / 512)}`] : []),
    ...(memoryBytes > 0 && !grouped.includes("memory") ? [`ulimit -v ${Math.ceil(memoryBytes / 1024)}`] : []),
    ...(pids > 0 && !grouped.includes("pids")
      ? [`{ ulimit -p ${pids + othersMax} || ulimit -u ${pids + othersMax}; } 2>/dev/null`]
      : []),
  ];
}

/** Quotes a text as one word of a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
