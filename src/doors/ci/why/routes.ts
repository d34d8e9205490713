/** Serves `why` of runs, jobs and steps, and the details of jobs. */
import { route, type Route } from "#http/route.ts";
import { askDetails, askJob, askRun, askStep, type WhyPorts } from "./ask.ts";
import { showDetails, whyRun, whyRunJob, whyStep } from "./endpoints.ts";

export const whyRoutes = (ports: WhyPorts): readonly Route[] => [
  route(whyRun, async ({ params, tenant }) => ({ body: await askRun(ports, { ...params, tenant }) })),
  route(whyRunJob, async ({ params, tenant }) => ({ body: await askJob(ports, { ...params, tenant }) })),
  route(whyStep, async ({ params, tenant }) => ({ body: await askStep(ports, { ...params, tenant }) })),
  route(showDetails, async ({ params, tenant }) => {
    const { annotations, summaries, actions } = await askDetails(ports, { ...params, tenant });
    return { body: { annotations, summaries, ...(actions && { actions }) } };
  }),
];
