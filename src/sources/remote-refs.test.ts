import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { remoteRefs } from "./remote-refs.ts";

test("refs elsewhere: the default branch, branches, and tags that lead through a tag object", () => {
  const text = [
    "ref: refs/heads/trunk\tHEAD",
    "aaaa\tHEAD",
    "aaaa\trefs/heads/trunk",
    "bbbb\trefs/tags/v1",
    "cccc\trefs/tags/v1^{}",
    "dddd\trefs/tags/light",
    "",
  ].join("\n");
  const { head, commits } = remoteRefs(text);
  deepEqual(
    [head, ...commits],
    ["refs/heads/trunk", ["refs/heads/trunk", "aaaa"], ["refs/tags/v1", "cccc"], ["refs/tags/light", "dddd"]],
  );
  deepEqual(remoteRefs(""), { commits: new Map() });
});
