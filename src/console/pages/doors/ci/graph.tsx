/** The graph of a run's jobs: columns by how deep a job is in the needs, each job a button. */
import { Conclusion } from "./conclusion.tsx";
import { keyOf, type ShownJob } from "./shapes.ts";

/** By id: one more than the deepest of what it needs. */
export function depthsOf(jobs: readonly Pick<ShownJob, "id" | "needs">[]): ReadonlyMap<string, number> {
  const needs = new Map(jobs.map((job) => [job.id, job.needs]));
  const depths = new Map<string, number>();
  const depthOf = (id: string, seen: ReadonlySet<string>): number => {
    const known = depths.get(id);
    if (known !== undefined) return known;
    if (seen.has(id)) return 0; // a file with such a ring is refused; a page must end nevertheless
    const before = (needs.get(id) ?? []).map((need) => depthOf(need, new Set([...seen, id])) + 1);
    const depth = Math.max(0, ...before);
    depths.set(id, depth);
    return depth;
  };
  for (const { id } of jobs) depthOf(id, new Set());
  return depths;
}

export function JobGraph({
  jobs,
  chosen,
  choose,
}: {
  readonly jobs: readonly ShownJob[];
  readonly chosen: string | undefined;
  readonly choose: (key: string) => void;
}) {
  const depths = depthsOf(jobs);
  const columns = Math.max(0, ...depths.values()) + 1;
  return (
    <div class="graph" role="region" aria-label="jobs" tabIndex={0}>
      {Array.from({ length: columns }, (_, column) => (
        <ul key={column}>
          {jobs
            .filter(({ id }) => depths.get(id) === column)
            .map((job) => (
              <li key={keyOf(job)}>
                <button type="button" aria-pressed={keyOf(job) === chosen} onClick={() => choose(keyOf(job))}>
                  {job.name} <Conclusion status={job.status} conclusion={job.conclusion} />
                </button>
                {job.needs.length > 0 && <small class="quiet">{`needs ${job.needs.join(", ")}`}</small>}
              </li>
            ))}
        </ul>
      ))}
    </div>
  );
}
