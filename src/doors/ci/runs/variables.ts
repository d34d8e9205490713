/** `vars`: what is no secret and may change without a commit; of a tenant, and of a repository, which counts more. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { allPages } from "./all-pages.ts";

const Variable = z.object({
  name: z.string(),
  value: z.string(),
  /** Left out: of all repositories of the tenant. */
  repository: z.string().optional(),
  by: z.string(),
  atMs: z.number(),
});
export type Variable = z.output<typeof Variable>;

export const valueLengthMax = 48 * 1024;
const variablesMax = 1_000;
const nameShape = /^[A-Za-z_][A-Za-z0-9_]{0,199}$/;

export class Variables {
  readonly #kept;

  constructor(records: Records) {
    const limits = { countMax: variablesMax, bytesMax: 16 * 1024 * 1024 };
    this.#kept = recordsOf(records, { kind: "ci.variable", schema: Variable, limits });
  }

  async set(tenant: string, variable: Variable): Promise<void> {
    const { name, value } = variable;
    if (!nameShape.test(name) || /^GITHUB_/i.test(name))
      throw new Fault("invalid", "set a variable", {
        name: name.slice(0, 100),
        why: "names have letters, digits and _, begin with no digit, and not with GITHUB_",
      });
    if (value.length > valueLengthMax)
      throw new Fault("invalid", "set a variable", { name, why: `a value has at most ${valueLengthMax} characters` });
    const { created } = await this.#kept.create(tenant, keyOf(variable), variable);
    if (!created) await this.#kept.update(tenant, keyOf(variable), () => variable);
  }

  async remove(tenant: string, variable: Pick<Variable, "name" | "repository">): Promise<boolean> {
    return await this.#kept.remove(tenant, keyOf(variable));
  }

  /** Of the tenant, and of one repository where one is named. */
  async list(tenant: string, repository?: string): Promise<readonly Variable[]> {
    const records = await allPages(this.#kept, tenant);
    const wanted = repository?.toLowerCase();
    return records
      .map(({ value }) => value)
      .filter((one) => one.repository === undefined || one.repository.toLowerCase() === wanted)
      .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.repository === undefined ? -1 : 1));
  }

  /** As a run sees them. */
  async of(tenant: string, repository: string): Promise<Readonly<Record<string, string>>> {
    const all = await this.list(tenant, repository);
    return Object.fromEntries(all.map(({ name, value }) => [name.toUpperCase(), value]));
  }
}

const keyOf = ({ name, repository = "" }: Pick<Variable, "name" | "repository">): string =>
  `${repository.toLowerCase()}/${name.toUpperCase()}`;
