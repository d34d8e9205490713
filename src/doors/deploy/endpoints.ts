/** The door's calls under /v1/deploy: what may be asked, and the shape of the answers. */
import { z } from "zod";
import { endpoint, events, json, jsonBody, none } from "#http/endpoint.ts";
import { Pin } from "./goal/pins.ts";
import { Region, ServiceFile, ServiceName } from "./service/service-file.ts";
import { SignedDocument } from "./signing/signing.ts";
import { Trusted } from "./signing/trust.ts";
import { shownStates } from "./view/machine-state.ts";

const MachineName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/)
  .describe("The machine's name.");
const Label = z.string().max(201);
const DigestText = z.string().max(200);

const machineQuery = z.object({
  region: Region,
  labels: z.string().max(10_000).default("").describe("Labels as name=value, separated by commas."),
});

const machineRegion = Region.optional().describe("The machine's: what leaves the node's region has a limit.");

const Rate = z.number().min(0).nullable().describe("Bytes a second; null: no limit.");
const Caps = z.object({ host: Rate, rack: Rate, wan: Rate });
const links = {
  rackLink: Rate.default(null).describe("What leaves a rack, by all its machines together, in bytes a second."),
  wanLink: Rate.default(null).describe("What a region's nodes bring to it, and send to machines of other regions."),
};

export const listKeys = endpoint({
  method: "GET",
  path: "/v1/deploy/keys",
  action: "deploy.attach",
  about: "Lists the public keys that count, those that are revoked, and the one that signs goals and manifests now.",
  answer: json(Trusted.extend({ signs: z.string().describe("The id of the key that signs.") })),
});

export const rotateKey = endpoint({
  method: "POST",
  path: "/v1/deploy/keys",
  action: "deploy.keys",
  about: "Has a new key sign goals and manifests from now on. The old ones still count.",
  answer: json(z.object({ key: z.string().describe("The id of the new key.") })),
});

export const revokeKey = endpoint({
  method: "DELETE",
  path: "/v1/deploy/keys/{key}",
  action: "deploy.keys",
  about: "Revokes a key: what it signed is not activated any more, without a node either. What runs goes on.",
  params: z.object({ key: z.string().regex(/^[0-9a-f]{32}$/) }),
  answer: none,
});

export const attachMachine = endpoint({
  method: "GET",
  path: "/v1/deploy/machines/{machine}/goals",
  action: "deploy.attach",
  about: "Sends a machine its goals: the newest of each service, and every newer one.",
  params: z.object({ machine: MachineName }),
  query: machineQuery.extend({
    trust: z.coerce
      .number()
      .int()
      .min(0)
      .optional()
      .describe("The version of the machine's list of keys: newer lists come before the goals that they are for."),
  }),
  answer: events(SignedDocument),
});

export const reportMachine = endpoint({
  method: "POST",
  path: "/v1/deploy/machines/{machine}/reports",
  action: "deploy.attach",
  about: "Takes what a machine says about one of its services.",
  params: z.object({ machine: MachineName }),
  query: machineQuery,
  body: jsonBody(
    z.object({
      service: ServiceName,
      goalVersion: z.int().min(0),
      state: z.enum(["idle", "staging", "staged", "activating", "healthy", "failed", "reverted"]),
      running: DigestText.nullable(),
      why: z.string().max(4_000),
    }),
    64 * 1024,
  ),
  answer: json(z.object({ caps: Caps.describe("What the machine may send to others from now on.") })),
});

export const showCaps = endpoint({
  method: "GET",
  path: "/v1/deploy/caps",
  action: "deploy.read",
  about: "Shows how much each machine may send to others, and how much goes through the links that they share.",
  answer: json(Caps.extend(links)),
});

export const setCaps = endpoint({
  method: "POST",
  path: "/v1/deploy/caps",
  action: "deploy.release",
  about: "Limits how much each machine may send to others, and how much all send through the link of a rack or region.",
  body: jsonBody(z.strictObject({ host: Rate, rack: Rate, wan: Rate, ...links }), 16 * 1024),
  answer: none,
});

export const forgetMachine = endpoint({
  method: "DELETE",
  path: "/v1/deploy/machines/{machine}",
  action: "deploy.release",
  about: "Forgets the key of a machine, so that one that was set up anew can have its name.",
  params: z.object({ machine: MachineName }),
  answer: none,
});

export const readBlob = endpoint({
  method: "GET",
  path: "/v1/deploy/blobs/{digest+}",
  action: "deploy.attach",
  about: "Reads a manifest or a segment.",
  params: z.object({ digest: DigestText }),
  query: z.object({ region: machineRegion }),
  answer: { kind: "bytes", contentType: "application/octet-stream" },
});

const SwarmQuestionBody = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("join"),
    content: DigestText,
    units: z.int().min(1).max(200_000),
    address: z.string().max(300),
    rack: z.string().max(200),
  }),
  z.strictObject({
    kind: z.literal("ask"),
    content: DigestText,
    stripe: z.int().min(0).max(1_000),
    why: z.enum(["gone", "bad", "slow", "help", "none"]),
    about: z.string().max(200).optional(),
  }),
  z.strictObject({ kind: z.literal("complete"), content: DigestText }),
  z.strictObject({ kind: z.literal("meet"), address: z.string().max(300), rack: z.string().max(200) }),
]);

export const askSwarm = endpoint({
  method: "POST",
  path: "/v1/deploy/machines/{machine}/swarm",
  action: "deploy.attach",
  about: "Names the machines that a machine fetches a release from.",
  params: z.object({ machine: MachineName }),
  body: jsonBody(z.strictObject({ question: SwarmQuestionBody }), 16 * 1024),
  answer: json(
    z.object({
      secret: z.object({ epoch: z.int(), secret: z.string() }),
      isBanned: z.boolean(),
      origin: z.string().describe("How the node itself is named among the parents."),
      parents: z.array(
        z
          .object({
            peer: z.string(),
            address: z.string(),
            identity: z.string(),
            key: z.string(),
            distance: z.enum(["rack", "region"]),
          })
          .nullable(),
      ),
      caps: Caps,
    }),
  ),
});

export const readUnits = endpoint({
  method: "GET",
  path: "/v1/deploy/units/{content+}",
  action: "deploy.attach",
  about: "Sends units of one stripe of a release, each with its number and its length before it.",
  params: z.object({ content: DigestText }),
  query: z.object({
    stripe: z.coerce.number().int().min(0).max(1_000),
    from: z.coerce.number().int().min(0),
    to: z.coerce.number().int().min(0),
    priority: z.coerce.number().int().min(0).max(2),
    region: machineRegion,
    machine: MachineName.optional().describe("Which machine asks: its place is free when it has been answered."),
  }),
  answer: { kind: "bytes", contentType: "application/octet-stream" },
});

const Job = z.object({ job: z.string().describe("The job's id.") });

const notBeforeMsMax = 30 * 24 * 3_600_000;

export const startRelease = endpoint({
  method: "POST",
  path: "/v1/deploy/releases",
  action: "deploy.release",
  about: "Builds a commit and rolls it out.",
  body: jsonBody(
    z.strictObject({
      service: ServiceFile,
      sha: z.string().regex(/^[0-9a-f]{7,64}$/),
      repository: z.string().min(1).max(2_000).describe("A path or URL that git can clone, as the node sees it."),
      notBefore: z.iso
        .datetime({ offset: true })
        .refine((text) => Date.parse(text) < Date.now() + notBeforeMsMax, "at most 30 days from now")
        .optional()
        .describe("No wave begins before this time, at most 30 days from now; it is built and replicated meanwhile."),
    }),
  ),
  answer: json(Job, 202),
});

const serviceParams = z.object({ service: ServiceName });

const Machine = z.object({
  machine: z.string(),
  region: z.string(),
  labels: z.array(Label),
  reports: z.array(
    z.object({
      service: z.string(),
      state: z.string(),
      running: z.string().nullable(),
      goalVersion: z.int(),
      why: z.string().optional(),
      agoMs: z.number(),
    }),
  ),
});

const page = {
  after: z.string().max(200).default("").describe("The `next` of the page before."),
  limit: z.coerce.number().int().min(1).max(1_000).default(200).describe("How many machines at most."),
};
const next = z.string().nullable().describe("What to ask for next; null: these were the last ones.");

export const listMachines = endpoint({
  method: "GET",
  path: "/v1/deploy/machines",
  action: "deploy.read",
  about: "Lists the machines that are attached, in the order of their names, and what each of them runs.",
  query: z.object({
    ...page,
    regions: z.string().max(2_000).optional().describe("Separated by commas; left out: all."),
    service: ServiceName.optional().describe("Only machines that report about it."),
    state: z.enum(shownStates).optional().describe("Only machines that have a service in this state."),
  }),
  answer: json(z.object({ machines: z.array(Machine), next })),
});

export const showService = endpoint({
  method: "GET",
  path: "/v1/deploy/services/{service}",
  action: "deploy.read",
  about: "Shows a service's goal, stable version and machines, by region.",
  params: serviceParams,
  query: z.object({
    regions: z.string().max(2_000).default("").describe("Separated by commas; left out: those of its newest release."),
  }),
  answer: json(
    z.object({
      regions: z.array(
        z.object({
          region: z.string(),
          version: z.int(),
          kind: z.string(),
          halted: z.boolean(),
          release: z.string(),
          wave: z.int(),
          sharePpm: z.int(),
          manifest: z.string().nullable(),
          stable: z.string().nullable(),
          machines: z.int(),
          running: z.int().describe("Machines that answer with the goal's manifest."),
          pins: z.array(Pin),
        }),
      ),
    }),
  ),
});

export const listServices = endpoint({
  method: "GET",
  path: "/v1/deploy/services",
  action: "deploy.read",
  about: "Lists the services that were released, with the regions of their newest release.",
  answer: json(
    z.object({
      services: z.array(
        z.object({ service: z.string(), regions: z.array(z.string()), sha: z.string(), releasedAt: z.string() }),
      ),
    }),
  ),
});

const pinMsMax = 90 * 24 * 3_600_000;
const pinned = {
  region: Region,
  machine: MachineName.optional(),
  label: Label.optional().describe("All machines that have it."),
};
const onePinned = { message: "say a machine or a label" };
const isOnePinned = ({ machine, label }: { machine?: string | undefined; label?: string | undefined }): boolean =>
  (machine === undefined) !== (label === undefined);

export const pinMachines = endpoint({
  method: "POST",
  path: "/v1/deploy/services/{service}/pins",
  action: "deploy.release",
  about: "Keeps a machine, or all with a label, at a version for a time, in the caller's name; releases pass them by.",
  params: serviceParams,
  body: jsonBody(
    z
      .strictObject({
        ...pinned,
        manifest: DigestText.optional().describe("Left out: what the machine runs; for a label, the stable version."),
        forMs: z.int().min(1_000).max(pinMsMax),
        why: z.string().max(500).default(""),
      })
      .refine(isOnePinned, onePinned),
    16 * 1024,
  ),
  answer: json(Pin, 201),
});

export const unpinMachines = endpoint({
  method: "POST",
  path: "/v1/deploy/services/{service}/unpin",
  action: "deploy.release",
  about: "Takes a pin away: the machines follow the goal again.",
  params: serviceParams,
  body: jsonBody(z.strictObject(pinned).refine(isOnePinned, onePinned), 16 * 1024),
  answer: none,
});

const regionsBody = jsonBody(z.strictObject({ regions: z.array(Region).min(1).max(50) }), 64 * 1024);

export const startRollback = endpoint({
  method: "POST",
  path: "/v1/deploy/services/{service}/rollback",
  action: "deploy.release",
  about: "Goes back to the version that was good before.",
  params: serviceParams,
  body: regionsBody,
  answer: json(Job, 202),
});

export const haltService = endpoint({
  method: "POST",
  path: "/v1/deploy/services/{service}/halt",
  action: "deploy.release",
  about: "Stops every activation of a service, or lets it go on. What runs stays up.",
  params: serviceParams,
  body: jsonBody(z.strictObject({ regions: z.array(Region).min(1).max(50), halted: z.boolean() }), 64 * 1024),
  answer: none,
});

export const approveWave = endpoint({
  method: "POST",
  path: "/v1/deploy/releases/{job}/approve",
  action: "deploy.approve",
  about: "Approves the next wave of a release, in the caller's name.",
  params: z.object({ job: z.string().max(50) }),
  body: jsonBody(z.strictObject({ wave: z.int().min(1).max(50), reject: z.boolean().default(false) }), 16 * 1024),
  answer: none,
});

const releaseParams = z.object({ job: z.string().max(50) });

export const pauseRelease = endpoint({
  method: "POST",
  path: "/v1/deploy/releases/{job}/pause",
  action: "deploy.release",
  about: "Lets no further wave of a release begin, or lets it go on.",
  params: releaseParams,
  body: jsonBody(z.strictObject({ paused: z.boolean() }), 16 * 1024),
  answer: none,
});

export const abortRelease = endpoint({
  method: "POST",
  path: "/v1/deploy/releases/{job}/abort",
  action: "deploy.release",
  about: "Ends a release and rolls back what it changed.",
  params: releaseParams,
  answer: none,
});

export const listReleases = endpoint({
  method: "GET",
  path: "/v1/deploy/jobs",
  action: "deploy.read",
  about: "Lists releases, newest first, with the columns that operators know from job tables.",
  answer: json(
    z.object({
      jobs: z.array(
        z.object({
          id: z.string(),
          created_at: z.string(),
          commit_sha: z.string().nullable(),
          name: z.string(),
          status: z.enum(["queued", "running", "succeeded", "failed"]),
          last_heartbeat: z.string().nullable(),
          live: z.boolean(),
        }),
      ),
    }),
  ),
});

export const planOfRelease = endpoint({
  method: "POST",
  path: "/v1/deploy/plan",
  action: "deploy.read",
  about: "Says what a release of a service file would do; changes nothing.",
  body: jsonBody(z.strictObject({ service: ServiceFile })),
  answer: json(
    z.object({
      notes: z.array(z.string()),
      waves: z.array(
        z.object({
          wave: z.int(),
          sharePpm: z.int(),
          machines: z.int(),
          added: z.int().describe("Machines that are not in an earlier wave."),
          bakeMs: z.int(),
          approvals: z.int(),
        }),
      ),
    }),
  ),
});

export const showDrift = endpoint({
  method: "GET",
  path: "/v1/deploy/services/{service}/drift",
  action: "deploy.read",
  about: "Lists machines that run something other than their goal says, in the order of their names.",
  params: serviceParams,
  query: z.object({ ...page, regions: z.string().max(2_000).describe("Regions, separated by commas.") }),
  answer: json(
    z.object({
      machines: z.array(
        z.object({
          machine: z.string(),
          region: z.string(),
          running: z.string().nullable(),
          wanted: z.string(),
          state: z.string(),
          why: z.string(),
        }),
      ),
      next,
    }),
  ),
});

export const deployEndpoints = [
  listKeys,
  rotateKey,
  revokeKey,
  attachMachine,
  reportMachine,
  showCaps,
  setCaps,
  forgetMachine,
  readBlob,
  askSwarm,
  readUnits,
  startRelease,
  listMachines,
  listServices,
  showService,
  pinMachines,
  unpinMachines,
  startRollback,
  haltService,
  approveWave,
  pauseRelease,
  abortRelease,
  listReleases,
  planOfRelease,
  showDrift,
] as const;
