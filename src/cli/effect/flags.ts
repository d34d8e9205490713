export const shared = {
  shared: { type: "boolean", about: "one effect for all jobs of the tenant, not one for this job and its re-runs" },
} as const;
