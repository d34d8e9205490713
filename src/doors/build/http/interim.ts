import { Digest } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Message } from "#wire/message.ts";
import type { Reader } from "#wire/reader.ts";
type D = Digest | undefined;
function sub<T>(from: Reader, read: (end: number) => T): T {
  const end = from.enter();
  const got = read(end);
  from.leave(end);
  return got;
}
function each(from: Reader, end: number, on: Record<number, () => void>): void {
  while (from.pos < end) {
    const tag = from.tag();
    if (on[tag]) on[tag]();
    else from.skip(tag);
  }
}
const digestAt = (from: Reader, end: number, tag: number): { digest: D } => {
  let digest: D;
  each(from, end, { [tag]: () => (digest = sub(from, (e) => Digest.read(from, e))) });
  return { digest };
};
export type ActionResult = {
  outputFiles: { digest: D }[];
  outputDirectories: { treeDigest: D }[];
  stdoutDigest: D;
  stderrDigest: D;
};
export const ActionResult: Message<ActionResult> = {
  typeName: "build.bazel.remote.execution.v2.ActionResult",
  write(message, to) {
    for (const { digest } of message.outputFiles) {
      const at = to.open(18);
      to.string(10, "out");
      const inner = to.open(18);
      if (digest) Digest.write(digest, to);
      to.close(inner);
      to.close(at);
    }
  },
  read(from, end) {
    const out: ActionResult = {
      outputFiles: [],
      outputDirectories: [],
      stdoutDigest: undefined,
      stderrDigest: undefined,
    };
    each(from, end, {
      18: () => out.outputFiles.push(sub(from, (e) => digestAt(from, e, 18))),
      26: () => out.outputDirectories.push({ treeDigest: sub(from, (e) => digestAt(from, e, 26)).digest }),
      50: () => (out.stdoutDigest = sub(from, (e) => Digest.read(from, e))),
      66: () => (out.stderrDigest = sub(from, (e) => Digest.read(from, e))),
    });
    return out;
  },
};
type Directory = { files: { digest: D }[] };
export const Tree: Message<{ root: Directory; children: Directory[] }> = {
  typeName: "build.bazel.remote.execution.v2.Tree",
  write() {},
  read(from, end) {
    const dir = (e: number): Directory => {
      const files: { digest: D }[] = [];
      each(from, e, { 10: () => files.push(sub(from, (f) => digestAt(from, f, 18))) });
      return { files };
    };
    let root: Directory = { files: [] };
    const children: Directory[] = [];
    each(from, end, { 10: () => (root = sub(from, dir)), 18: () => children.push(sub(from, dir)) });
    return { root, children };
  },
};
