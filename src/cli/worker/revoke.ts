import { command, serverFlags } from "#door/command.ts";

export const workerRevoke = command({
  name: "worker revoke",
  about: "Revoke a token that registers workers; those that it registered stay.",
  words: "<id>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "TENANT", about: "whose it is; left out: the caller's, or all tenants'" },
  },
  examples: ["millrace worker revoke r-0123456789ab"],
  async run({ positionals: [id = ""], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { revokeWorkerToken } = await import("#api/workers.ts");
    const { wrong } = await import("./worker.ts");
    if (id === "") throw wrong("name it by its id; millrace worker tokens lists them");
    const { tenant } = values;
    const api = apiOf(values, world.env, "revoke a worker's token");
    await api(revokeWorkerToken, { params: { id }, ...(tenant !== undefined && { tenant }) });
    world.out(values.json ? JSON.stringify({ id }) : `${id} is gone`);
    return 0;
  },
});
