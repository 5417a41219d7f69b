/**
 * The folder of `serve --snapshot`.
 * @module
 */

import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import type { ApiResource } from "../protocol/api_resource.ts";
import { formatResource } from "../meta/resource.ts";
import { SNAPSHOT_MAGIC } from "../node/snapshots/file_format.ts";
import { FileLock } from "../node/snapshots/snapshot_lock.ts";
import type { Clock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import { CommandError } from "./errors.ts";

/** The file of a resource's snapshot. */
export function snapshotPath(folder: string, resource: ApiResource): string {
  return join(folder, `${formatResource(resource).replaceAll("/", "_")}.snap`);
}

/**
 * Makes the folder, which only its owner may open. One that was there keeps its mode: if other users may write it, they
 * decide what is served.
 *
 * @throws {CommandError} It cannot be made, or every user may replace its files.
 */
export async function prepareFolder(folder: string, logger: Logger): Promise<void> {
  let mode: number;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    mode = (await stat(folder)).mode;
  } catch (error) {
    throw new CommandError(`Cannot use the folder ${folder} for snapshots: ${errorMessage(error)}`);
  }
  // Windows has no such modes.
  if (process.platform === "win32" || (mode & WRITABLE_BY_OTHERS) === 0) return;
  if ((mode & WRITABLE_BY_ALL) !== 0 && (mode & STICKY) === 0) {
    throw new CommandError(
      `Cannot use the folder ${folder} for snapshots: every user may write it, and decide what is served; ` +
        "use another one, or chmod 700",
    );
  }
  logger.warn(`other users may write the folder ${folder}, and so decide what is served: chmod 700`);
}

const WRITABLE_BY_OTHERS = 0o022;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;

/**
 * Removes the snapshots of other resources than these: nothing would update them, and they may have Secrets. Files that
 * are no snapshots, or not named as this command names them, and links stay. A failure is logged.
 */
export async function removeOtherSnapshots(
  folder: string,
  { resources, clock, logger }: {
    readonly resources: readonly ApiResource[];
    readonly clock: Clock;
    readonly logger: Logger;
  },
): Promise<void> {
  const selected = new Set(resources.map((resource) => snapshotPath(folder, resource)));
  const removed: string[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const base = snapshotName(name);
    if (base === undefined || selected.has(join(folder, base))) continue;
    const lock = new FileLock(join(folder, base), { token: crypto.randomUUID(), clock });
    try {
      if (!await isSnapshot(join(folder, name))) continue;
      lock.hold();
      await rm(join(folder, name));
      removed.push(name);
    } catch (error) {
      logger.warn(`cannot remove the snapshot ${join(folder, name)}: ${errorMessage(error)}`, { error });
    } finally {
      lock.release();
    }
  }
  if (removed.length > 0) {
    logger.info(`removed snapshots of resources that are not selected in ${folder}: ${removed.join(", ")}`);
  }
}

/**
 * The file of a snapshot as {@linkcode snapshotPath} names it, from its name or from that of what a kill in the middle of a
 * save leaves beside it; `undefined` for every other name.
 */
function snapshotName(name: string): string | undefined {
  const base = name.endsWith(".new") ? name.slice(0, -".new".length) : name;
  if (!base.endsWith(".snap")) return undefined;
  const [resource = "", version = "", group = "core", ...rest] = base.slice(0, -".snap".length).split("_")
    .reverse();
  const isNamed = rest.length === 0 && VERSION.test(version) && NAME.test(resource) && NAME.test(group);
  return isNamed ? base : undefined;
}

const VERSION = /^v[0-9]+(?:(?:alpha|beta)[0-9]+)?$/;
const NAME = /^[a-z0-9.-]+$/;

async function isSnapshot(path: string): Promise<boolean> {
  if (!(await lstat(path)).isFile()) return false;
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { buffer, bytesRead } = await file.read(
      new Uint8Array(SNAPSHOT_MAGIC.length),
      0,
      SNAPSHOT_MAGIC.length,
      0,
    );
    if (bytesRead === 0) return path.endsWith(".new");
    const isUnfinished = path.endsWith(".new") && buffer.every((byte) => byte === 0);
    return isUnfinished || SNAPSHOT_MAGIC.every((byte, i) => buffer[i] === byte);
  } finally {
    await file.close();
  }
}
