/** Item 94: Bazel's HTTP cache. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { ActionResult } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { at, needs, type Case } from "./case.ts";
import { digestOf, emptyResult, fresh, freshAction, nothing, outputFile, sameBytes, upload, type Lab } from "./lab.ts";
import { directory, fileNode, tree } from "./trees.ts";

async function ask(lab: Lab, method: string, path: string, body?: Uint8Array) {
  const url = `${needs(lab.http, "the address of an HTTP cache")}${path}`;
  const headers = { "accept-encoding": "identity", ...Object.fromEntries(lab.headers) };
  const response = await fetch(url, { method, headers, ...(body && { body: Buffer.from(body) }) });
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()), headers: response.headers };
}

const taken = [200, 201, 202, 204];

export const httpCases: readonly Case[] = [
  at(94, "a blob is put, looked for and got", async (lab) => {
    const bytes = fresh(5_000);
    const path = `/cas/${digestOf(bytes).hash}`;
    equal((await ask(lab, "GET", path)).status, 404);
    equal((await ask(lab, "HEAD", path)).status, 404);
    const put = await ask(lab, "PUT", path, bytes);
    ok(taken.includes(put.status), `PUT answered ${put.status}`);
    const got = await ask(lab, "GET", path);
    equal(got.status, 200);
    sameBytes(got.body, bytes, "GET");
    equal((await ask(lab, "HEAD", path)).status, 200);
    ok(got.headers.get("content-length") !== null, "no Content-Length");
  }),
  at(94, "a blob that came over gRPC is got by its hash alone", async (lab) => {
    needs(lab.http, "the address of an HTTP cache");
    for (const bytes of [fresh(5_000), fresh(300_000)]) {
      const { hash } = await upload(lab, bytes);
      const { status, body } = await ask(lab, "GET", `/cas/${hash}`);
      equal(status, 200);
      sameBytes(body, bytes, "GET");
    }
  }),
  at(94, "the empty blob is there", async (lab) => {
    const { status, body } = await ask(lab, "GET", `/cas/${nothing.hash}`);
    deepEqual([status, body.length], [200, 0]);
  }),
  at(94, "bytes of another digest are refused", async (lab) => {
    const path = `/cas/${digestOf(fresh()).hash}`;
    const { status } = await ask(lab, "PUT", path, fresh());
    ok(status >= 400 && status < 500, `PUT answered ${status}`);
    equal((await ask(lab, "GET", path)).status, 404);
  }),
  at(94, "a result is put and got; one that names what is missing is not served", async (lab) => {
    const file = fresh();
    await ask(lab, "PUT", `/cas/${digestOf(file).hash}`, file);
    const good = encode(ActionResult, { ...emptyResult, outputFiles: [outputFile("a", digestOf(file))] });
    const path = `/ac/${freshAction().hash}`;
    ok(taken.includes((await ask(lab, "PUT", path, good)).status), "PUT of a result");
    const got = await ask(lab, "GET", path);
    equal(got.status, 200);
    deepEqual(decode(ActionResult, got.body).outputFiles, decode(ActionResult, good).outputFiles);
    const lost = encode(ActionResult, { ...emptyResult, outputFiles: [outputFile("a", digestOf(fresh()))] });
    const other = `/ac/${freshAction().hash}`;
    await ask(lab, "PUT", other, lost);
    equal((await ask(lab, "GET", other)).status, 404);
  }),
  ...(["tree", "root directory"] as const).map((by) =>
    at(94, `a result is not served when a file is missing that only its ${by} names`, async (lab) => {
      const path = `/ac/${freshAction().hash}`;
      needs(lab.http, "the address of an HTTP cache");
      const file = fresh();
      const below = directory({ files: [fileNode("f", digestOf(file))] });
      const root = directory({ directories: { below } });
      await Promise.all([below, root].map((bytes) => upload(lab, bytes)));
      const treeDigest = await upload(lab, by === "tree" ? tree(root, [below]) : tree(directory({})));
      const rootDirectoryDigest = by === "tree" ? undefined : digestOf(root);
      const outputDirectories = [{ path: "d", isTopologicallySorted: false, treeDigest, rootDirectoryDigest }];
      await ask(lab, "PUT", path, encode(ActionResult, { ...emptyResult, outputDirectories }));
      equal((await ask(lab, "GET", path)).status, 404);
      await upload(lab, file);
      equal((await ask(lab, "GET", path)).status, 200);
    }),
  ),
  ...["/cas/xyz", `/ac/${"A".repeat(64)}`, "/cas/../../etc/passwd"].map((path) =>
    at(94, `${path} is no path`, async (lab) => {
      const { status } = await ask(lab, "GET", path);
      ok(status >= 400 && status < 500, `GET answered ${status}`);
    }),
  ),
];
