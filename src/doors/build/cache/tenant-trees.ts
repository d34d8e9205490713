/**
 * Directories that were read lately, for each tenant apart: what a tenant was not given, it is not told of, not even as
 * the names of what is missing in it (B5).
 */
import { Trees, treeLimitsDefault } from "#worker/stage/tree.ts";

const tenantsMax = 32;

export class TenantTrees {
  // A Map keeps the order of insertion; putting one in again moves it to the young end.
  readonly #trees = new Map<string, Trees>();

  forTenant(tenant: string): Trees {
    const trees = this.#trees.get(tenant) ?? new Trees({ keptMax: treeLimitsDefault.keptMax / 4 });
    this.#trees.delete(tenant);
    this.#trees.set(tenant, trees);
    for (const oldest of this.#trees.keys()) {
      if (this.#trees.size <= tenantsMax) break;
      this.#trees.delete(oldest);
    }
    return trees;
  }
}
