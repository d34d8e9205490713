/**
 * An order for a lane's shell: a few lines that turn a fork of it into the process that is wanted. Text in, text out.
 * A shell forks in a fraction of the time that this program takes, and knows redirection and limits besides.
 */
import { markLine } from "./launcher/marks.ts";
import { folderNames, type Boxes, type Limits, type Network, type StartRequest } from "./protocol.ts";

export type OrderOptions = {
  /** The shell can hand on exactly the variables it is told to; otherwise env(1) has to. */
  readonly cleanShell: boolean;
  /** Groups look after these, so that the limits of processes and users need not. */
  readonly grouped: readonly string[];
  /** Processes that the lane's user has besides, or may come to have: the limit counts all of a user's. */
  readonly othersMax: number;
  /** The user that the command becomes, when the shell is not already. */
  readonly dropTo?: number | undefined;
  /** By which its processes are found again. */
  readonly mark?: number | undefined;
};

const name = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Shells keep these for themselves: some cannot be set, some mean something. */
const special = new Set(["PWD", "OLDPWD", "SHLVL", "_", "IFS", "OPTIND", "PPID", "PS4", "UID", "EUID", "LINENO"]);
/** What means nothing to the program that gives rights up, nor to its libraries; of others nobody can be sure. */
const harmless = /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TMP|TEMP|(BAZEL|TEST|RUNFILES|MILLRACE)_[A-Z0-9_]*)$/;

export function orderText(start: StartRequest, options: OrderOptions): string {
  const { stdout, stderr, statusPath, talk } = start;
  // Not emptied first: what it says was wiped out, and some file systems would write it to the disk at once.
  const status = statusPath === undefined ? "" : ` 9<>${quoted(statusPath)}`;
  const out = talk ? talkWords(talk) : `>>${quoted(stdout.path)}`;
  // Into one file, both keep their order.
  const err = stderr.path === stdout.path ? "2>&1" : `2>>${quoted(stderr.path)}`;
  return [`exec 6<&- ${out} ${err}${status}`, "umask 022", ...restLines(start, options)].join("\n");
}

/** To open either waits for the other side, which has been there from the beginning, unless it died. */
const talkWords = ({ stdin, stdout }: NonNullable<StartRequest["talk"]>): string =>
  `<${quoted(stdin)} >${quoted(stdout)}`;

export type BoxOrders = {
  readonly network: Network;
  /** For the sandbox in this folder, which waits for this number. */
  text(folder: string, no: number): string;
};

/**
 * Makes a sandbox, in which a shell waits until it is told the number (on descriptor 6), does what is in the file that
 * was opened for it then (descriptor 8), and nothing else. Its many words are put into the shell's form only once.
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
    return `exec >>${at}${stdout} 2>>${at}${stderr} 9<>${at}${status} 8<./${toldIn} || exit 126
umask 022
cd / || exit 126
unset PWD OLDPWD
${first}${at}${root}${second}'${wait}'${last}
`;
  };
  return { network, text };
}

/** The file in a lane's folder that a sandbox which waits there is told by what to run. */
export const toldIn = "told";

/** What it is told: everything around it is as it should be. */
export const toldText = (start: StartRequest, options: OrderOptions): string =>
  ["exec 6<&- 8<&-", ...restLines(start, options)].join("\n");

const restLines = (start: StartRequest, options: OrderOptions): readonly string[] => [
  ...limitLines(start.limits, options),
  `cd ${quoted(start.cwd)} || exit 126`,
  // What a shell sets by itself would be seen by the command.
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
  const drop = dropTo === undefined ? "" : `${dropWords(dropTo).join(" ")} `;
  // Variables such as LD_PRELOAD are a program in themselves: they are set when the user's rights are gone, not before.
  if (cleanShell && isPlain && (dropTo === undefined || names.every((key) => harmless.test(key)))) {
    const exported = names.map((key) => `${key}=${quoted(env[key] ?? "")}`).join(" ");
    return [...(exported === "" ? [] : [`export ${exported}`]), `exec ${drop}${command}`];
  }
  const variables = names.map((key) => quoted(`${key}=${env[key]}`)).join(" ");
  // env(1) would take such a program for a variable.
  const hidden = argv[0]?.includes("=") ? `/bin/sh -c 'exec "$0" "$@"' ` : "";
  return [`exec ${drop}/usr/bin/env -i ${variables} ${hidden}${command}`];
}

/** The words before a command that make it another user's, for good. */
export const dropWords = (uid: number): readonly string[] => [
  "/usr/bin/setpriv",
  `--reuid=${uid}`,
  `--regid=${uid}`,
  "--clear-groups",
  "--no-new-privs",
  "--inh-caps=-all",
  "--bounding-set=-all",
];

/** Of CPU a process can be given no share: where no group does that, what is missing is said when the node starts. */
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

/** As one word of a shell, whatever is in it. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
