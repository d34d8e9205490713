/** `vars`: what is no secret and may change without a commit, with the same scopes as secrets. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { checkedName, environmentKey, type Scope, valueBytesMax } from "#doors/ci/secrets/scope.ts";
import { allPages } from "./all-pages.ts";

const Variable = z.object({
  name: z.string(),
  value: z.string(),
  /** Left out, with `repository`: of all repositories of the tenant. */
  owner: z.string().optional(),
  repository: z.string().optional(),
  environment: z.string().optional(),
  by: z.string(),
  atMs: z.number(),
});
export type Variable = z.output<typeof Variable>;

export const valueLengthMax = valueBytesMax;
const variablesMax = 1_000;

export class Variables {
  readonly #kept;

  constructor(records: Records) {
    const limits = { countMax: variablesMax, bytesMax: 16 * 1024 * 1024 };
    this.#kept = recordsOf(records, { kind: "ci.variable", schema: Variable, limits });
  }

  async set(tenant: string, variable: Variable): Promise<void> {
    const { value } = variable;
    const name = checkedName("set a variable", variable.name);
    checkScope(variable);
    if (value.length > valueLengthMax)
      throw new Fault("invalid", "set a variable", { name, why: `a value has at most ${valueLengthMax} characters` });
    const { created } = await this.#kept.create(tenant, keyOf(variable), variable);
    if (!created) await this.#kept.update(tenant, keyOf(variable), () => variable);
  }

  async remove(tenant: string, variable: Pick<Variable, "name"> & Scope): Promise<boolean> {
    checkScope(variable);
    return await this.#kept.remove(tenant, keyOf(variable));
  }

  /** All that count in the scope, by name, the narrowest last. */
  async list(tenant: string, scope: Scope): Promise<readonly Variable[]> {
    checkScope(scope);
    const records = await allPages(this.#kept, tenant);
    return records
      .map(({ value }) => value)
      .filter((one) => counts(one, scope))
      .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : narrowness(a) - narrowness(b)));
  }

  /** As a run sees them. */
  async of(tenant: string, repository: string): Promise<Readonly<Record<string, string>>> {
    return byName(await this.list(tenant, { repository }));
  }

  /** What a job sees besides, or instead, because of what it deploys to. */
  async ofEnvironment(
    tenant: string,
    scope: { readonly repository: string; readonly environment: string },
  ): Promise<Readonly<Record<string, string>>> {
    return byName((await this.list(tenant, scope)).filter(({ environment }) => environment !== undefined));
  }
}

const byName = (variables: readonly Variable[]): Readonly<Record<string, string>> =>
  Object.fromEntries(variables.map(({ name, value }) => [name.toUpperCase(), value]));

function checkScope({ owner, repository, environment }: Scope): void {
  const why =
    environment !== undefined && repository === undefined
      ? "an environment is one of a repository: name that as well"
      : owner !== undefined && repository !== undefined
        ? "name an owner or a repository, not both"
        : undefined;
  if (why !== undefined) throw new Fault("invalid", "find a variable", { why });
}

function counts(one: Variable, { owner, repository, environment }: Scope): boolean {
  const isSame = (a: string | undefined, b: string | undefined): boolean => a?.toLowerCase() === b?.toLowerCase();
  if (one.environment !== undefined) return isSame(one.environment, environment) && isSame(one.repository, repository);
  if (one.repository !== undefined) return isSame(one.repository, repository);
  return one.owner === undefined || isSame(one.owner, owner ?? repository?.split("/")[0]);
}

const narrowness = ({ owner, repository, environment }: Scope): number =>
  environment !== undefined ? 3 : repository !== undefined ? 2 : owner === undefined ? 0 : 1;

function keyOf({ name, owner, repository = "", environment }: Pick<Variable, "name"> & Scope): string {
  const place = owner === undefined ? repository : `${owner}/`;
  const inside = environment === undefined ? "" : `/environments/${environmentKey(environment)}`;
  return `${place.toLowerCase()}${inside}/${name.toUpperCase()}`;
}
