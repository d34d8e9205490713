/** What a run waits for people to approve, with the buttons that do. */
import { useState } from "preact/hooks";
import { useAsked } from "#console/live.ts";
import { Trouble } from "#console/parts.tsx";
import { post } from "#console/server.ts";
import type { ApprovalsAnswer } from "./shapes.ts";

/** Asked again when the status of a job changes, and after a review. */
export function Approvals({ path, changed }: { readonly path: string; readonly changed: string }) {
  const [reviews, setReviews] = useState(0);
  const [failed, setFailed] = useState<string>();
  const { value } = useAsked<ApprovalsAnswer>(`${path}/approvals#${changed} ${reviews}`);
  const say = (state: "approved" | "rejected", environment: string): void =>
    void post(`${path}/approvals`, { state, environments: [environment] }).then(
      () => {
        setFailed(undefined);
        setReviews(reviews + 1);
      },
      (error: Error) => setFailed(error.message),
    );
  return (
    <>
      <Trouble problem={failed} />
      {value?.waiting.map(({ environment, jobs, approvals, approvedBy, reviewers, waitsUntil }) => {
        const what = environment === "" ? "this run" : environment;
        const who = reviewers.length === 0 ? "" : ` of ${reviewers.join(", ")}`;
        return (
          <p key={environment} class="actions">
            {`${jobs.join(", ")}: ${what} has ${approvedBy.length} of ${approvals} approvals${who}`}
            {waitsUntil === undefined ? " " : `, not before ${waitsUntil} `}
            <button type="button" onClick={() => say("approved", environment)}>
              {`Approve ${what}`}
            </button>
            <button type="button" onClick={() => say("rejected", environment)}>
              {`Reject ${what}`}
            </button>
          </p>
        );
      })}
    </>
  );
}
