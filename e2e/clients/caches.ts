/** A node with its HTTP caches, for clients that are programs of others. */
import { startRig, tokenOf } from "#app/http-caches-testing.ts";

export type Caches = AsyncDisposable & {
  readonly url: string;
  readonly token: string;
  readonly readOnlyToken: string;
};

export async function startCaches(): Promise<Caches> {
  const rig = await startRig();
  return {
    url: rig.url,
    token: tokenOf("writer"),
    readOnlyToken: tokenOf("reader"),
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  };
}
