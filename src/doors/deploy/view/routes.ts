/** Serves what people see of one release. */
import { Fault } from "#base/fault.ts";
import { route, type Route } from "#http/route.ts";
import { showRelease, watchRelease, whyRelease } from "./endpoints.ts";
import { lookAt, tellFactsOf, type ReleaseOfTenant, type LookPorts } from "./look.ts";
import { viewRelease, type ShownRelease } from "./release-view.ts";
import { tellMachine, tellRelease, tellWave } from "./tell.ts";

const lookEveryMs = 500;

export const viewRoutes = (ports: LookPorts): readonly Route[] => [
  route(showRelease, async ({ params, tenant }) => ({ body: viewRelease(await lookAt(ports, { ...params, tenant })) })),
  route(watchRelease, async ({ params, tenant, signal }) => {
    const wanted = { ...params, tenant };
    const first = viewRelease(await lookAt(ports, wanted));
    return { body: changes(ports, wanted, first, signal) };
  }),
  route(whyRelease, async ({ params, query, tenant }) => {
    const { of } = query;
    const facts = await tellFactsOf(ports, { ...params, tenant });
    if (of === undefined) return { body: { of: params.job, lines: tellRelease(facts) } };
    const wave = /^(?:wave-)?(\d{1,3})$/.exec(of)?.[1];
    const seen = wave === undefined ? await ports.fleet.machine(tenant, of) : undefined;
    const lines = wave === undefined ? seen && tellMachine(facts, seen) : tellWave(facts, Number(wave));
    if (lines === undefined || lines.length === 0)
      throw new Fault("not-found", "explain release", {
        job: params.job,
        of,
        why: "it has no such wave, and no machine of that name is among its targets",
      });
    return { body: { of, lines } };
  }),
];

async function* changes(ports: LookPorts, wanted: ReleaseOfTenant, first: ShownRelease, signal: AbortSignal) {
  let last = "";
  for (let shown = first; ;) {
    const text = JSON.stringify(shown);
    if (text !== last) yield { data: shown };
    last = text;
    if (shown.endedAt !== null) return;
    await ports.clock.sleep(lookEveryMs, signal);
    shown = viewRelease(await lookAt(ports, wanted));
  }
}
