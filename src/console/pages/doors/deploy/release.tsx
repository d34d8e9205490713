/** One release, live: what it waits for, its waves by region, and its machines by state. */
import { useState } from "preact/hooks";
import { LiveMark, Phase, Table, Title, Took, Trouble } from "#console/parts.tsx";
import { useAsked, useLive } from "#console/live.ts";
import { post } from "#console/server.ts";
import type { ShownRelease as Shown } from "./shapes.ts";

export function ReleasePage({ job }: { readonly job: string }) {
  const path = `/v1/deploy/releases/${encodeURIComponent(job)}`;
  const { value: shown, problem, isLive } = useLive<Shown>(`${path}/watch`, ({ endedAt }) => endedAt !== null);
  const [failed, setFailed] = useState<string>();
  if (!shown) return <Trouble problem={problem} />;
  const act = (to: string, body: object | undefined): void =>
    void post(`${path}/${to}`, body).then(
      () => setFailed(undefined),
      (error: Error) => setFailed(error.message),
    );
  return (
    <>
      <Title text={`${shown.service} ${shown.sha?.slice(0, 12) ?? "rollback"}`}>
        <Phase phase={shown.phase} />
      </Title>
      <p class="quiet">
        {`${shown.job}, `}
        <Took from={shown.createdAt} to={shown.endedAt ?? undefined} />
        {shown.paused === null ? "" : `, paused by ${shown.paused}`}
        {shown.reason === "" ? "" : `: ${shown.reason}`} {shown.endedAt === null && <LiveMark isLive={isLive} />}
      </p>
      <Trouble problem={failed ?? problem} />
      {shown.endedAt === null && <Actions shown={shown} act={act} />}
      <Why path={path} shown={shown} />
      <Waves shown={shown} />
      <Regions shown={shown} />
    </>
  );
}

function Actions({ shown, act }: { readonly shown: Shown; readonly act: (to: string, body?: object) => void }) {
  const waiting = shown.waves.find(({ state, why }) => state === "waiting" && why === "waits for approval");
  return (
    <p class="actions">
      {waiting && (
        <button type="button" onClick={() => act("approve", { wave: waiting.wave })}>
          {`Approve wave ${waiting.wave}`}
        </button>
      )}
      <button type="button" onClick={() => act("pause", { paused: shown.paused === null })}>
        {shown.paused === null ? "Pause" : "Go on"}
      </button>
      <button type="button" onClick={() => act("abort")}>
        Abort and roll back
      </button>
    </p>
  );
}

/** Asked again when a stage changes. */
function Why({ path, shown }: { readonly path: string; readonly shown: Shown }) {
  const changed = shown.stages.map(({ phase, why }) => phase + why.replace(/\d+/g, "")).join() + (shown.paused ?? "");
  const { value } = useAsked<{ readonly lines: readonly string[] }>(`${path}/why#${encodeURIComponent(changed)}`);
  const [, ...lines] = value?.lines ?? [];
  if (lines.length === 0) return null;
  return (
    <ul aria-label="what it waits for">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

const waveKinds = { waiting: "quiet", running: "busy", passed: "good", failed: "bad", skipped: "quiet" } as const;

const Waves = ({ shown }: { readonly shown: Shown }) => (
  <>
    <h2>Stages and waves</h2>
    <Table name="stages and waves" head={["Stage", "State", "Share", "Machines", "Why"]}>
      {shown.stages.map(({ name, phase, why }) => {
        const wave = shown.waves.find((one) => `wave-${one.wave}` === name);
        return (
          <tr key={name}>
            <td>{name}</td>
            <td>
              {wave ? <span class={`phase ${waveKinds[wave.state]}`}>{wave.state}</span> : <Phase phase={phase} />}
            </td>
            <td class="number">{wave ? `${wave.sharePpm / 10_000}%` : ""}</td>
            <td>{wave?.regions.map((one) => `${one.region} ${one.running}/${one.machines}`).join(", ") ?? ""}</td>
            <td>{why}</td>
          </tr>
        );
      })}
    </Table>
  </>
);

const Regions = ({ shown }: { readonly shown: Shown }) => (
  <>
    <h2>Machines by region</h2>
    <Table name="machines by region" head={["Region", "Goal", "Wave", "Machines", "By state"]}>
      {shown.regions.map(({ region, version, halted, isGoal, wave, machines, states }) => (
        <tr key={region}>
          <td>{region}</td>
          <td>{`version ${version}${halted ? ", halted" : ""}${isGoal ? "" : ", not this release's"}`}</td>
          <td class="number">{wave === 0 ? "" : wave}</td>
          <td class="number">{machines}</td>
          <td>
            {Object.entries(states)
              .filter(([, count]) => count > 0)
              .map(([state, count]) => `${count} ${state}`)
              .join(", ")}
          </td>
        </tr>
      ))}
    </Table>
  </>
);
