import { allTenants, type Principal } from "#access/principal.ts";

const tenantDefault = "default";

/**
 * Whose cache it is: whoever is of all tenants, and cannot say which it means in a build tool's protocol, means one.
 */
export const cacheTenant = ({ tenant }: Principal): string => (tenant === allTenants ? tenantDefault : tenant);
