import { command, serverFlags } from "#door/command.ts";

export const workerRemove = command({
  name: "worker remove",
  about: "Remove a worker that registered: within seconds no node lets it call any more.",
  words: "<id>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "TENANT", about: "whose it is; left out: the caller's, or all tenants'" },
  },
  examples: ["millrace worker remove w-0123456789ab"],
  async run({ positionals: [id = ""], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { removeWorker } = await import("#api/workers.ts");
    const { wrong } = await import("./worker.ts");
    if (id === "") throw wrong("name it by its id; millrace workers lists them");
    const { tenant } = values;
    const api = apiOf(values, world.env, "remove a worker");
    await api(removeWorker, { params: { id }, ...(tenant !== undefined && { tenant }) });
    world.out(values.json ? JSON.stringify({ id }) : `${id} is gone`);
    return 0;
  },
});
