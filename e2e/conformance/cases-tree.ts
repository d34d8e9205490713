/** Item 33: trees. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { at, type Case } from "./case.ts";
import { code, digestOf, ends, fresh, nothing, sameBytes, upload } from "./lab.ts";
import { directory, fileNode, treeOf } from "./trees.ts";

export const treeCases: readonly Case[] = [
  at(33, "a tree comes whole, each directory once, the root first", async (lab) => {
    const leaf = directory({ files: [fileNode("a", digestOf(fresh()))] });
    const left = directory({ directories: { same: leaf } });
    const right = directory({ directories: { other: leaf, same: leaf }, files: [fileNode("b", nothing)] });
    const root = directory({ directories: { left, right } });
    for (const bytes of [leaf, left, right, root]) await upload(lab, bytes);
    const found = await treeOf(lab, digestOf(root));
    equal(found[0]?.equals(root), true, "the root comes first");
    const sorted = (all: readonly Buffer[]) => all.map((one) => digestOf(one).hash).toSorted();
    deepEqual(sorted(found), sorted([root, left, right, leaf]));
  }),
  at(33, "directories come as the bytes that they are", async (lab) => {
    // Fields in an unusual order: hashed as bytes, so they must be returned as the same bytes.
    const files = directory({ files: [fileNode("f", digestOf(fresh()))] });
    const odd = Buffer.concat([Buffer.from([0x2a, 0x00]), files]);
    await upload(lab, odd);
    const [found] = await treeOf(lab, digestOf(odd));
    sameBytes(found ?? Buffer.alloc(0), odd, "the root");
  }),
  at(33, "a root that is missing is not found; what is missing below is left out", async (lab) => {
    await ends(treeOf(lab, digestOf(fresh())), code.notFound, "GetTree");
    const root = directory({ directories: { gone: directory({ files: [fileNode("x", digestOf(fresh()))] }) } });
    await upload(lab, root);
    deepEqual((await treeOf(lab, digestOf(root))).length, 1);
  }),
  at(33, "a tree comes in pages, and from the middle", async (lab) => {
    const leaves = Array.from({ length: 10 }, () => directory({ files: [fileNode("f", digestOf(fresh()))] }));
    const root = directory({ directories: Object.fromEntries(leaves.map((leaf, i) => [`d${i}`, leaf])) });
    for (const bytes of [...leaves, root]) await upload(lab, bytes);
    const pages: { size: number; token: string }[] = [];
    const whole = await treeOf(lab, digestOf(root), {
      pageSize: 3,
      page: (size, token) => pages.push({ size, token }),
    });
    equal(whole.length, 11);
    ok(
      pages.every(({ size }) => size <= 3),
      `pages of ${pages.map(({ size }) => size).join()}`,
    );
    equal(pages.at(-1)?.token, "", "the last page has a token");
    const [{ size, token } = { size: 0, token: "" }] = pages;
    ok(token !== "", "the first page has no token");
    const rest = await treeOf(lab, digestOf(root), { pageToken: token });
    deepEqual(
      rest.map((one) => digestOf(one).hash),
      whole.slice(size).map((one) => digestOf(one).hash),
    );
  }),
  at(33, "a token that is none is refused", async (lab) => {
    const bytes = directory({ files: [fileNode("f", digestOf(fresh()))] });
    await upload(lab, bytes);
    await ends(treeOf(lab, digestOf(bytes), { pageToken: "nonsense" }), code.invalid, "GetTree");
  }),
  at(33, "a blob that is no directory is refused", async (lab) => {
    const digest = await upload(lab, Buffer.concat([Buffer.from([0xff, 0xff, 0xff]), fresh(50)]));
    await ends(treeOf(lab, digest), [code.invalid, code.precondition], "GetTree");
  }),
];
