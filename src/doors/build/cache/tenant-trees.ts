/**
 * A cache of directories, separate for each tenant: a tenant must not learn of another's blobs, not even as the names
 * of missing ones (B5).
 */
import { Trees, treeLimitsDefault } from "#worker/stage/tree.ts";

const tenantsMax = 32;

export class TenantTrees {
  // A Map keeps the order of insertion; inserting again moves an entry to the newest end.
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
