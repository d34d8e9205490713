/** Runs of workflows: the newest ones, and one with its jobs, its log and what may be done to it. */
import { address } from "#console/address.ts";
import { LiveMark, Table, Title, Took, Trouble } from "#console/parts.tsx";
import { Conclusion } from "./conclusion.tsx";
import { RunPage } from "./run.tsx";
import type { ShownRun } from "./shapes.ts";
import { useChanging } from "#console/use-changing.ts";

type Runs = { readonly items: readonly ShownRun[]; readonly next?: string };

export const Page = ({ rest }: { readonly rest: string }) =>
  rest === "" ? <RunsPage /> : <RunPage key={rest} run={decodeURIComponent(rest)} />;

function RunsPage() {
  const query = new URLSearchParams(address.value.split("?")[1] ?? "");
  const path = `/v1/runs?${new URLSearchParams({ limit: "50", ...Object.fromEntries(query) }).toString()}`;
  const {
    value: runs,
    problem,
    isLive,
  } = useChanging<Runs, unknown>(path, "/v1/jobs/watch?limit=50&door=ci", () => false);
  const next = runs?.next;
  return (
    <>
      <Title text="Runs">
        <LiveMark isLive={isLive} />
      </Title>
      <Trouble problem={problem} />
      {runs?.items.length === 0 && (
        <p>
          No runs yet. Register a repository: <code>npx millrace ci add owner/name</code>, and push to it.
        </p>
      )}
      {runs && runs.items.length > 0 && (
        <Table name="runs" head={["Run", "State", "Title", "Repository", "Ref", "Event", "Took"]}>
          {runs.items.map((one) => (
            <tr key={one.run}>
              <td>
                <a href={`/console/runs/${one.run}`}>{one.run}</a>
              </td>
              <td>
                <Conclusion status={one.status} conclusion={one.conclusion} />
              </td>
              <td>{one.title}</td>
              <td>{one.repository}</td>
              <td>{`${one.ref.replace(/^refs\/(heads|tags)\//, "")} ${one.sha.slice(0, 8)}`}</td>
              <td>{one.event}</td>
              <td class="number">
                <Took from={one.createdAt} to={one.endedAt} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {next !== undefined && (
        <p>
          <a href={`/console/runs?${new URLSearchParams({ ...Object.fromEntries(query), cursor: next }).toString()}`}>
            Older runs
          </a>
        </p>
      )}
    </>
  );
}
