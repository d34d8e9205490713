/** Objects as `git cat-file --batch` prints them: a line with name, kind and size, the bytes, a line break. */
import { Fault } from "#base/fault.ts";

export type GitObject = { readonly name: string; readonly content: AsyncGenerator<Uint8Array> };

const lineMax = 1_000;

/** One after the other: the content of an object has to be read before the next one. */
export async function* objectsIn(output: AsyncIterable<Uint8Array>): AsyncGenerator<GitObject> {
  const parts = output[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const { done, value } = await parts.next();
    if (done !== true) rest = rest.length === 0 ? Buffer.from(value) : Buffer.concat([rest, value]);
    return done !== true;
  };
  async function* content(sizeBytes: number): AsyncGenerator<Uint8Array> {
    for (let left = sizeBytes; left > 0;) {
      if (rest.length === 0 && !(await more())) throw broken();
      const part = rest.subarray(0, left);
      rest = rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }
  for (;;) {
    while (!rest.includes("\n") && rest.length < lineMax) if (!(await more())) break;
    if (rest.length === 0) return;
    const end = rest.indexOf("\n");
    const [, name, size] = /^([0-9a-f]+) blob (\d+)$/.exec(rest.subarray(0, end).toString("latin1")) ?? [];
    if (end < 0 || name === undefined) throw broken();
    rest = rest.subarray(end + 1);
    yield { name, content: content(Number(size)) };
    while (rest.length === 0) if (!(await more())) throw broken();
    rest = rest.subarray(1);
  }
}

const broken = (): Fault =>
  new Fault("corrupt", "read objects of a repository", { why: "an object is missing or cut off" });
