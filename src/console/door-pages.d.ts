/** Pages of doors, and their parts of jobs' pages: tools/console.ts makes this module from the list of doors. */
declare module "millrace:door-pages" {
  import type { ComponentType } from "preact";
  import type { z } from "zod";
  import type { JobDetails } from "#api/jobs.ts";

  export const doorPages: readonly {
    readonly path: string;
    readonly title: string;
    readonly Page: ComponentType<{ readonly rest: string }>;
  }[];

  /** By the name that the door's jobs carry. */
  export const jobParts: readonly {
    readonly door: string;
    readonly Part: ComponentType<{ readonly job: z.output<typeof JobDetails> }>;
  }[];
}
