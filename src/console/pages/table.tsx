/** The console's pages: those that are about all doors, and between them those of doors, which `Door.pages` lists. */
import type { ComponentType } from "preact";
import { doorPages } from "millrace:door-pages";
import { ClusterPage } from "./cluster.tsx";
import { JobsPage } from "./jobs.tsx";

export type ConsolePage = {
  /** The page is shown for every address that begins with it. */
  readonly path: string;
  /** In the menu. */
  readonly title: string;
  /** `rest` is the address behind the path. */
  readonly View: ComponentType<{ readonly rest: string }>;
};

export const pages: readonly ConsolePage[] = [
  { path: "/console/jobs", title: "Jobs", View: JobsPage },
  ...doorPages.map(({ path, title, Page }) => ({ path: `/console/${path}`, title, View: Page })),
  { path: "/console/cluster", title: "Cluster", View: ClusterPage },
];
