/** What a job said besides its log: annotations and summaries. */
import { useAsked } from "#console/live.ts";
import type { JobDetails } from "./shapes.ts";

const colours = { error: "bad", warning: "busy", notice: "quiet" } as const;

export function JobDetailsPart({ run, job }: { readonly run: string; readonly job: string }) {
  const { value } = useAsked<JobDetails>(`/v1/runs/${encodeURIComponent(run)}/jobs/${encodeURIComponent(job)}/details`);
  if (!value) return null;
  return (
    <>
      {value.annotations.length > 0 && (
        <>
          <h3>Annotations</h3>
          <ul aria-label="annotations">
            {value.annotations.map((one, index) => (
              <li key={index}>
                <span class={`phase ${colours[one.level]}`}>{one.level}</span>{" "}
                {one.file !== undefined && <code>{`${one.file}${one.line === undefined ? "" : `:${one.line}`}`}</code>}{" "}
                {one.title !== undefined && <strong>{one.title} </strong>}
                {one.message}
              </li>
            ))}
          </ul>
        </>
      )}
      {value.summaries.length > 0 && (
        <>
          <h3>Summary</h3>
          {value.summaries.map(({ step, text }, index) => (
            <pre key={index} aria-label={`summary of step ${step}`} tabIndex={0}>
              {text}
            </pre>
          ))}
        </>
      )}
    </>
  );
}
