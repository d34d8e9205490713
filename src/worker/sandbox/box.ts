/**
 * The arguments for bubblewrap: a read-only root, private /tmp and /proc, namespaces of its own, no privileges, no
 * network unless requested. Pure.
 */
import { isInside } from "./folders/folders.ts";
import type { Shows } from "./shown.ts";

/** The attempt's folder as the command in the sandbox sees it: always the same path, so that outputs can be equal. */
export const boxRoot = "/tmp/build";

export type Box = Shows & {
  readonly bwrap: string;
  /** The folder that the command works in and may write to. */
  readonly root: string;
  /** Below the folder. */
  readonly workingDirectory: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly network: boolean;
  /** Folders that appear empty: our own data, and other tenants'. */
  readonly hidden: readonly string[];
  /** Files that cannot be read: our secrets. They must exist. */
  readonly unreadable: readonly string[];
  /** Folders that are private, empty and writable, besides /tmp and /dev/shm. */
  readonly scratch: readonly string[];
  /**
   * Size of /tmp; each of the other folders has a quarter of it. It is memory that belongs to no process when memory is
   * short.
   */
  readonly tmpBytes: number;
  /** Read-only mounts in the folder: [source, target]. */
  readonly readOnly: readonly (readonly [string, string])[];
};

const smallestBytes = 4_096;

/** The sandbox's own messages go here. */
export const statusFd = 9;

/** The same for every command: the arguments before the root and after it, up to the command. */
export function emptyBox(box: Omit<Box, "root" | "workingDirectory" | "argv" | "env" | "readOnly">) {
  const unlikely = "\0";
  const words = boxArguments({ ...box, root: unlikely, workingDirectory: "", argv: [], env: {}, readOnly: [] });
  const at = words.indexOf(unlikely);
  return { before: words.slice(0, at), after: words.slice(at + 1) };
}

export function boxArguments(box: Box): readonly string[] {
  const { bwrap, root, workingDirectory, argv, env, network, tmpBytes, readOnly } = box;
  const scratch = ["/tmp", ...box.scratch];
  const fewBytes = Math.ceil(tmpBytes / 4);
  const tmpfs = (path: string, bytes: number): readonly string[] => ["--size", String(bytes), "--tmpfs", path];
  const closed = box.hidden.filter((path) => !scratch.includes(path) && !isInside(path, scratch));
  const replaced = [...scratch, ...closed, "/dev", "/proc"];
  return [
    bwrap,
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    ...(network ? [] : ["--unshare-net"]),
    // It dies with its lane, and nothing outlives the command itself.
    "--die-with-parent",
    "--uid",
    "65534",
    "--gid",
    "65534",
    "--cap-drop",
    "ALL",
    "--hostname",
    "millrace",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    // /dev is memory as well.
    ...tmpfs("/dev/shm", fewBytes),
    "--remount-ro",
    "/dev",
    ...scratch.flatMap((path) => tmpfs(path, path === "/tmp" ? tmpBytes : fewBytes)),
    ...closed.flatMap((path) => [...tmpfs(path, smallestBytes), "--remount-ro", path]),
    ...box.entered.flatMap((path) => tmpfs(path, smallestBytes)),
    ...box.shown.flatMap(({ from, at }) => ["--ro-bind", from, at]),
    ...box.entered.flatMap((path) => ["--remount-ro", path]),
    // Devices cannot be opened in here, so binding one makes the file unreadable.
    ...box.unreadable.filter((path) => !isInside(path, replaced)).flatMap((path) => ["--ro-bind", "/dev/null", path]),
    "--bind",
    root,
    boxRoot,
    ...readOnly.flatMap(([from, to]) => ["--ro-bind", from, `${boxRoot}/${to}`]),
    "--chdir",
    folderInBox(workingDirectory),
    "--clearenv",
    ...Object.entries(env).flatMap(([key, value]) => ["--setenv", key, value]),
    "--json-status-fd",
    String(statusFd),
    "--",
    ...argv,
  ];
}

/** Below the attempt's root. */
export const folderInBox = (path: string): string => (path === "" ? boxRoot : `${boxRoot}/${path}`);

/** How the sandbox itself failed; the command's own failures are not included. */
export type BoxFailure =
  | { readonly kind: "no-program"; readonly exitCode: 126 | 127; readonly message: string }
  | { readonly kind: "no-sandbox"; readonly message: string };

const bwrapFailed = 1;

/** From the sandbox's exit code, its status output, and the beginning of standard error. */
export function boxFailure(exitCode: number, status: string, stderr: string): BoxFailure | undefined {
  if (exitCode !== bwrapFailed || status.includes(`"exit-code"`)) return undefined;
  const message = /^bwrap: (.*)$/m.exec(stderr)?.[1] ?? "the sandbox could not be set up";
  const program = /^execvp (.*): (.*)$/.exec(message);
  if (!program) return { kind: "no-sandbox", message };
  const isMissing = program[2] === "No such file or directory";
  return { kind: "no-program", exitCode: isMissing ? 127 : 126, message: `${program[1]}: ${program[2]}` };
}
