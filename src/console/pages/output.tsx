/** What the tasks of a job print, live; the last lines of each. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { z } from "zod";
import type { JobFollowed, JobOutput } from "#api/jobs.ts";
import { useEvents } from "#console/live.ts";

type Followed = z.output<typeof JobFollowed>;
type Piece = z.output<typeof JobOutput>;
type Printed = { readonly task: string; readonly title: string; readonly text: string; readonly isCut: boolean };

/** Where a job's output is followed; the last event says that the job has ended. */
const outputPath = (job: string): string => `/v1/jobs/${encodeURIComponent(job)}/follow?output=true`;

/** What is kept for each task; the page is for a look, and the whole is a download. */
const charactersMax = 200_000;
const tasksMax = 50;

// Colours and cursor movements of terminals.
const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, "g");

export function Output({ job }: { readonly job: string }) {
  const [printed, setPrinted] = useState<readonly Printed[]>([]);
  useEvents<Followed>(outputPath(job), {
    take: (events) => setPrinted((before) => events.filter(isPiece).reduce(added, before)),
    isLast: (event) => event.kind === "state" && event.ended,
  });
  return (
    <section aria-label="output">
      <h2>Output</h2>
      {printed.length === 0 && <p class="quiet">Nothing was printed so far.</p>}
      {printed.map(({ task, title, text, isCut }) => (
        <Log key={task} title={printed.length > 1 ? title : undefined} text={text} isCut={isCut} />
      ))}
    </section>
  );
}

const isPiece = (event: Followed): event is Piece => event.kind === "output";

function added(before: readonly Printed[], piece: Piece): readonly Printed[] {
  const fresh = { task: piece.task, title: `${piece.stage} ${piece.key}`.trim(), text: "", isCut: false };
  const known = before.find(({ task }) => task === piece.task) ?? fresh;
  const whole = known.text + piece.text.replaceAll(escapes, "");
  const isCut = known.isCut || whole.length > charactersMax;
  const next = { ...known, text: whole.slice(-charactersMax), isCut };
  const rest = before.some(({ task }) => task === piece.task)
    ? before.map((one) => (one.task === piece.task ? next : one))
    : [...before, next];
  return rest.slice(-tasksMax);
}

type LogProps = { readonly title: string | undefined; readonly text: string; readonly isCut: boolean };

/** Stays at its end while the end is in sight. */
function Log({ title, text, isCut }: LogProps) {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = ({ currentTarget: at }: { currentTarget: HTMLPreElement }): void => {
    isAtEnd.current = at.scrollTop + at.clientHeight >= at.scrollHeight - 20;
  };
  return (
    <>
      {title !== undefined && <h3>{title}</h3>}
      <pre
        class="log"
        ref={box}
        tabIndex={0}
        aria-label={`output ${title ?? ""}`.trim()}
        role="log"
        onScroll={scrolled}
      >
        {isCut ? `(only the last ${charactersMax} characters)\n` : ""}
        {text}
      </pre>
    </>
  );
}
