/**
 * The console's pages. A door adds its own here: an entry of the menu (`pages`), and what the page of one of its jobs
 * shows besides (`doorParts`, chosen by the job's door). Pages know the public API alone, by its types.
 */
import type { ComponentType } from "preact";
import type { z } from "zod";
import type { JobDetails } from "#api/jobs.ts";
import { ClusterPage } from "./cluster.tsx";
import { BuildPart } from "./doors/build.tsx";
import { JobsPage } from "./jobs.tsx";

export type Job = z.output<typeof JobDetails>;

export type ConsolePage = {
  /** The door it belongs to; left out: it is about all of them. */
  readonly door?: string;
  readonly path: string;
  /** In the menu. */
  readonly title: string;
  readonly View: ComponentType;
};

export const pages: readonly ConsolePage[] = [
  { path: "/console/jobs", title: "Jobs", View: JobsPage },
  { path: "/console/cluster", title: "Cluster", View: ClusterPage },
];

export type DoorPart = { readonly door: string; readonly Part: ComponentType<{ readonly job: Job }> };

/** By the name that the door's jobs carry. */
export const doorParts: readonly DoorPart[] = [
  { door: "build", Part: BuildPart },
  { door: "builds", Part: BuildPart },
];
