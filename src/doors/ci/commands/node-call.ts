/** What commands about runs ask of a node. */
import { Fault } from "#base/fault.ts";
import type { ServerFlagValues, World } from "#door/command.ts";
import type { Fetch } from "#http/client.ts";

export const fetchOf = async (values: ServerFlagValues, world: World): Promise<Fetch> => {
  const http = await world.http(values);
  return (path, init) => http.reach(path, init);
};

export function ownerAndName(repository: string): { readonly owner: string; readonly name: string } {
  const [owner = "", name = "", more] = repository.split("/");
  if (owner === "" || name === "" || more !== undefined)
    throw new Fault("invalid", "read the repository's name", { repository, try: "write it as owner/name" });
  return { owner, name };
}

/** The named repository, or the one that the address of `origin` here names. */
export async function repositoryHere(named: string | undefined): Promise<string> {
  if (named !== undefined) return named;
  const { readRepository } = await import("#doors/ci/local/repository.ts");
  return (await readRepository(process.cwd())).name;
}

export function usage({ note }: World, example: string): 2 {
  note(`something is missing; for example: millrace ${example}`);
  return 2;
}

export function pairsIn(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const equals = word.indexOf("=");
      if (equals <= 0) throw new Fault("invalid", "read --input", { input: word, try: "write --input name=value" });
      return [word.slice(0, equals), word.slice(equals + 1)] as const;
    }),
  );
}
