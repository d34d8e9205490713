/** Small parts that several pages use. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

const kinds: Readonly<Record<string, string>> = {
  SUCCEEDED: "good",
  COMPLETED: "good",
  FAILED: "bad",
  CANCELLED: "quiet",
  SKIPPED: "quiet",
  RUNNING: "busy",
  CLAIMED: "busy",
  CANCELLING: "busy",
};

export const Phase = ({ phase }: { readonly phase: string }) => (
  <span class={`phase ${kinds[phase] ?? ""}`}>{phase.toLowerCase()}</span>
);

export function Took({ from, to }: { readonly from: string; readonly to: string | undefined }) {
  const ms = Math.max(0, (to === undefined ? Date.now() : Date.parse(to)) - Date.parse(from));
  const seconds = Math.round(ms / 1_000);
  if (ms < 1_000) return <>{ms} ms</>;
  if (seconds < 60) return <>{seconds} s</>;
  if (seconds < 3_600) return <>{`${Math.floor(seconds / 60)} min ${seconds % 60} s`}</>;
  return <>{`${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`}</>;
}

export const Table = ({
  name,
  head,
  children,
}: {
  /** What it lists, for those who hear the page. */
  readonly name: string;
  readonly head: readonly string[];
  readonly children: ComponentChildren;
}) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={name}>
    <table>
      <thead>
        <tr>
          {head.map((name) => (
            <th scope="col" key={name}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);

export const Trouble = ({ problem }: { readonly problem: string | undefined }) =>
  problem === undefined ? null : <p role="alert">{problem}</p>;

/** The page's heading, which names the browser's tab as well. */
export function Title({ text, children }: { readonly text: string; readonly children?: ComponentChildren }) {
  useEffect(() => void (document.title = `${text} · Millrace`), [text]);
  return (
    <h1>
      {text} {children}
    </h1>
  );
}

export const LiveMark = ({ isLive }: { readonly isLive: boolean }) => (
  <small class="quiet">{isLive ? "live" : "connecting"}</small>
);
