/** Releases: the newest ones, services by region, and one release with its waves, regions and machines. */
import { LiveMark, Table, Title, Trouble } from "#console/parts.tsx";
import { useAsked, useLive } from "#console/live.ts";
import { RegionsPage } from "./regions.tsx";
import { ReleasePage } from "./release.tsx";

type Row = {
  readonly id: string;
  readonly created_at: string;
  readonly commit_sha: string | null;
  readonly name: string;
  readonly status: string;
};

export function Page({ rest }: { readonly rest: string }) {
  const [part = "", service] = rest.split("/").map(decodeURIComponent);
  if (part === "") return <ReleasesPage />;
  if (part === "services") return <RegionsPage key={rest} service={service} />;
  return <ReleasePage key={rest} job={part} />;
}

function ReleasesPage() {
  // Any change of a job of this door makes the list another one.
  const changed = useLive<unknown>("/v1/jobs/watch?limit=50&door=deploy");
  const key = JSON.stringify(changed.value ?? "").length;
  const { value, problem } = useAsked<{ readonly jobs: readonly Row[] }>(`/v1/deploy/jobs#${key}`);
  return (
    <>
      <Title text="Releases">
        <LiveMark isLive={changed.isLive} />
      </Title>
      <p>
        <a href="/console/releases/services">Services by region</a>
      </p>
      <Trouble problem={problem ?? changed.problem} />
      {value?.jobs.length === 0 && (
        <p>
          No releases yet. Release a commit: <code>npx millrace deploy release service.yaml</code>.
        </p>
      )}
      {value && value.jobs.length > 0 && (
        <Table name="releases" head={["Release", "State", "Name", "Commit", "Began"]}>
          {value.jobs.map((one) => (
            <tr key={one.id}>
              <td>
                <a href={one.name.startsWith("build ") ? `/console/jobs/${one.id}` : `/console/releases/${one.id}`}>
                  {one.id}
                </a>
              </td>
              <td>
                <span class={`phase ${kinds[one.status] ?? ""}`}>{one.status}</span>
              </td>
              <td>{one.name}</td>
              <td>{one.commit_sha?.slice(0, 12) ?? ""}</td>
              <td>{one.created_at}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

const kinds: Readonly<Record<string, string>> = { succeeded: "good", failed: "bad", running: "busy" };
