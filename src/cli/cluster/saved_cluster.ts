/** The folder of `serve --snapshot`: snapshots, and the resources of a cluster that does not respond. */

import process from "node:process";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotIdentity } from "../../informer/snapshot/storage.ts";
import { formatResource } from "../../meta/resource.ts";
import { SqliteStorage } from "../../node/sqlite_snapshot.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import { CommandError } from "../errors.ts";
import type { ServeSettings } from "../serve/serve_options.ts";
import type { Connection } from "./connect.ts";
import type { Selection } from "./select_resources.ts";

const SUFFIX = ".sqlite";

export function snapshotPath(folder: string, resource: ApiResource): string {
  return join(folder, `${formatResource(resource).replaceAll("/", "_")}${SUFFIX}`);
}

/**
 * Makes the folder, which only its owner may open. One that was there keeps its mode: if other users may
 * write it, they decide what is served.
 * @throws {CommandError} The folder cannot be made, or every user may replace its files.
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
 * Removes the snapshots of other resources than these: nothing would update them, and they may have Secrets.
 * Files that are no snapshots, or not named as this command names them, and links stay. A failure is logged.
 */
export async function removeOtherSnapshots(
  folder: string,
  { resources, logger }: { readonly resources: readonly ApiResource[]; readonly logger: Logger },
): Promise<void> {
  const selected = new Set(resources.map((resource) => snapshotPath(folder, resource)));
  const removed: string[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const path = join(folder, name);
    if (!isSnapshotName(name) || selected.has(path)) continue;
    try {
      await new SqliteStorage(path).remove();
      removed.push(name);
    } catch (error) {
      logger.warn(`cannot remove the snapshot ${path}: ${errorMessage(error)}`, { error });
    }
  }
  if (removed.length > 0) {
    logger.info(`removed snapshots of resources that are not selected in ${folder}: ${removed.join(", ")}`);
  }
}

function isSnapshotName(name: string): boolean {
  if (!name.endsWith(SUFFIX)) return false;
  const [resource = "", version = "", group = "core", ...rest] = name.slice(0, -SUFFIX.length).split("_")
    .reverse();
  return rest.length === 0 && VERSION.test(version) && NAME.test(resource) && NAME.test(group);
}

const VERSION = /^v[0-9]+(?:(?:alpha|beta)[0-9]+)?$/;
const NAME = /^[a-z0-9.-]+$/;

export interface SavedSelection extends Selection {
  /** The resources as they were served: with columns, field selectors and names of their definitions. */
  readonly served: readonly ApiResource[];
}

const KEY = "selection";

/** Saves what is known of the cluster, in a database of its own with one row. */
export class SavedCluster {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** The options that decide which resources are selected. */
  readonly #identity: SnapshotIdentity;
  #last: string | undefined;
  #saving: Promise<void> = Promise.resolve();

  constructor(
    folder: string,
    { server, context }: Pick<Connection, "server" | "context">,
    { resources, namespace, allowSecrets, clock, logger }: ServeSettings,
  ) {
    this.#path = join(folder, `cluster${SUFFIX}`);
    this.#clock = clock;
    this.#logger = logger;
    const source = JSON.stringify({ server, context, resources, namespace, allowSecrets });
    this.#identity = { resource: "the cluster", source };
  }

  /** The saved selection; `undefined` if there is none, or it is damaged or of other options. */
  async load(): Promise<SavedSelection | undefined> {
    const storage = new SqliteStorage(this.#path);
    try {
      const loaded = await storage.load(this.#identity);
      for await (const entries of loaded?.entries() ?? []) {
        for (const { json } of entries) this.#last = json;
      }
      return this.#last === undefined ? undefined : JSON.parse(this.#last) as SavedSelection;
    } catch (error) {
      this.#logger.warn(`cannot use ${this.#path}: ${errorMessage(error)}`, { error });
      return undefined;
    } finally {
      storage.close();
    }
  }

  /** Saves what has changed. A failure is logged: the next change is saved again. */
  save({ resources, discoveryOrder, version, clusterUid, served }: SavedSelection): Promise<void> {
    const json = JSON.stringify({ resources, discoveryOrder, version, clusterUid, served });
    return this.#saving = this.#saving.then(async () => {
      if (json === this.#last) return;
      const storage = new SqliteStorage(this.#path);
      try {
        await storage.load(this.#identity).catch(() => {}); // it is replaced as a whole
        await storage.save({
          ...{ resourceVersion: "", savedAtMs: this.#clock.now(), needsList: true, replaces: true },
          puts: [{ key: KEY, held: undefined, head: {}, json: () => json }],
          deletes: [],
        });
        this.#last = json;
      } catch (error) {
        this.#logger.error(`cannot save what is known of the cluster: ${errorMessage(error)}`, { error });
      } finally {
        storage.close();
      }
    });
  }

  saved(): Promise<void> {
    return this.#saving;
  }
}
