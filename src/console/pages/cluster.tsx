/** Nodes and shards. */
import type { z } from "zod";
import type { showCluster } from "#api/cluster.ts";
import { Table, Trouble } from "#console/parts.tsx";
import { useAsked } from "#console/server.ts";

type Cluster = z.output<(typeof showCluster)["answer"]["schema"]>;

export function ClusterPage() {
  const { value, problem } = useAsked<Cluster>("/v1/cluster", 5_000);
  return (
    <>
      <h1>Cluster {value?.cluster}</h1>
      <Trouble problem={problem} />
      {value && (
        <>
          <h2>Nodes</h2>
          <Table head={["Node", "State", "Seen", "Slots", "Running", "Sandbox", "Version"]}>
            {value.nodes.map(({ node, alive, state, seenAgoMs, facts }) => (
              <tr key={node}>
                <td>
                  {node} {node === value.node && <span class="quiet">(answers you)</span>}
                </td>
                <td class={alive ? "good" : "bad"}>{alive ? state : "gone"}</td>
                <td class="number">{`${Math.round(seenAgoMs / 1_000)} s ago`}</td>
                <td class="number">{facts["slots"] ?? ""}</td>
                <td class="number">{facts["running"] ?? ""}</td>
                <td>{facts["sandbox"] ?? ""}</td>
                <td>{facts["version"] ?? ""}</td>
              </tr>
            ))}
          </Table>
          <h2>Shards</h2>
          <Table head={["Shard", "Owner", "Epoch", "Lease"]}>
            {value.shards.map(({ shard, owner, epoch, leaseMs }) => (
              <tr key={shard}>
                <td class="number">{shard}</td>
                <td class={owner === undefined ? "bad" : ""}>{owner ?? "nobody"}</td>
                <td class="number">{epoch}</td>
                <td class="number">{`${Math.round(leaseMs / 1_000)} s`}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  );
}
