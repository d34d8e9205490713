/** The newest jobs, live. */
import type { z } from "zod";
import type { JobSummary } from "#api/jobs.ts";
import { useLive } from "#console/live.ts";
import { LiveMark, Phase, Table, Title, Took, Trouble } from "#console/parts.tsx";

type Jobs = { readonly items: readonly z.output<typeof JobSummary>[]; readonly unreachable: readonly number[] };

export function JobsPage() {
  const { value, problem, isLive } = useLive<Jobs>("/v1/jobs/watch?limit=100");
  return (
    <>
      <Title text="Jobs">
        <LiveMark isLive={isLive} />
      </Title>
      <Trouble problem={problem} />
      {value && value.unreachable.length > 0 && (
        <p role="alert">Shards {value.unreachable.join(", ")} did not answer: their running jobs are missing.</p>
      )}
      {value?.items.length === 0 && (
        <p>
          No jobs yet. Submit one: <code>npx millrace job submit -- echo hello</code>
        </p>
      )}
      {value && value.items.length > 0 && (
        <Table name="jobs" head={["Job", "Phase", "Door", "Tasks", "Took", "Name"]}>
          {value.items.map((job) => (
            <tr key={job.job}>
              <td>
                <a href={`/console/jobs/${job.job}`}>{job.job}</a>
              </td>
              <td>
                <Phase phase={job.phase} />
              </td>
              <td>{job.door}</td>
              <td class="number">{job.tasks === undefined ? "" : `${job.done}/${job.tasks}`}</td>
              <td class="number">
                <Took from={job.submittedAt} to={job.endedAt} />
              </td>
              <td>{job.name}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
