/**
 * An action that looks for the node's secrets on the machine whose root it sees: in files that everybody may read, and,
 * as a plain user, in files that its own user may. plain-user.test.ts runs this file as a plain user too.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { Bench, Lab } from "#e2e/node/build/execution-lab.ts";
import { lastingFolder } from "./user-folder.ts";
import { bwrapMissing } from "#testing/bubblewrap.ts";

const isRoot = process.getuid?.() === 0;
const folderAbove = lastingFolder();

function whyNot(): string | false {
  if (folderAbove === undefined) return "needs a folder that is not a temporary one";
  return bwrapMissing();
}

/** Files with secrets, in a folder that is removed at the end. */
class Secrets implements Disposable {
  readonly root = mkdtempSync(join(folderAbove ?? "", "millrace-secrets-"));
  readonly words: string[] = [];

  constructor() {
    chmodSync(this.root, 0o711);
  }

  at(path: string): string {
    return join(this.root, path);
  }

  word(): string {
    const word = randomUUID();
    this.words.push(word);
    return word;
  }

  /** Written to another file and renamed, readable by all: only the sandbox protects them from an action. */
  write(path: string, text: (word: string) => string = (word) => word): string {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    writeFileSync(this.at(`${path}.new`), text(this.word()), { mode: 0o644 });
    renameSync(this.at(`${path}.new`), this.at(path));
    return this.at(path);
  }

  /** As Kubernetes mounts them. */
  swap(folder: string, name: string, text: (word: string) => string): string {
    const version = `..${this.words.length}`;
    this.write(`${folder}/${version}/${name}`, text);
    symlinkSync(version, this.at(`${folder}/..next`));
    renameSync(this.at(`${folder}/..next`), this.at(`${folder}/..data`));
    return this.at(`${folder}/${name}`);
  }

  [Symbol.dispose](): void {
    clearAway(this.root);
  }
}

test(
  `a hostile action reads none of the node's secrets (${isRoot ? "root" : "a plain user"})`,
  {
    skip: whyNot(),
    timeout: 120_000,
  },
  async () => {
    using secrets = new Secrets();
    const member = { tenant: "mill", roles: ["member"] };
    const meshKeys = (word: string): string => JSON.stringify([word.replaceAll("-", "")]); // base64 of 24 bytes
    const keysFile = secrets.swap("mounted", "keys.json", meshKeys);
    symlinkSync("..data/keys.json", keysFile);
    const linked = secrets.write("elsewhere/linked");
    symlinkSync(linked, secrets.at("linked"));
    mkdirSync(secrets.at("closed"), { mode: 0o700 });
    const files = {
      config: secrets.write("millrace.yaml", (word) => `journal: { url: "postgres://u:${word}@h/d" }`),
      cluster: secrets.write("cluster.secret"),
      token: secrets.write("ops.token"),
      linked: secrets.at("linked"),
      closed: secrets.write("closed/token"),
      traces: secrets.write("traces.token"),
    };
    const mill = randomUUID();
    const tokenFile = secrets.write("mill.token", () => mill);
    secrets.words.push(mill);
    process.env["MILLRACE_TEST_SECRET"] = secrets.word();
    const tokens = (["token", "linked", "closed"] as const).map((name) => ({ ...member, name, file: files[name] }));
    await using lab = await Lab.open(
      {
        cluster: { shards: 1, secretFile: files.cluster },
        edge: {
          listen: ["127.0.0.1:0"],
          identity: { tokens: [...tokens, { ...member, name: "mill", file: tokenFile }] },
        },
        mesh: { listen: "127.0.0.1:0", keysFile },
        traces: { endpoint: "http://127.0.0.1:9", token: files.traces },
        node: { stopWithin: "100ms" },
        worker: { slots: 1, sandbox: "bubblewrap", toolsMax: 0 },
      },
      files.config,
    );
    const bench = new Bench(lab.client(mill));

    /** What it finds, by every means a shell has. */
    async function look(): Promise<void> {
      const { root } = secrets;
      const line =
        `cat /proc/[0-9]*/environ | tr '\\0' '\\n'; env; ls -A ${root}/mounted; grep -r . ${root}; ` +
        `cat ${Object.values(files).join(" ")} ${keysFile}; cat ${root}/mounted/*/* ${root}/mounted/..*/*; ` +
        `cp ${files.token} copied; cat copied; cat /proc/1/root${files.token} /proc/self/root${files.token}; ` +
        `exec 2>&1; test -e ${files.config} && echo looked # ${randomUUID()}`;
      const { response } = await bench.execute(await bench.sh(line, {}), { inlineStdout: true });
      equal(response.status?.code ?? 0, 0, response.status?.message ?? "");
      const said = Buffer.from(response.result?.stdoutRaw ?? "").toString();
      ok(said.endsWith("looked\n"), said);
      const found = secrets.words.filter((word) => said.includes(word) || said.includes(word.replaceAll("-", "")));
      deepEqual(found, [], said);
      ok(!said.includes("keys.json"), said);
    }

    await look();
    await look(); // in a sandbox that was prepared ahead, if there are any
    secrets.write("ops.token");
    await look();
    secrets.swap("mounted", "keys.json", meshKeys);
    rmSync(secrets.at("mounted/..0"), { recursive: true });
    await look();
    rmSync(files.token);
    rmSync(secrets.at("linked"));
    await look();
    secrets.write("ops.token");
    await look();
    chmodSync(secrets.root, 0o700);
    const { response } = await bench.execute(await bench.sh(`echo on # ${randomUUID()}`));
    equal(Buffer.from(response.result?.stdoutRaw ?? "").toString(), "on\n", "where lanes cannot go any more");
  },
);
