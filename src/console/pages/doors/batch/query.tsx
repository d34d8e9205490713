/** One query, live: its stages with tasks, rows, bytes, skew, spill and second attempts, and what is left of them. */
import { useState } from "preact/hooks";
import { formatSize } from "#base/units.ts";
import { LiveMark, Phase, Table, Title, Took, Trouble } from "#console/parts.tsx";
import { post } from "#console/server.ts";
import { useChanging } from "#console/use-changing.ts";
import type { ShownQuery, ShownStage } from "./shapes.ts";

type Changed = { readonly endedAt?: string };

export function QueryPage({ job }: { readonly job: string }) {
  const id = encodeURIComponent(job);
  const {
    value: shown,
    problem,
    isLive,
  } = useChanging<ShownQuery, Changed>(
    `/v1/batch/queries/${id}`,
    `/v1/jobs/${id}/watch`,
    ({ endedAt }) => endedAt !== undefined,
  );
  const [failed, setFailed] = useState<string>();
  if (!shown) return <Trouble problem={problem} />;
  const cancel = (): void =>
    void post(`/v1/jobs/${id}/cancel`, { reason: "" }).then(
      () => setFailed(undefined),
      (error: Error) => setFailed(error.message),
    );
  return (
    <>
      <Title text={`Query ${shown.job}`}>
        <Phase phase={shown.phase} />
      </Title>
      <p>
        <code>{shown.name}</code>
      </p>
      <p class="quiet">
        <Took from={shown.submittedAt} to={shown.endedAt} />
        {`, ${summaryOf(shown)} `}
        {!shown.ended && <LiveMark isLive={isLive} />}
      </p>
      <Trouble problem={failed ?? problem} />
      {shown.failure !== undefined && <pre role="alert">{shown.failure}</pre>}
      {!shown.ended && (
        <p class="actions">
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        </p>
      )}
      {shown.stages.length > 0 && <Stages stages={shown.stages} />}
      {shown.written && <p>{`${shown.written.rows} rows written to ${shown.written.folder}`}</p>}
      <p>
        <a href={`/console/jobs/${shown.job}`}>Tasks and events of this job</a>
      </p>
    </>
  );
}

function summaryOf({ tasks, done, ended, stages, foreseen }: ShownQuery): string {
  const count = `${done} of ${tasks} tasks done`;
  return ended || foreseen === undefined || foreseen <= stages.length
    ? count
    : `${count}, stage ${stages.length} of about ${foreseen}`;
}

const Stages = ({ stages }: { readonly stages: readonly ShownStage[] }) => (
  <>
    <h2>Stages</h2>
    <Table
      name="stages"
      head={["Wave", "Stage", "Tasks", "Left", "Rows", "Written", "CPU", "Skew", "Spilled", "Attempts", "Notes"]}
    >
      {stages.map((stage) => (
        <tr key={stage.id}>
          <td class="number">{stage.wave}</td>
          <td>{stage.about}</td>
          <td>
            <progress value={stage.tasks} max={Math.max(1, stage.planned)} aria-label={`tasks of ${stage.about}`} />
            {` ${stage.tasks}/${stage.planned}${stage.running > 0 ? `, ${stage.running} running` : ""}`}
          </td>
          <td class="number">{leftOf(stage)}</td>
          <td class="number">{stage.rows.toLocaleString("en")}</td>
          <td class="number">{formatSize(stage.bytes)}</td>
          <td class="number">{`${(stage.cpuMs / 1_000).toFixed(1)} s`}</td>
          <td class="number">{stage.tasks > 1 ? stage.skew.toFixed(2) : ""}</td>
          <td class="number">{stage.spilled > 0 ? formatSize(stage.spilled) : ""}</td>
          <td>{attemptsOf(stage)}</td>
          <td>{notesOf(stage)}</td>
        </tr>
      ))}
    </Table>
  </>
);

function leftOf({ tasks, planned, leftMs }: ShownStage): string {
  if (tasks >= planned) return "";
  return leftMs === undefined ? "not known yet" : `about ${Math.max(1, Math.round(leftMs / 1_000))} s`;
}

const attemptsOf = ({ again, twice }: ShownStage): string =>
  [...(again > 0 ? [`${again} more`] : []), ...(twice > 0 ? [`${twice} run twice now`] : [])].join(", ");

const notesOf = ({ reused, skipped, why }: ShownStage): string =>
  [
    ...(reused > 0 ? [`${reused} reused`] : []),
    ...(skipped > 0 ? [`${skipped} rows left out`] : []),
    ...why.filter((reason) => reason.startsWith("not deterministic")),
  ].join(", ");
