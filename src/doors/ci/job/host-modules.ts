/** Loads what host.ts loads, and does nothing: a node fills the cache of compiled modules with it. */
import "#doors/ci/run/job.ts";
import "#doors/ci/resume/step-keeper.ts";
import "#doors/ci/local/machine.ts";
import "./cancel-file.ts";
import "./checkout.ts";
import "./job-files.ts";
import "./uses-parts.ts";
