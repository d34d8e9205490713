/** Workers elsewhere: tokens that register them, who they are, and how they renew what they call with. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const Label = z.string().regex(/^[^=\s*]{1,100}=[^\s*]{0,100}\*?$/, 'write a label such as "gpu=yes", or "os=*"');
const Pool = z.string().regex(/^[^\s\p{Cc}]{1,100}$/u, "write the name of a pool");
const Name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$/, "write letters, digits, dots and dashes only");

const Granted = {
  tenant: z.string().describe("Whose work its workers take; * is everybody's."),
  pools: z.array(z.string()),
  labels: z.array(z.string()),
  isEphemeral: z.boolean().describe("Its workers run one task each, and then they are gone."),
};

const Registration = z.object({
  id: z.string(),
  name: z.string().describe("What names of its workers begin with."),
  ...Granted,
  usesLeft: z.int(),
  until: z.string(),
  by: z.string().describe("Who made it."),
});

export const createWorkerToken = endpoint({
  method: "POST",
  path: "/v1/workers/tokens",
  action: "worker.admin",
  about: "Makes a token that registers workers: for the caller's tenant, or for all tenants. It is shown once.",
  body: jsonBody(
    z.strictObject({
      name: Name.default("worker"),
      everyTenant: z.boolean().default(false).describe("Its workers take work of all tenants."),
      pools: z.array(Pool).max(50).default(["default"]),
      labels: z.array(Label).max(50).default([]).describe("What its workers may offer besides; a star: anything."),
      uses: z.int().min(1).max(1_000).default(1).describe("How many workers it registers."),
      ttlMs: z
        .int()
        .min(1_000)
        .max(30 * 86_400_000)
        .default(3_600_000),
      ephemeral: z.boolean().default(false),
    }),
    64 * 1024,
  ),
  answer: json(Registration.extend({ token: z.string().describe("For millrace worker --token-file.") }), 201),
  // Answers of keyed calls are kept, and this one is a secret.
  idempotency: "handler",
});

export const listWorkerTokens = endpoint({
  method: "GET",
  path: "/v1/workers/tokens",
  action: "worker.read",
  about: "Lists the tokens that register workers: never the tokens themselves.",
  query: z.object(pageFields),
  answer: json(pageOf(Registration)),
});

export const revokeWorkerToken = endpoint({
  method: "DELETE",
  path: "/v1/workers/tokens/{id}",
  action: "worker.admin",
  about: "Revokes a token that registers workers. Those that it registered stay.",
  params: z.object({ id: z.string().max(100) }),
  answer: none,
});

const Worker = z.object({
  id: z.string(),
  name: z.string(),
  ...Granted,
  version: z.string(),
  slots: z.int(),
  registeredAt: z.string(),
  seenAt: z.string().describe("When it last renewed what it calls with; it does so every few minutes."),
  registration: z.string().describe("The id of the token that registered it."),
});

export const listWorkers = endpoint({
  method: "GET",
  path: "/v1/workers",
  action: "worker.read",
  about: "Lists workers that registered, with their last contact.",
  query: z.object(pageFields),
  answer: json(pageOf(Worker)),
});

export const removeWorker = endpoint({
  method: "DELETE",
  path: "/v1/workers/{id}",
  action: "worker.admin",
  about: "Removes a worker: within seconds no node lets it call any more.",
  params: z.object({ id: z.string().max(100) }),
  answer: none,
});

const About = {
  version: z.string().max(50),
  slots: z.int().min(1).max(1_000),
};

const Credential = z.object({
  name: z.string().describe("What it calls itself."),
  token: z.string().describe("What it calls with."),
  renewInMs: z.int(),
  untilMs: z.number(),
  pools: z.array(z.string()),
  labels: z.array(z.string()),
  isEphemeral: z.boolean(),
  drain: z.string().optional().describe("Why it is to finish what runs and leave."),
});

export const registerWorker = endpoint({
  method: "POST",
  path: "/v1/workers/register",
  action: "worker.register",
  about: "Exchanges a token for a worker's own credential. Sent again by the same instance, it is the same worker.",
  body: jsonBody(
    z.strictObject({
      token: z.string().min(1).max(500),
      instance: z
        .string()
        .regex(/^[0-9a-f]{32}$/)
        .describe("Chosen at random by the worker, once."),
      ...About,
    }),
    4_096,
  ),
  answer: json(Credential),
  idempotency: "handler",
});

export const renewWorker = endpoint({
  method: "POST",
  path: "/v1/workers/renew",
  action: "worker.self",
  about: "Gives a worker its next credential. The caller is that worker.",
  body: jsonBody(z.strictObject(About), 4_096),
  answer: json(Credential),
  idempotency: "handler",
});

export const leaveWorker = endpoint({
  method: "POST",
  path: "/v1/workers/leave",
  action: "worker.self",
  about: "Removes the worker that calls.",
  answer: none,
});

export const workerEndpoints = [
  createWorkerToken,
  listWorkerTokens,
  revokeWorkerToken,
  listWorkers,
  removeWorker,
  registerWorker,
  renewWorker,
  leaveWorker,
] as const;
