/** Item 95: remote assets. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { detailsOf, isGrpcError } from "#grpc/status.ts";
import { Fetch, Push, type Qualifier } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import type { Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { BadRequest } from "#wire/generated/google/rpc/error_details.ts";
import { at, needs, Skip, type Case } from "./case.ts";
import { code, codeOf, digestOf, ends, fresh, readAll, readName, sameBytes, upload, type Lab } from "./lab.ts";
import { directory, fileNode } from "./trees.ts";

const { fetchBlob, fetchDirectory } = Fetch.methods;
const { pushBlob, pushDirectory } = Push.methods;

const sri = (bytes: Uint8Array): Qualifier => ({
  name: "checksum.sri",
  value: `sha256-${createHash("sha256").update(bytes).digest("base64")}`,
});

const freshUri = (): string => `urn:conformance:${randomUUID()}`;

async function ask<T>(call: Promise<T>): Promise<T> {
  if ((await codeOf(call)) === code.unimplemented) throw new Skip("needs a server of remote assets");
  return await call;
}

const fetching = (lab: Lab, uris: readonly string[], qualifiers: readonly Qualifier[] = [], more: object = {}) =>
  ask(lab.client.unary(fetchBlob, { instanceName: lab.instance, uris, qualifiers, digestFunction: 0, ...more }));

const pushing = (lab: Lab, uris: readonly string[], blobDigest: Digest, qualifiers: readonly Qualifier[] = []) =>
  ask(
    lab.client.unary(pushBlob, {
      instanceName: lab.instance,
      uris,
      qualifiers,
      blobDigest,
      referencesBlobs: [],
      referencesDirectories: [],
      digestFunction: 0,
    }),
  );

export const assetCases: readonly Case[] = [
  at(95, "what was pushed is fetched, by each of its addresses", async (lab) => {
    const digest = await upload(lab, fresh());
    const uris = [freshUri(), freshUri()];
    await pushing(lab, uris, digest);
    for (const asked of [[uris[0] ?? ""], [freshUri(), uris[1] ?? ""]]) {
      const found = await fetching(lab, asked);
      equal(found.status?.code ?? 0, 0);
      deepEqual(found.blobDigest, digest);
      equal(found.uri, asked.at(-1));
    }
  }),
  at(95, "qualifiers make it another asset", async (lab) => {
    const uri = freshUri();
    const digest = await upload(lab, fresh());
    const qualifier = { name: "bazel.canonical_id", value: randomUUID() };
    await pushing(lab, [uri], digest, [qualifier]);
    deepEqual((await fetching(lab, [uri], [qualifier])).blobDigest, digest);
    const other = await fetchedOrNot(lab, uri, [{ ...qualifier, value: "another" }]);
    ok(other !== 0, "another canonical id was answered");
  }),
  at(95, "a directory is pushed and fetched with all that is below it", async (lab) => {
    const file = await upload(lab, fresh());
    const child = directory({ files: [fileNode("f", file)] });
    await upload(lab, child);
    const rootDirectoryDigest = await upload(lab, directory({ directories: { child } }));
    const uris = [freshUri()];
    const same = { instanceName: lab.instance, uris, qualifiers: [], digestFunction: 0 };
    const push = { ...same, rootDirectoryDigest, referencesBlobs: [], referencesDirectories: [] };
    await ask(lab.client.unary(pushDirectory, push));
    const found = await lab.client.unary(fetchDirectory, same);
    deepEqual(found.rootDirectoryDigest, rootDirectoryDigest);
  }),
  at(95, "what nobody pushed and nobody may fetch is not found", async (lab) => {
    const ended = await fetchedOrNot(lab, freshUri(), []);
    ok([code.notFound, code.denied, code.invalid].includes(ended as never), `it ended with ${ended}`);
  }),
  at(95, "no address is refused", (lab) => ends(fetching(lab, []), code.invalid, "FetchBlob")),
  at(95, "a qualifier that is not understood is refused, and named", async (lab) => {
    const name = `nobody-knows-${randomUUID()}`;
    const error = await fetching(lab, [freshUri()], [{ name, value: "x" }]).catch((thrown: unknown) => {
      if (isGrpcError(thrown)) return thrown;
      throw thrown;
    });
    ok(isGrpcError(error), "it was taken");
    equal(error.code, code.invalid);
    const violations = detailsOf(error, BadRequest).flatMap(({ fieldViolations }) => fieldViolations);
    ok(
      violations.some(({ description }) => description.includes(name)),
      "no BadRequest names it",
    );
  }),
  at(95, "a file is fetched, checked and kept", async (lab) => {
    const files = needs(lab.files, "a file server that may be fetched from");
    const uri = `${files}/hello.txt?${randomUUID()}`;
    const bytes = Buffer.from(await (await fetch(uri)).arrayBuffer());
    const found = await fetching(lab, [uri], [sri(bytes)]);
    deepEqual(found.blobDigest, digestOf(bytes));
    sameBytes(await readAll(lab, readName(lab, digestOf(bytes))), bytes, "Read");
    const wrong = await fetching(lab, [`${uri}x`], [sri(fresh())]);
    ok((wrong.status?.code ?? 0) !== 0, "another checksum was taken");
  }),
  at(95, "that the world fails is told within the answer", async (lab) => {
    const files = needs(lab.files, "a file server that may be fetched from");
    const { status } = await fetching(lab, [`${files}/${randomUUID()}`]);
    equal(status?.code, code.notFound);
  }),
  at(95, "what is older than accepted is not answered", async (lab) => {
    const uri = freshUri();
    await pushing(lab, [uri], await upload(lab, fresh()));
    const later = { seconds: Math.floor(Date.now() / 1_000) + 3_600, nanos: 0 };
    const call = fetching(lab, [uri], [], { oldestContentAccepted: later });
    ok((await codeOf(call)) !== 0 || ((await call).status?.code ?? 0) !== 0, "it was answered");
  }),
];

async function fetchedOrNot(lab: Lab, uri: string, qualifiers: readonly Qualifier[]): Promise<number> {
  const call = fetching(lab, [uri], qualifiers);
  const ended = await codeOf(call);
  return ended === 0 ? ((await call).status?.code ?? 0) : ended;
}
