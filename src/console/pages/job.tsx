/** One job: its stages, its tasks, what they wait for, and what may be done to it. */
import { useState } from "preact/hooks";
import type { z } from "zod";
import type { JobDetails } from "#api/jobs.ts";
import { jobParts } from "millrace:door-pages";
import { useLive } from "#console/live.ts";
import { Phase, Table, Title, Took, Trouble } from "#console/parts.tsx";
import { post } from "#console/server.ts";
import { Output } from "./output.tsx";

type Job = z.output<typeof JobDetails>;

const hasEnded = ({ endedAt }: Job): boolean => endedAt !== undefined;

export function JobPage({ job: id }: { readonly job: string }) {
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const { value: job, problem, isLive } = useLive<Job>(`${path}/watch`, hasEnded);
  const [failed, setFailed] = useState<string>();
  const act = (to: string, body: object): void =>
    void post(`${path}/${to}`, body).then(
      () => setFailed(undefined),
      (error: Error) => setFailed(error.message),
    );
  if (!job) return <Trouble problem={problem} />;
  return (
    <>
      <Title text={`${job.job} ${job.name}`}>
        <Phase phase={job.phase} />
      </Title>
      <p class="quiet">
        {job.door}, tenant {job.tenant}, <Took from={job.submittedAt} to={job.endedAt} />
        {job.reason === "" ? "" : `: ${job.reason}`}
        {job.endedAt === undefined && (isLive ? ", live" : ", connecting")}
      </p>
      <Trouble problem={failed} />
      {job.endedAt === undefined && (
        <button type="button" onClick={() => act("cancel", { reason: "cancelled in the console" })}>
          Cancel
        </button>
      )}
      <h2>Stages</h2>
      <Stages job={job} signal={(stage, name) => act("signal", { stage, name })} />
      <h2>Tasks</h2>
      <Tasks job={job} />
      <Output job={id} />
      {jobParts
        .filter(({ door }) => door === job.door)
        .map(({ door, Part }) => (
          <Part key={door} job={job} />
        ))}
    </>
  );
}

const Stages = ({ job, signal }: { readonly job: Job; readonly signal: (stage: string, name: string) => void }) => (
  <Table name="stages" head={["Stage", "Phase", "Needs", "Done", "Failed", "Running", "Waits for"]}>
    {job.stages.map((stage) => (
      <tr key={stage.name}>
        <td>{stage.name}</td>
        <td>
          <Phase phase={stage.phase} />
          {stage.reason === "" ? "" : ` ${stage.reason}`}
        </td>
        <td>{stage.needs.join(", ")}</td>
        <td class="number">{`${stage.done}/${stage.tasks}`}</td>
        <td class="number">{stage.failed}</td>
        <td class="number">{stage.running}</td>
        <td>
          {stage.waitsForSignals.map((name) => (
            <button type="button" key={name} onClick={() => signal(stage.name, name)}>
              {name}
            </button>
          ))}
        </td>
      </tr>
    ))}
  </Table>
);

const Tasks = ({ job }: { readonly job: Job }) => (
  <Table name="tasks" head={["Task", "Stage", "Phase", "Attempts", "Runs on", "Failure"]}>
    {job.tasks.map((task) => (
      <tr key={task.task}>
        <td>
          {task.task} {task.key}
        </td>
        <td>{task.stage}</td>
        <td>
          <Phase phase={task.phase} />
        </td>
        <td class="number">{task.attempts}</td>
        <td>{task.executors.join(", ")}</td>
        <td>{task.failure && <pre>{`${task.failure.reason}: ${task.failure.message}`}</pre>}</td>
      </tr>
    ))}
  </Table>
);
