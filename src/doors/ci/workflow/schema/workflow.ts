/** The whole of a workflow file. */
import { mapOf, mapping, string, within } from "./definition.ts";
import { on, onOfCalled } from "./events.ts";
import { jobs, workflowConcurrency, workflowDefaults } from "./jobs.ts";
import { permissions } from "./permissions.ts";
import { places } from "./places.ts";

const properties = {
  name: string,
  description: string,
  "run-name": within(places.runName, string),
  defaults: workflowDefaults,
  env: within(places.workflowEnv, mapOf(string)),
  permissions,
  concurrency: workflowConcurrency,
  "jobs!": jobs,
};

export const workflow = mapping({ "on!": on, ...properties });
export const calledWorkflow = mapping({ "on!": onOfCalled, ...properties });
