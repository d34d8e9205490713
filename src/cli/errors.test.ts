/** A node that cannot start says what it was doing, what is wrong and what to try; it is never called a bug. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { systemWords } from "#app/node/system-faults.ts";
import { Fault } from "#base/fault.ts";
import { clearAway } from "#testing/clear-away.ts";
import { otherUserCannotRun } from "#testing/postgres-user.ts";
import { explain, explainJson } from "./errors.ts";
import { runLine } from "./line.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-faults-"));
after(() => clearAway(root));
const path = (...names: readonly string[]): string => join(root, ...names);

async function said(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const code = await runLine(args, {
    env,
    isTerminal: false,
    out: (line) => lines.push(line),
    note: (line) => lines.push(line),
    progress: () => {},
  });
  return [code, ...lines].join("\n");
}

const up = (...args: readonly string[]): Promise<string> =>
  said({}, "up", ...args, "--set", "edge.listen=[]", "--set", "worker.enabled=false");

/** A data folder with something in it before the node comes. */
function folderWith(name: string, fill: (folder: string) => void): string {
  mkdirSync(path(name));
  fill(path(name));
  return path(name);
}

describe("a node that cannot start says what to try", { timeout: 60_000 }, () => {
  writeFileSync(path("file"), "");
  const cases: readonly (readonly [string, () => readonly string[], RegExp])[] = [
    [
      "the data folder is a file",
      () => ["--data", path("file")],
      /^1\nlock data folder: .*: there is a file where a folder should be\nnext: millrace up --data FOLDER.* ls -ld /,
    ],
    [
      "the data folder is below a file",
      () => ["--data", path("file", "sub")],
      /^1\nlock data folder: .*errno=ENOTDIR.*\nnext: /,
    ],
    [
      "the path is too long for a socket; nothing was written",
      () => ["--data", path("x".repeat(110))],
      /^1\nread address: .*bytesMax=103.*\nnext: millrace up --data FOLDER, with a shorter path/,
    ],
    [
      "the name in the folder is no name",
      () => ["--data", folderWith("name", (at) => writeFileSync(join(at, "node-name"), "\u0000../../etc\nx"))],
      /^1\nread the node's name: corrupt .*\nnext: write its name into that file, or remove it/,
    ],
    [
      "the file for its name is a folder",
      () => ["--data", folderWith("name-folder", (at) => mkdirSync(join(at, "node-name")))],
      /^1\nstart the node: .*errno=EISDIR path=.*node-name why=there is a folder where a file should be/,
    ],
    [
      "the lock is a folder",
      () => ["--data", folderWith("lock", (at) => mkdirSync(join(at, "up.pid")))],
      /^1\nstart the node: .*up\.pid why=there is a folder where a file should be/,
    ],
    [
      "the journal's folder is a file",
      () => ["--data", folderWith("journal-file", (at) => writeFileSync(join(at, "journal"), ""))],
      /^1\nopen: .*errno=EEXIST.*\nnext: move that file away; look at it with: ls -ld .*journal/,
    ],
    [
      "the store's folder is a file",
      () => ["--data", folderWith("blobs-file", (at) => writeFileSync(join(at, "blobs"), ""))],
      /^1\nstart the node: .*why=there is a file where a folder should be\)\nnext: /,
    ],
    [
      "the socket is a folder",
      () => ["--data", folderWith("socket", (at) => mkdirSync(join(at, "node.sock")))],
      /^1\nlisten: .*node\.sock errno=EISDIR\): there is a folder where a file should be\nnext: move that folder away/,
    ],
    [
      "the configuration is a folder",
      () => ["--data", path("c1"), "--config", root],
      /^1\nread configuration: .*errno=EISDIR\): there is a folder where a file should be\nnext: /,
    ],
    ["an empty --data is no folder", () => ["--data", ""], /^2\nup: --data needs the name of a folder/],
    ["an empty --config is no file", () => ["--config", ""], /^2\nup: --config needs the name of a file/],
    [
      "the database is not there",
      () => {
        const url = "journal.url=postgres://u:a-password@127.0.0.1:1/x";
        return ["--data", path("pg"), "--set", "journal.kind=postgres", "--set", url];
      },
      /^1\n(?!.*a-password)(?!.*millrace shards)[^]*\nnext: check that it is running, and its address/,
    ],
  ];
  for (const [name, args, expected] of cases)
    test(name, async () => {
      const text = await up(...args());
      match(text, expected);
      ok(!text.includes("this is a bug"), text);
    });

  test("nothing was written where the path is too long", () => equal(existsSync(path("x".repeat(110))), false));

  test("the folder for --dev is not there", async () => {
    const before = process.env["TMPDIR"];
    process.env["TMPDIR"] = path("nowhere");
    try {
      match(
        await up("--dev"),
        /^1\nmake a folder for --dev: .*: there is no such file or folder\nnext: check the path/,
      );
    } finally {
      if (before === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = before;
    }
  });

  test("a newer version wrote the folder", async () => {
    const config = Config.parse({ edge: { listen: [] }, worker: { enabled: false } });
    const folder = dataFolder(path("newer"));
    await (await startNode(config, folder, { log: () => {} })).stop();
    for (const name of readdirSync(folder.journal).filter((each) => /\.(db|sqlite)$/.test(each))) {
      const db = new DatabaseSync(join(folder.journal, name));
      db.exec("pragma user_version = 999");
      db.close();
    }
    match(await up("--data", folder.path), /^1\n.*newer version of this program.*\nnext: start the newer version/);
  });

  const skip = otherUserCannotRun();
  test("the folder is another user's: for up, and for a command that looks for a node", { skip }, async () => {
    const isRoot = process.getuid?.() === 0;
    mkdirSync(path("mine"));
    chmodSync(root, 0o755);
    chmodSync(path("mine"), isRoot ? 0o700 : 0o000);
    const run = (...args: readonly string[]): Promise<string> =>
      new Promise((ended) => {
        const program = join(import.meta.dirname, "..", "..", "bin", "millrace.js");
        const child = spawn(process.execPath, [program, ...args, "--data", path("mine")], {
          env: { ...process.env, XDG_CACHE_HOME: path("nowhere") },
          ...(isRoot && { uid: 65_534, gid: 65_534 }),
        });
        let text = "";
        for (const stream of [child.stdout, child.stderr])
          stream.on("data", (part: Buffer) => (text += part.toString()));
        child.on("close", (code) => ended(`${code}\n${text}`));
      });
    const own = /errno=EACCES\): this user may not read or write there\nnext: .*ls -ld .*mine\n$/;
    const [started, looked] = await Promise.all([run("up"), run("job", "list")]);
    match(started, /^1\nlock data folder: /);
    match(started, own);
    match(looked, /^1\nfind node: /);
    match(looked, own);
  });
});

describe("errors of the operating system", () => {
  const thrown = (errno: string): Error =>
    Object.assign(new Error(`${errno}: said by the system`), { code: errno, syscall: "open", path: "/some/where" });

  for (const errno of Object.keys(systemWords))
    test(`${errno} is never a bug, at any depth`, () => {
      const [message = "", next = ""] = explain(thrown(errno), "up");
      match(message, new RegExp(`^up: [a-z-]+ \\(errno=${errno} path=/some/where why=`));
      match(next, /^next: /);
      const [, deep] = explain(new Fault("unavailable", "open it", {}, thrown(errno)), "up");
      match(deep ?? "", /^next: /);
    });

  test("for programs they are JSON", () => {
    deepEqual(JSON.parse(explainJson(thrown("EMFILE"), "up")), {
      kind: "error",
      code: "exhausted",
      message: "up: exhausted (errno=EMFILE path=/some/where why=too many files are open)",
      next: "raise the limit with: ulimit -n 65536 (in a systemd unit: LimitNOFILE=65536)",
    });
  });

  test("what is not one of them is a bug still, with its stack", () => {
    match(explain(new TypeError("x is not a function"))[0] ?? "", /^this is a bug: TypeError: .*\n +at /s);
    match(explain(Object.assign(new Error("x"), { code: "EINVAL", syscall: "read" }))[0] ?? "", /^this is a bug/);
    match(explain(Object.assign(new Error("x"), { code: "EACCES" }))[0] ?? "", /^this is a bug/);
  });

  test("a low port is told with a higher one, a port that is taken with another", () => {
    const low = new Fault("unavailable", "listen", { host: "127.0.0.1", port: 80, errno: "EACCES" }, thrown("EACCES"));
    match(explain(low, "up")[1] ?? "", /above 1023/);
    const taken = new Fault("exhausted", "listen", { host: "h", port: 1, why: "another program listens there" });
    match(explain(taken, "up")[1] ?? "", /choose another host:port in edge\.listen/);
  });
});
