/** Artifacts on a real node, through the unmodified official client in a process of its own. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openLab, withClients, type ClientAnswer, type HeldJob, type Lab } from "#e2e/node/ci/lab.ts";

const MiB = 1024 * 1024;

const valueOf = (answer: ClientAnswer | undefined): Record<string, unknown> => {
  ok(answer?.ok === true, JSON.stringify(answer));
  return answer.value as Record<string, unknown>;
};
const errorOf = (answer: ClientAnswer | undefined): string => {
  ok(answer?.ok === false, JSON.stringify(answer));
  return answer.error;
};

describe("artifacts by @actions/artifact", { timeout: 120_000 }, () => {
  let lab: Lab;
  let job: HeldJob;
  before(async () => {
    lab = await openLab();
    job = await lab.hold();
  });
  after(() => lab[Symbol.asyncDispose]());

  test("CI-70: more than a block is uploaded, listed, downloaded with its digest, and deleted", async () => {
    const files = join(lab.folder, "files");
    await mkdir(join(files, "deep"), { recursive: true });
    const large = randomBytes(20 * MiB);
    await writeFile(join(files, "large.bin"), large);
    await writeFile(join(files, "deep", "small.txt"), "small\n");
    const paths = [join(files, "large.bin"), join(files, "deep", "small.txt")];
    const fetched = join(lab.folder, "fetched");
    const answers = await withClients(await lab.env(job), lab.folder, [
      ["uploadArtifact", "files", paths, files, { retentionDays: 5, compressionLevel: 0 }],
      ["listArtifacts"],
      ["getArtifact", "files"],
      ["downloadArtifact", "files", fetched],
      ["uploadArtifact", "files", paths, files],
      ["deleteArtifact", "files"],
      ["listArtifacts"],
    ]);
    const uploaded = valueOf(answers[0]);
    ok(Number(uploaded["size"]) > 20 * MiB);
    const [listed] = valueOf(answers[1])["artifacts"] as readonly Record<string, unknown>[];
    equal(listed?.["name"], "files");
    equal(listed?.["size"], uploaded["size"]);
    equal(listed?.["id"], uploaded["id"]);
    equal(listed?.["digest"], `sha256:${String(uploaded["digest"])}`);
    equal(
      (valueOf(answers[2])["artifact"] as Record<string, unknown>)["digest"],
      `sha256:${String(uploaded["digest"])}`,
    );
    equal(valueOf(answers[3])["digestMismatch"], false);
    const hash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
    equal(hash(await readFile(join(fetched, "large.bin"))), hash(large));
    equal(await readFile(join(fetched, "deep", "small.txt"), "utf8"), "small\n");
    match(errorOf(answers[4]), /409.*an artifact with this name already exists on the workflow run/);
    equal(valueOf(answers[5])["id"], uploaded["id"]);
    deepEqual(valueOf(answers[6])["artifacts"], []);
  });

  test("a file without an archive keeps its bytes and its name", async () => {
    const file = join(lab.folder, "raw.json");
    await writeFile(file, '{"raw":true}\n');
    const fetched = join(lab.folder, "raw-fetched");
    const answers = await withClients(await lab.env(job), lab.folder, [
      ["uploadArtifact", "ignored", [file], lab.folder, { skipArchive: true }],
      ["listArtifacts"],
      ["downloadArtifact", "raw.json", fetched],
    ]);
    valueOf(answers[0]);
    const [listed] = valueOf(answers[1])["artifacts"] as readonly Record<string, unknown>[];
    equal(listed?.["name"], "raw.json");
    equal(valueOf(answers[2])["digestMismatch"], false);
    equal(await readFile(join(fetched, "raw.json"), "utf8"), '{"raw":true}\n');
    const found = async (tenant: string, text: string, repository?: string): Promise<readonly string[]> =>
      (await lab.services.artifacts.search(tenant, { text, repository, limit: 9 })).found.map(({ name }) => name);
    deepEqual(await found("mill", "RAW"), ["raw.json"], "found by a part of its name");
    deepEqual(await found("mill", "raw", "octo/DEMO"), ["raw.json"]);
    deepEqual(await found("mill", "raw", "octo/other"), []);
    deepEqual(await found("mill", "cooked"), []);
    deepEqual(await found("other", "raw"), [], "another tenant's");
  });

  test("a token of an attempt that is over, a forged one and one of another run are refused", async () => {
    const over = await lab.hold();
    const stale = await lab.env(over);
    await over.cancel();
    const file = join(lab.folder, "some.txt");
    await writeFile(file, "some");
    const upload = ["uploadArtifact", "late", [file], lab.folder] as const;
    const [late] = await withClients(stale, lab.folder, [upload]);
    match(errorOf(late), /403.*the attempt that this token was made for is over/);
    const good = await lab.env(job);
    const [head = "", body = "", mark = ""] = (good.actionEnv["ACTIONS_RUNTIME_TOKEN"] ?? "").split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
    const forged = Buffer.from(JSON.stringify({ ...claims, tenant: "other" })).toString("base64url");
    const actionEnv = { ...good.actionEnv, ACTIONS_RUNTIME_TOKEN: `${head}.${forged}.${mark}` };
    const [refused] = await withClients({ ...good, actionEnv }, lab.folder, [upload]);
    match(errorOf(refused), /401/);
    const other = await lab.hold();
    const mixed = Buffer.from(JSON.stringify({ ...claims, scp: `Actions.Results:${other.run}:x` })).toString(
      "base64url",
    );
    const response = await fetch(`${lab.origin}/twirp/github.actions.results.api.v1.ArtifactService/ListArtifacts`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${good.actionEnv["ACTIONS_RUNTIME_TOKEN"]}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ workflow_run_backend_id: other.run, workflow_job_run_backend_id: mixed.slice(0, 5) }),
    });
    equal(response.status, 403);
    await other.cancel();
  });
});
