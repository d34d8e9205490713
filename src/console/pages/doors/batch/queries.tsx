/** Queries: the newest ones, live, and one query with its stages. */
import type { z } from "zod";
import type { JobSummary } from "#api/jobs.ts";
import { useLive } from "#console/live.ts";
import { LiveMark, Phase, Table, Title, Took, Trouble } from "#console/parts.tsx";
import { QueryPage } from "./query.tsx";

type Jobs = { readonly items: readonly z.output<typeof JobSummary>[] };

export function Page({ rest }: { readonly rest: string }) {
  const job = decodeURIComponent(rest.split("/")[0] ?? "");
  return job === "" ? <QueriesPage /> : <QueryPage key={job} job={job} />;
}

function QueriesPage() {
  const { value, problem, isLive } = useLive<Jobs>("/v1/jobs/watch?limit=100&door=batch");
  return (
    <>
      <Title text="Queries">
        <LiveMark isLive={isLive} />
      </Title>
      <Trouble problem={problem} />
      {value?.items.length === 0 && (
        <p>
          No queries yet. Run one: <code>npx millrace sql "select count(*) from 'data/*.parquet'"</code>
        </p>
      )}
      {value && value.items.length > 0 && (
        <Table name="queries" head={["Query", "State", "Tasks", "Took", "SQL"]}>
          {value.items.map((one) => (
            <tr key={one.job}>
              <td>
                <a href={`/console/queries/${one.job}`}>{one.job}</a>
              </td>
              <td>
                <Phase phase={one.phase} />
              </td>
              <td class="number">{one.tasks === undefined ? "" : `${one.done}/${one.tasks}`}</td>
              <td class="number">
                <Took from={one.submittedAt} to={one.endedAt} />
              </td>
              <td>{one.name}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
