/** One run: the graph of its jobs, the steps and the log of one of them, annotations, summaries, cancel and re-run. */
import { useState } from "preact/hooks";
import { go } from "#console/address.ts";
import { useAsked } from "#console/live.ts";
import { Title, Took, Trouble } from "#console/parts.tsx";
import { post } from "#console/server.ts";
import { Approvals } from "./approvals.tsx";
import { Conclusion } from "./conclusion.tsx";
import { JobDetailsPart } from "./details.tsx";
import { JobGraph } from "./graph.tsx";
import { LogView } from "./log.tsx";
import { keyOf, type RunDetails, type ShownJob, type WhyAnswer } from "./shapes.ts";
import { useChanging } from "#console/use-changing.ts";

type Changed = { readonly endedAt?: string };

export function RunPage({ run }: { readonly run: string }) {
  const path = `/v1/runs/${encodeURIComponent(run)}`;
  const stream = `/v1/jobs/${encodeURIComponent(run)}/watch`;
  const { value: shown, problem } = useChanging<RunDetails, Changed>(
    path,
    stream,
    ({ endedAt }) => endedAt !== undefined,
  );
  const [failed, setFailed] = useState<string>();
  const [chosen, setChosen] = useState<string>();
  if (!shown) return <Trouble problem={problem} />;
  const act = <T,>(to: string, body: object | undefined, done: (answer: T) => void): void =>
    void post<T>(`${path}/${to}`, body).then(
      (answer) => {
        setFailed(undefined);
        done(answer);
      },
      (error: Error) => setFailed(error.message),
    );
  const again = (body: object): void =>
    act<{ readonly run: string }>("rerun", body, (answer) => go(`/console/runs/${answer.run}`));
  const job = shown.jobs.find((one) => keyOf(one) === chosen) ?? firstOf(shown.jobs);
  return (
    <>
      <Title text={`${shown.run} ${shown.title}`}>
        <Conclusion status={shown.status} conclusion={shown.conclusion} />
      </Title>
      <About shown={shown} />
      <Trouble problem={failed ?? problem} />
      {shown.decisions?.map((key) => (
        <p key={key}>
          It waits for a person to say whether <code>{key}</code> was done: <code>millrace effect decide</code>
        </p>
      ))}
      <p class="actions">
        {shown.status !== "completed" && (
          <button type="button" onClick={() => act("cancel", undefined, () => {})}>
            Cancel
          </button>
        )}
        {shown.status === "completed" && (
          <>
            <button type="button" onClick={() => again({})}>
              Re-run all jobs
            </button>
            {shown.conclusion !== "success" && (
              <button type="button" onClick={() => again({ failed: true })}>
                Re-run failed jobs
              </button>
            )}
            {job && (
              <button type="button" onClick={() => again({ job: job.id })}>
                {`Re-run ${job.id}`}
              </button>
            )}
          </>
        )}
      </p>
      {shown.jobs.some(({ status }) => status === "waiting") && (
        <Approvals path={path} changed={shown.jobs.map(({ status }) => status).join()} />
      )}
      <h2>Jobs</h2>
      <JobGraph jobs={shown.jobs} chosen={job && keyOf(job)} choose={setChosen} />
      {shown.status !== "completed" && <Why run={run} changed={shown.jobs.map(({ status }) => status).join()} />}
      {job && <JobPart key={keyOf(job)} run={run} job={job} />}
    </>
  );
}

/** The one that is worth a look: what failed, what runs, or the first. */
const firstOf = (jobs: readonly ShownJob[]): ShownJob | undefined =>
  jobs.find(({ conclusion }) => conclusion === "failure") ??
  jobs.find(({ status }) => status === "in_progress") ??
  jobs.find(({ job }) => job !== undefined) ??
  jobs[0];

const About = ({ shown }: { readonly shown: RunDetails }) => (
  <p class="quiet">
    {`${shown.repository} ${shown.ref.replace(/^refs\/(heads|tags)\//, "")} ${shown.sha.slice(0, 8)}, `}
    {`${shown.event} by ${shown.actor}, `}
    <Took from={shown.createdAt} to={shown.endedAt} />
    {shown.attempt === undefined ? "" : `, attempt ${shown.attempt}`}
    {shown.again === undefined ? "" : ` of ${shown.again}`}
    {shown.reason === "" ? "" : `: ${shown.reason}`}
  </p>
);

/** What queued jobs wait for. Asked again when the status of a job changes. */
function Why({ run, changed }: { readonly run: string; readonly changed: string }) {
  const { value } = useAsked<WhyAnswer>(`/v1/runs/${encodeURIComponent(run)}/why#${changed}`);
  const queued = value?.jobs.filter(({ status }) => status === "queued") ?? [];
  if (queued.length === 0) return null;
  return (
    <ul aria-label="what jobs wait for">
      {queued.slice(0, 20).map(({ name, lines }) => (
        <li key={name}>{`${name}: ${lines[0] ?? ""}`}</li>
      ))}
    </ul>
  );
}

function JobPart({ run, job }: { readonly run: string; readonly job: ShownJob }) {
  const [step, setStep] = useState<number>();
  return (
    <section aria-label={`job ${job.name}`}>
      <h2>
        {job.name} <Conclusion status={job.status} conclusion={job.conclusion} />
      </h2>
      <p class="quiet">
        {job.runner === undefined ? "" : `on ${job.runner} `}
        {job.attempts > 1 ? `attempt ${job.attempts} ` : ""}
        {job.failure ?? ""}
        {job.reason}
      </p>
      {job.steps.length > 0 && (
        <ol class="steps" aria-label="steps" start={0}>
          {job.steps.map((one) => (
            <li key={one.number}>
              <button
                type="button"
                class="link"
                aria-pressed={step === one.number}
                onClick={() => setStep(step === one.number ? undefined : one.number)}
              >
                {one.name}
              </button>{" "}
              <Conclusion status={one.status} conclusion={one.conclusion} />
              {one.tookMs === undefined ? "" : ` ${(one.tookMs / 1_000).toFixed(1)} s`}
            </li>
          ))}
        </ol>
      )}
      {job.job !== undefined && job.status === "completed" && <JobDetailsPart run={run} job={job.job} />}
      {job.job !== undefined && <LogView key={step} run={run} job={job.job} step={step} />}
    </section>
  );
}
