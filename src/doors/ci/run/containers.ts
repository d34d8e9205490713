/** What a job asks of containers, and what it gets: the port. `doors/ci/containers` runs them with podman or docker. */
import { ActionFault } from "./manifest.ts";
import type { ProcessEnd, ProcessRequest } from "./process.ts";

export type ContainerWanted = {
  readonly image: string;
  readonly env: ReadonlyMap<string, string>;
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  /** More words for the engine, as one line. */
  readonly options: string;
  readonly credentials?: { readonly username: string; readonly password: string };
  readonly entrypoint?: string;
  readonly command?: string;
};

export type StartedContainer = {
  readonly id: string;
  /** By the port inside: the one at 127.0.0.1. */
  readonly ports: ReadonlyMap<string, string>;
};

/** The inside of the job's container: what runs there is a process of a program that waits in it. */
export type Inside = {
  /** The image's own PATH. */
  readonly path: string;
  /** Undefined where no Node can run in the image. */
  readonly node: string | undefined;
  readonly run: (request: ProcessRequest) => Promise<ProcessEnd>;
};

/** One container that runs to its end: an action. */
export type ActionContainer = {
  /** An image, or a folder with the Dockerfile that makes it. */
  readonly image: string | { readonly folder: string; readonly file: string };
  readonly entrypoint?: string | undefined;
  readonly args: readonly string[];
};

export type Tell = (level: "error" | "warning" | "plain", text: string) => void;

export type JobContainers = {
  /** What they are attached to, so that they find each other by name. */
  readonly network: string;
  /** The home folder of those who run in them. */
  readonly home: string;
  /** Resolves when all are healthy; throws when one is not, after its log was told. */
  services(
    wanted: ReadonlyMap<string, ContainerWanted>,
    tell: Tell,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, StartedContainer>>;
  job(
    wanted: ContainerWanted,
    tell: Tell,
    signal: AbortSignal,
  ): Promise<StartedContainer & { readonly inside: Inside }>;
  act(
    action: ActionContainer,
    request: Omit<ProcessRequest, "program" | "args" | "folder">,
    run: (request: ProcessRequest) => Promise<ProcessEnd>,
  ): Promise<ProcessEnd>;
  /** Removes all that was started for this job. */
  close(): Promise<void>;
};

/** What is wrong with a container, in words for the log. */
export class ContainerFault extends ActionFault {}

export const noContainers = (what: string): ContainerFault =>
  new ContainerFault(`${what} needs podman or docker, and this runner has neither: let runs-on name one that has`);
