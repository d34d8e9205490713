/** How the API reaches a node. Who composes it says how: the installed module, or the command that runs a job file. */

/** Which node, and who asks; what is left out is taken from the environment, then from the data folder. */
export type ServerOptions = {
  /** Such as http://host:8980 or unix:/path; $MILLRACE_SERVER. */
  readonly server?: string;
  /** $MILLRACE_TOKEN. */
  readonly token?: string;
  /** The data folder of a node on this machine: $MILLRACE_DATA, ~/.millrace. */
  readonly data?: string;
  /** Who signs certificates there, as a PEM file: $MILLRACE_CA. */
  readonly ca?: string;
};

/** A successful answer, or an error whose message begins with `doing`. */
export type Ask = (path: string, doing: string, init?: RequestInit) => Promise<Response>;

let open: ((options: ServerOptions) => Promise<Ask>) | undefined;

export function connectWith(how: (options: ServerOptions) => Promise<Ask>): void {
  open = how;
}

export async function connect(options: ServerOptions): Promise<Ask> {
  if (!open) throw new Error('no node can be reached: import from "millrace/batch"');
  return await open(options);
}
