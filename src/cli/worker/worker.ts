import { command, jsonFlag } from "#door/command.ts";
import { Fault } from "#base/fault.ts";

export const worker = command({
  name: "worker",
  about: "Run work of a cluster on a machine that is no node of it and only reaches out.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...jsonFlag,
    server: {
      type: "string",
      value: "URL",
      about: "a node of the cluster, such as https://host:8980 ($MILLRACE_SERVER)",
    },
    token: {
      type: "string",
      value: "TOKEN",
      about: "what millrace worker token printed; better said by $MILLRACE_WORKER_TOKEN, which others cannot see",
    },
    "token-file": {
      type: "string",
      value: "FILE",
      about: "a file with it, or with a configured token, on its only line",
    },
    ca: { type: "string", value: "FILE", about: "who signs certificates there, as PEM ($MILLRACE_CA)" },
    cert: { type: "string", value: "FILE", about: "a client certificate to show there, as PEM ($MILLRACE_CERT)" },
    "cert-key": { type: "string", value: "FILE", about: "the private key of --cert, as PEM ($MILLRACE_CERT_KEY)" },
    name: { type: "string", value: "NAME", about: "with a configured token; left out: its name and this machine's" },
    labels: {
      type: "strings",
      value: "NAME=VALUE",
      about: "what this machine offers, such as gpu=yes; may be repeated",
    },
    slots: { type: "string", value: "N", about: "how many tasks it runs at once; left out: 1" },
    data: {
      type: "string",
      value: "FOLDER",
      about: "where tasks run; left out: worker in $MILLRACE_DATA or ~/.millrace",
    },
    ephemeral: { type: "boolean", about: "run one task, and leave" },
    "stop-within": {
      type: "string",
      value: "DURATION",
      about: "what running tasks are given at SIGTERM; left out: 20s",
    },
    spot: {
      type: "string",
      value: "CLOUD",
      about: "aws or gcp: leave, as at SIGTERM, when its metadata service says that this machine goes ($MILLRACE_SPOT)",
    },
    "spot-url": {
      type: "string",
      value: "URL",
      about: "where that service is, such as http://127.0.0.1:1338 ($MILLRACE_SPOT_URL)",
    },
  },
  examples: [
    "millrace worker --server https://build.example.com:8980 --token-file worker.token",
    "millrace worker --server http://10.0.0.7:8980 --token-file worker.token --labels gpu=yes --slots 4",
  ],
  async run({ values }, world) {
    const { runElsewhere } = await import("./life.ts");
    return await runElsewhere(values, world);
  },
});

export type WorkerValues = {
  readonly json?: boolean;
  readonly server?: string;
  readonly token?: string;
  readonly "token-file"?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly "cert-key"?: string;
  readonly name?: string;
  readonly labels?: readonly string[];
  readonly slots?: string;
  readonly data?: string;
  readonly ephemeral?: boolean;
  readonly "stop-within"?: string;
  readonly spot?: string;
  readonly "spot-url"?: string;
};

/** Words of the command line that are wrong. */
export const wrong = (why: string, facts: Record<string, string> = {}): Fault =>
  new Fault("invalid", "start a worker", { ...facts, why });
