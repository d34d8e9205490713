/** Finds the jobs in memory by their tags. Keys contain the tenant: no tenant's search touches another's jobs. */
import type { Job } from "./entities.ts";
import type { Tag } from "./model.ts";

const keyOf = (tenant: string, { name, value }: Tag): string => `${tenant}\u0000${name}\u0000${value}`;

const nobody: ReadonlySet<Job> = new Set();

export class TagIndex {
  readonly #jobs = new Map<string, Set<Job>>();

  get size(): number {
    return this.#jobs.size;
  }

  add(job: Job): void {
    for (const tag of job.extras?.tags ?? []) {
      const key = keyOf(job.tenant.name, tag);
      const known = this.#jobs.get(key);
      if (known) known.add(job);
      else this.#jobs.set(key, new Set([job]));
    }
  }

  remove(job: Job): void {
    for (const tag of job.extras?.tags ?? []) {
      const key = keyOf(job.tenant.name, tag);
      const known = this.#jobs.get(key);
      if (known?.delete(job) && known.size === 0) this.#jobs.delete(key);
    }
  }

  /** The tenant's jobs with the rarest of the tags: to be checked for the others. */
  having(tenant: string, tags: readonly Tag[]): ReadonlySet<Job> {
    let found: ReadonlySet<Job> | undefined;
    for (const tag of tags) {
      const jobs = this.#jobs.get(keyOf(tenant, tag)) ?? nobody;
      if (!found || jobs.size < found.size) found = jobs;
    }
    return found ?? nobody;
  }
}

export const hasTags = (own: readonly Tag[] | undefined, wanted: readonly Tag[]): boolean =>
  wanted.every(({ name, value }) => own?.some((tag) => tag.name === name && tag.value === value));
