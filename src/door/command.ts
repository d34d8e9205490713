/**
 * A command is a value: its name, its words and flags, and what it does. Help, suggestions and docs/reference/cli.md
 * all come from the table of these values. What a command needs beyond its own words is imported when it runs, so
 * that every command starts quickly.
 */
export type Flag = {
  /** "strings" may be given several times. */
  readonly type: "string" | "strings" | "boolean";
  readonly about: string;
  /** What stands for the value in help, such as DURATION. */
  readonly value?: string;
  /** One letter that means the same: `-f` for `--follow`. */
  readonly short?: string;
};
export type Flags = Readonly<Record<string, Flag>>;

type Values<F extends Flags> = {
  readonly [K in keyof F]?: { string: string; strings: readonly string[]; boolean: boolean }[F[K]["type"]];
};

/** What a command may do to the world. */
export type World = {
  readonly env: NodeJS.ProcessEnv;
  /** One line of what was asked for. */
  readonly out: (line: string) => void;
  /** One line beside it: notes, progress, errors. */
  readonly note: (line: string) => void;
  /** Draws over its last line on a terminal; says nothing elsewhere. */
  readonly progress: (line: string) => void;
  /** Whether a person sees notes and progress. */
  readonly isTerminal: boolean;
  /** Whether a person sees what was asked for; otherwise a program reads it. */
  readonly isOutTerminal?: boolean;
  /** The HTTP API of the node that the flags and the environment point to. */
  readonly http: (values: ServerFlagValues) => Promise<NodeHttp>;
};

export type NodeHttp = {
  /** Any answer, whatever its status. */
  reach(path: string, init?: RequestInit): Promise<Response>;
  /** A successful answer, or a Fault that says what the node said; its message begins with `doing`. */
  ask(path: string, doing: string, init?: RequestInit): Promise<Response>;
};

export type Invocation<F extends Flags> = {
  readonly positionals: readonly string[];
  /** What follows `--`. */
  readonly rest: readonly string[] | undefined;
  readonly values: Values<F>;
};

/** 0 done, 1 refused or failed, 2 wrong command line. */
export type ExitCode = 0 | 1 | 2;

export type Command<F extends Flags = Flags> = {
  readonly name: string;
  readonly about: string;
  /** Its words, as help shows them: `<job>`, `[file]`, `-- command ...`. */
  readonly words: string;
  readonly positionalsMax: number;
  readonly takesRest: boolean;
  readonly flags: F;
  readonly examples: readonly string[];
  readonly run: (invocation: Invocation<F>, world: World) => Promise<ExitCode>;
};

export const command = <const F extends Flags>(value: Command<F>): Command => value as unknown as Command;

export const jsonFlag = { json: { type: "boolean", about: "one JSON object per line" } } as const satisfies Flags;

/** For commands that ask a node. */
export const serverFlags = {
  ...jsonFlag,
  server: {
    type: "string",
    value: "URL",
    about: "the node to ask, such as http://host:8980 or unix:/path ($MILLRACE_SERVER)",
  },
  ca: {
    type: "string",
    value: "FILE",
    about: "who signs certificates there, as PEM; left out: whom this machine trusts ($MILLRACE_CA)",
  },
  cert: {
    type: "string",
    value: "FILE",
    about: "a client certificate to show there, as PEM, for a node that asks for one ($MILLRACE_CERT)",
  },
  "cert-key": { type: "string", value: "FILE", about: "the private key of --cert, as PEM ($MILLRACE_CERT_KEY)" },
  token: {
    type: "string",
    value: "TOKEN",
    about: "who asks; better said by $MILLRACE_TOKEN, which others cannot see; left out: the data folder's own",
  },
  data: { type: "string", value: "FOLDER", about: "the data folder of the node to ask ($MILLRACE_DATA, ~/.millrace)" },
} as const satisfies Flags;

export type ServerFlagValues = {
  readonly server?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly "cert-key"?: string;
  readonly token?: string;
  readonly data?: string;
};
