/** The log of a job, live: only the lines in sight are in the page, so that a hundred thousand of them stay quick. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useEvents } from "#console/live.ts";
import type { LogBatch, LogLine as Line } from "./shapes.ts";

const lineHeight = 20;
/** Lines above and below what is in sight. */
const margin = 20;
/** A browser cannot scroll through more; the whole log is a download. */
const linesMax = 500_000;
const textLengthMax = 2_000;

// Colours and cursor movements of terminals.
const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, "g");

const classes: Readonly<Record<string, string>> = {
  error: "bad",
  warning: "busy",
  notice: "good",
  command: "quiet",
  debug: "quiet",
  skipped: "quiet",
  started: "phase",
  ended: "quiet",
  group: "phase",
};

export function LogView({
  run,
  job,
  step,
}: {
  readonly run: string;
  readonly job: string;
  readonly step: number | undefined;
}) {
  const base = `/v1/runs/${encodeURIComponent(run)}/jobs/${encodeURIComponent(job)}`;
  const lines = useRef<Line[]>([]);
  const [count, setCount] = useState(0);
  const only = step === undefined ? "" : `&step=${step}`;
  useEvents<LogBatch>(`${base}/logs?follow=true${only}`, {
    take(batches) {
      for (const batch of batches)
        for (const line of batch.lines) if (lines.current.length < linesMax) lines.current.push(line);
      setCount(lines.current.length);
    },
    isLast: ({ ended }) => ended === true,
  });
  return (
    <>
      <h3>
        Log <a href={`${base}/log.txt?${only.slice(1)}`}>as text</a>
      </h3>
      <Search lines={lines.current} count={count} name={`${job}${step ?? ""}`} />
      {count >= linesMax && <p class="quiet">{`Only the first ${linesMax} lines are shown here.`}</p>}
    </>
  );
}

function Search({
  lines,
  count,
  name,
}: {
  readonly lines: readonly Line[];
  readonly count: number;
  readonly name: string;
}) {
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState<number>();
  const next = (): void => {
    const needle = wanted.toLowerCase();
    if (needle === "") return setAt(undefined);
    for (let step = 1; step <= lines.length; step += 1) {
      const index = ((at ?? -1) + step) % lines.length;
      if (lines[index]?.text.toLowerCase().includes(needle)) return setAt(index);
    }
    setAt(undefined);
  };
  const id = `search-${name}`;
  return (
    <>
      <form
        class="search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          next();
        }}
      >
        <label for={id}>Search the log</label>{" "}
        <input
          id={id}
          value={wanted}
          onInput={({ currentTarget }) => {
            setWanted(currentTarget.value);
            setAt(undefined);
          }}
        />{" "}
        <button type="submit">Next</button>{" "}
        <span role="status">{at === undefined ? `${count} lines` : `line ${at + 1} of ${count}`}</span>
      </form>
      <Lines lines={lines} count={count} at={at} />
    </>
  );
}

/** Stays at its end while the end is in sight; goes to line `at` when there is one. */
function Lines({
  lines,
  count,
  at,
}: {
  readonly lines: readonly Line[];
  readonly count: number;
  readonly at: number | undefined;
}) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [top, setTop] = useState(0);
  useEffect(() => {
    if (box.current && isAtEnd.current && at === undefined) box.current.scrollTop = box.current.scrollHeight;
  }, [count]);
  useEffect(() => {
    if (box.current && at !== undefined) box.current.scrollTop = Math.max(0, (at - 5) * lineHeight);
  }, [at]);
  const height = box.current?.clientHeight ?? 400;
  const first = Math.max(0, Math.floor(top / lineHeight) - margin);
  const last = Math.min(count, Math.ceil((top + height) / lineHeight) + margin);
  const scrolled = ({ currentTarget }: { currentTarget: HTMLDivElement }): void => {
    isAtEnd.current = currentTarget.scrollTop + currentTarget.clientHeight >= currentTarget.scrollHeight - lineHeight;
    setTop(currentTarget.scrollTop);
  };
  return (
    <div class="lines" ref={box} tabIndex={0} role="log" aria-label="log" onScroll={scrolled}>
      <div class="all" style={{ height: `${count * lineHeight}px` }}>
        {lines.slice(first, last).map((line, index) => (
          <div
            key={first + index}
            class={`line ${classes[line.kind] ?? ""} ${first + index === at ? "found" : ""}`}
            style={{ top: `${(first + index) * lineHeight}px` }}
          >
            <span class="number" aria-hidden="true">
              {first + index + 1}
            </span>
            {line.text.slice(0, textLengthMax).replaceAll(escapes, "")}
          </div>
        ))}
      </div>
    </div>
  );
}
