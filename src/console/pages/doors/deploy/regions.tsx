/** All services, or one of them by region: what its machines should run, and how many do. */
import { Table, Title, Trouble } from "#console/parts.tsx";
import { useAsked } from "#console/live.ts";

type Services = {
  readonly services: readonly {
    readonly service: string;
    readonly regions: readonly string[];
    readonly sha: string;
    readonly releasedAt: string;
  }[];
};
type Regions = {
  readonly regions: readonly {
    readonly region: string;
    readonly version: number;
    readonly kind: string;
    readonly halted: boolean;
    readonly release: string;
    readonly sharePpm: number;
    readonly manifest: string | null;
    readonly stable: string | null;
    readonly machines: number;
    readonly running: number;
    readonly pins: readonly { readonly by: string }[];
  }[];
};

export const RegionsPage = ({ service }: { readonly service: string | undefined }) =>
  service === undefined ? <AllServices /> : <OneService service={service} />;

function AllServices() {
  const { value, problem } = useAsked<Services>("/v1/deploy/services");
  return (
    <>
      <Title text="Services" />
      <Trouble problem={problem} />
      {value && (
        <Table name="services" head={["Service", "Commit", "Released", "Regions"]}>
          {value.services.map((one) => (
            <tr key={one.service}>
              <td>
                <a href={`/console/releases/services/${one.service}`}>{one.service}</a>
              </td>
              <td>{one.sha.slice(0, 12)}</td>
              <td>{one.releasedAt}</td>
              <td>{one.regions.join(", ")}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function OneService({ service }: { readonly service: string }) {
  const { value, problem } = useAsked<Regions>(`/v1/deploy/services/${encodeURIComponent(service)}`);
  return (
    <>
      <Title text={service} />
      <Trouble problem={problem} />
      {value && (
        <Table name="regions" head={["Region", "Goal", "Release", "Share", "Running it", "Pins"]}>
          {value.regions.map((one) => (
            <tr key={one.region}>
              <td>{one.region}</td>
              <td>{`version ${one.version}${one.halted ? ", halted" : ""}`}</td>
              <td>
                <a href={`/console/releases/${one.release}`}>{`${one.release} (${one.kind})`}</a>
              </td>
              <td class="number">{`${one.sharePpm / 10_000}%`}</td>
              <td class="number">{`${one.running} of ${one.machines}`}</td>
              <td class="number">{one.pins.length}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
