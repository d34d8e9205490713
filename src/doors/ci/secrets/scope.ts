/**
 * Where a secret or a variable counts: for all repositories of the tenant, for those of an owner, for one repository,
 * or for one environment of it. The narrower counts more (CI-63). Pure.
 */
import { Fault } from "#base/fault.ts";

export type Scope = {
  readonly owner?: string | undefined;
  /** `owner/name`. */
  readonly repository?: string | undefined;
  /** Of the repository. */
  readonly environment?: string | undefined;
};

export const valueBytesMax = 48 * 1024;
const nameShape = /^[A-Za-z_][A-Za-z0-9_]{0,199}$/;

export const isName = (name: string): boolean => nameShape.test(name) && !/^GITHUB_/i.test(name);

/** As it is written down: names have no case. */
export function checkedName(doing: string, name: string): string {
  if (isName(name)) return name.toUpperCase();
  const why = "names have letters, digits and _, begin with no digit, and not with GITHUB_";
  throw new Fault("invalid", doing, { name: name.slice(0, 100), why });
}

/** Environments have no case either. */
export const environmentKey = (environment: string): string => encodeURIComponent(environment.toLowerCase());

/** What the names of its secrets begin with in the tenant's vault. */
export function secretPrefix({ owner, repository, environment }: Scope): string {
  if (repository === undefined) return owner === undefined ? "ci/" : `ci/${owner.toLowerCase()}/`;
  const whole = `ci/${repository}/`;
  return environment === undefined ? whole : `${whole}environments/${environmentKey(environment)}/`;
}

/** All that count for a job, the widest first. */
export function scopesOf(repository: string, environment?: string): readonly Scope[] {
  const [owner = ""] = repository.split("/");
  return [{}, { owner }, { repository }, ...(environment === undefined ? [] : [{ repository, environment }])];
}
