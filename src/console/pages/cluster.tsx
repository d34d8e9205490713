/** Nodes and shards, live. */
import type { z } from "zod";
import type { showCluster } from "#api/cluster.ts";
import { useLive } from "#console/live.ts";
import { LiveMark, Table, Title, Trouble } from "#console/parts.tsx";

type Cluster = z.output<(typeof showCluster)["answer"]["schema"]>;

const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;

export function ClusterPage() {
  const { value, problem, isLive } = useLive<Cluster>("/v1/cluster/watch");
  return (
    <>
      <Title text={`Cluster ${value?.cluster ?? ""}`.trim()}>
        <LiveMark isLive={isLive} />
      </Title>
      <Trouble problem={problem} />
      {value && (
        <>
          <h2>Nodes</h2>
          <Table name="nodes" head={["Node", "State", "Seen", "Slots", "Running", "Sandbox", "Version"]}>
            {value.nodes.map(({ node, alive, state, seenAgoMs, facts }) => (
              <tr key={node}>
                <td>
                  {node} {node === value.node && <span class="quiet">(answers you)</span>}
                </td>
                <td class={alive ? "good" : "bad"}>{alive ? state : "gone"}</td>
                <td class="number">{`${seconds(seenAgoMs)} ago`}</td>
                <td class="number">{facts["slots"] ?? ""}</td>
                <td class="number">{facts["running"] ?? ""}</td>
                <td>{facts["sandbox"] ?? ""}</td>
                <td>{facts["version"] ?? ""}</td>
              </tr>
            ))}
          </Table>
          <h2>Shards</h2>
          <Table name="shards" head={["Shard", "Owner", "Epoch", "Lease"]}>
            {value.shards.map(({ shard, owner, epoch, leaseMs }) => (
              <tr key={shard}>
                <td class="number">{shard}</td>
                <td class={owner === undefined ? "bad" : ""}>{owner ?? "no owner"}</td>
                <td class="number">{epoch}</td>
                <td class="number">{seconds(leaseMs)}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  );
}
