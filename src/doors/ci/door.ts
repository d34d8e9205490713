/** The CI door: workflows in the words of GitHub Actions, on this machine by themselves or on nodes. */
import { defineDoor } from "#door/door.ts";
import { ciCommands } from "./commands/commands.ts";
import { CiConfig } from "./config.ts";
import { serviceEndpoints } from "./services/endpoints.ts";
import { intakeEndpoints } from "./intake/endpoints.ts";
import { ciEndpoints } from "./endpoints.ts";
import { asksForResult } from "./outgoing/cell-end.ts";
import { statusFormats } from "./outgoing/statuses.ts";
import { ciWebhook } from "./outgoing/webhook.ts";
import { cpuMsIn } from "./result.ts";
import { ciKinds } from "./kinds.ts";
import { secretEndpoints } from "./secrets/endpoints.ts";
import { environmentEndpoints } from "./environments/endpoints.ts";
import { exportEndpoints } from "./export/endpoints.ts";
import { testEndpoints } from "./tests/endpoints.ts";
import { listEndpoints } from "./lists/endpoints.ts";
import { whyEndpoints } from "./why/endpoints.ts";

export const ciDoor = defineDoor({
  name: "ci",
  about: "Workflows in the words of GitHub Actions.",
  section: { about: "runs of workflows", schema: CiConfig },
  kinds: [ciKinds],
  keepsResults: true,
  commands: ciCommands,
  endpoints: [
    ...ciEndpoints,
    ...intakeEndpoints,
    ...listEndpoints,
    ...whyEndpoints,
    ...serviceEndpoints,
    ...secretEndpoints,
    ...environmentEndpoints,
    ...testEndpoints,
    ...exportEndpoints,
  ],
  whyPath: (run, [job, step]) =>
    [
      "/v1/runs",
      run,
      ...(job === undefined ? [] : ["jobs", job]),
      ...(step === undefined ? [] : ["steps", step]),
      "why",
    ]
      .map((part, index) => (index === 0 ? part : encodeURIComponent(part)))
      .join("/"),
  cpuMs: cpuMsIn,
  webhooks: { ci: { render: ciWebhook, asksFor: asksForResult }, ...statusFormats },
  pages: [{ path: "runs", title: "Runs", module: "pages/doors/ci/runs.tsx" }],
  open: async (ports, settings) => (await import("./serve.ts")).openCi(ports, settings),
  elsewhere: async (place) => await (await import("./job/elsewhere.ts")).ciElsewhere(place),
});
