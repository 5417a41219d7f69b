/**
 * What `serve --snapshot` knows of a cluster that does not respond: its resources, and what their definitions
 * say.
 * @module
 */

import { lstat, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { textHash } from "../../util/hash.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import type { Connection } from "./connect.ts";
import type { DiscoveredResource } from "./discovery.ts";
import type { Selection } from "./select_resources.ts";
import type { ServeOptions } from "../serve/serve_options.ts";

/** A selection that was saved. */
export interface SavedSelection extends Selection {
  /** The resources as they were served: with columns, field selectors and names of their definitions. */
  readonly served: readonly ApiResource[];
}

const FORMAT = 2;

/** The file `cluster.json` in the folder of the snapshots. */
export class SavedCluster {
  readonly #path: string;
  readonly #logger: Logger;
  /** What decides which resources are selected. */
  readonly #of: string;
  #last: string | undefined;
  #saving: Promise<void> = Promise.resolve();

  constructor(
    folder: string,
    { connection, serve, logger }: {
      readonly connection: Pick<Connection, "server" | "context">;
      readonly serve: Pick<ServeOptions, "resources" | "namespace" | "allowSecrets">;
      readonly logger: Logger;
    },
  ) {
    this.#path = join(folder, "cluster.json");
    this.#logger = logger;
    const { server, context } = connection;
    const { resources, namespace, allowSecrets } = serve;
    this.#of = JSON.stringify({ server, context, resources, namespace, allowSecrets });
  }

  /** Reads the file; `undefined` if it is missing, damaged, or of other options. */
  async load(): Promise<SavedSelection | undefined> {
    try {
      if (await this.#isMissing()) return undefined;
      const text = await readFile(this.#path, "utf8");
      const { format, of, hash, selection } = JSON.parse(text) as FileContent;
      if (format !== FORMAT || textHash(selection) !== hash) {
        throw new Error("it is damaged, or of another format");
      }
      if (of !== this.#of) throw new Error("it is of another cluster, or of other resources");
      this.#last = selection;
      const { resources, inDiscoveryOrder, version, clusterUid, served } = JSON.parse(
        selection,
      ) as PlainSelection;
      return {
        resources,
        // The same objects, as in a selection.
        inDiscoveryOrder: inDiscoveryOrder.map((place) => resources[place]),
        version,
        clusterUid,
        served,
      };
    } catch (error) {
      this.#logger.warn(`cannot use ${this.#path}: ${errorMessage(error)}`, { error });
      return undefined;
    }
  }

  /** Replaces the file, if something has changed. A failure is logged: the next change is saved again. */
  save({ resources, inDiscoveryOrder, version, clusterUid, served }: SavedSelection): Promise<void> {
    const plain: PlainSelection = {
      resources,
      inDiscoveryOrder: inDiscoveryOrder.map((resource) => resources.indexOf(resource)),
      version,
      clusterUid,
      served,
    };
    const selection = JSON.stringify(plain);
    this.#saving = this.#saving.then(async () => {
      if (selection === this.#last) return;
      const content: FileContent = { format: FORMAT, of: this.#of, hash: textHash(selection), selection };
      try {
        await this.#replace(JSON.stringify(content));
        this.#last = selection;
      } catch (error) {
        this.#logger.error(`cannot save ${this.#path}: ${errorMessage(error)}`, { error });
      }
    });
    return this.#saving;
  }

  /** Resolves when every save has ended. */
  saved(): Promise<void> {
    return this.#saving;
  }

  /** @throws {Error} What is there is a device, say: it is neither read nor replaced. */
  async #isMissing(path = this.#path): Promise<boolean> {
    const stat = await lstat(path).catch(() => undefined);
    if (stat === undefined || stat.isFile()) return stat === undefined;
    throw new Error(`${path} is no regular file, and is left alone`);
  }

  async #replace(text: string): Promise<void> {
    await this.#isMissing();
    const temporary = `${this.#path}.new`;
    // A file that a kill has left may have another mode.
    if (!await this.#isMissing(temporary)) await rm(temporary);
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, this.#path);
  }
}

interface FileContent {
  readonly format: number;
  /** The options that it is of. */
  readonly of: string;
  readonly hash: string;
  /** As JSON. */
  readonly selection: string;
}

interface PlainSelection {
  readonly resources: readonly DiscoveredResource[];
  /** Their places among the resources. */
  readonly inDiscoveryOrder: readonly number[];
  readonly version: Selection["version"];
  readonly clusterUid: string;
  readonly served: readonly ApiResource[];
}
