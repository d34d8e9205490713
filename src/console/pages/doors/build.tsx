/** What the page of a build shows besides: why it waited, missed the cache or ran again, in the node's words. */
import type { z } from "zod";
import type { JobDetails } from "#api/jobs.ts";
import { Trouble } from "#console/parts.tsx";
import { useAsked } from "#console/live.ts";

type WhyAnswer = { readonly lines: readonly string[] };

export function Part({ job }: { readonly job: z.output<typeof JobDetails> }) {
  // Asked again when the phase changes: the answer is another one then.
  const { value, problem } = useAsked<WhyAnswer>(`/v1/why?of=${encodeURIComponent(job.job)}#${job.phase}`);
  return (
    <>
      <h2>Why</h2>
      <Trouble problem={problem} />
      {value && value.lines.length > 0 ? (
        <ul>
          {value.lines.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      ) : (
        <p class="quiet">There is nothing to explain.</p>
      )}
    </>
  );
}
