/**
 * Writers that create, change and delete ConfigMaps and Pods at random,
 * a few times a second, for as long as they may.
 *
 * The names they use are a fixed set, so that the number of objects settles, and nothing they remember grows.
 *
 * @module
 */

import {
  type Cluster,
  compareResourceVersions,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubernetesObject,
  NetworkError,
  type ResourceClient,
  StatusError,
} from "@listwatch/cache";
import { sleepUnlessAborted } from "../../src/util/abort.ts";
import { realClock } from "../../src/util/clock.ts";

/** What is written. */
export type SoakResource = "v1/configmaps" | "v1/pods";

/** All of them. */
export const SOAK_RESOURCES: readonly SoakResource[] = ["v1/configmaps", "v1/pods"];

/** The label that changes occasionally; watches can select by it. */
export const TEAM = "team";

const TEAMS = ["red", "green", "blue"];
const MARKER = "checkpoint";
const RETRY_MS = 500;
// Frames are split anywhere, also within a character.
const TEXT = "naïve 日本語 🙂 \u2028 \\n\n";

/** Where to write. */
export interface SoakWriterOptions {
  /** Straight to the server. */
  readonly cluster: Cluster;
  readonly resource: SoakResource;
  readonly namespaces: readonly string[];
  /** How many names there are in each namespace; writers share them. */
  readonly names: number;
  readonly random: () => number;
  /** The mean time between two writes. */
  readonly meanPauseMs: number;
}

/** One writer. Several share their objects, so they run into each other. */
export class SoakWriter {
  /** How many writes the server acknowledged. */
  written = 0;
  readonly #options: SoakWriterOptions;
  readonly #client: ResourceClient<KubernetesObject>;

  constructor(options: SoakWriterOptions) {
    this.#options = options;
    this.#client = options.cluster.resource(options.resource);
  }

  /** Creates every other name, so that there is something from the start. */
  async fill(): Promise<void> {
    const { namespaces, names } = this.#options;
    for (const namespace of namespaces) {
      for (let i = 0; i < names; i += 2) await this.#create(namespace, nameOf(i));
    }
  }

  /** Writes until the signal is aborted, and continues after an outage. Started writes are finished. */
  async run(signal: AbortSignal): Promise<void> {
    const { random, meanPauseMs } = this.#options;
    let burst = 0;
    while (!signal.aborted) {
      burst = burst > 0 ? burst - 1 : random() < 0.01 ? 30 : 0;
      if (burst === 0) {
        await sleepUnlessAborted(random() * 2 * meanPauseMs, { clock: realClock, signal });
        if (signal.aborted) return;
      }
      try {
        await this.#write();
        this.written++;
      } catch (error) {
        if (isAlreadyExists(error) || isConflict(error) || isNotFound(error)) continue;
        if (!isOutage(error)) throw error;
        await sleepUnlessAborted(RETRY_MS, { clock: realClock, signal });
      }
    }
  }

  async #write(): Promise<void> {
    const { namespaces, names, random } = this.#options;
    const namespace = namespaces[Math.floor(random() * namespaces.length)];
    const name = nameOf(Math.floor(random() * names));
    const choice = random();
    if (choice < 0.3) await this.#create(namespace, name);
    else if (choice < 0.75) {
      const metadata = { labels: { [TEAM]: this.#team() }, annotations: this.#annotations() };
      await this.#client.patch(name, { metadata }, { namespace });
    } else await this.#client.delete(name, { namespace, gracePeriodSeconds: 0 });
  }

  async #create(namespace: string, name: string): Promise<void> {
    const metadata = {
      name,
      namespace,
      labels: { [TEAM]: this.#team() },
      annotations: this.#annotations(),
    };
    await this.#client.create(newObject(this.#options.resource, metadata));
  }

  #team(): string {
    return TEAMS[Math.floor(this.#options.random() * TEAMS.length)];
  }

  #annotations(): Record<string, string> {
    const { random } = this.#options;
    return { text: TEXT, value: String(random()), padding: "x".repeat(Math.floor(2 ** (random() * 11))) };
  }
}

/**
 * Writes one object in each namespace, which every selector of the soak accepts, and gives
 * the resourceVersion of the write in each: who has seen that has seen all that came
 * before. Tries again while the server is not there.
 *
 * @throws {Error} The server did not come back within 30 seconds.
 */
export async function writeMarkers(
  cluster: Cluster,
  resource: SoakResource,
  namespaces: readonly string[],
): Promise<Map<string, string>> {
  const client = cluster.resource<KubernetesObject>(resource);
  const untilMs = performance.now() + 30_000;
  const versions = new Map<string, string>();
  for (const namespace of namespaces) {
    for (;;) {
      try {
        const metadata = { name: MARKER, namespace, labels: { [TEAM]: TEAMS[0] } };
        await client.create(newObject(resource, metadata)).catch((error) => {
          if (!isAlreadyExists(error)) throw error;
        });
        const patch = { metadata: { annotations: { checkpoint: crypto.randomUUID() } } };
        const written = await client.patch(MARKER, patch, { namespace });
        versions.set(namespace, written.metadata?.resourceVersion ?? "");
        break;
      } catch (error) {
        if (!isOutage(error) || performance.now() > untilMs) throw error;
        await sleepUnlessAborted(RETRY_MS, { clock: realClock });
      }
    }
  }
  return versions;
}

/** The newest of them. */
export function newestVersion(versions: Iterable<string>): string {
  let newest = "0";
  for (const version of versions) if (compareResourceVersions(version, newest) > 0) newest = version;
  return newest;
}

function newObject(resource: SoakResource, metadata: KubernetesObject["metadata"]): KubernetesObject {
  if (resource === "v1/configmaps") return { metadata, data: { text: TEXT } } as KubernetesObject;
  const containers = [{ name: "main", image: "none.invalid/none", env: [{ name: "TEXT", value: "soak" }] }];
  return { metadata, spec: { containers } } as KubernetesObject;
}

function nameOf(i: number): string {
  return `item-${i}`;
}

/** A server that is killed, or only just starts. */
function isOutage(error: unknown): boolean {
  return error instanceof NetworkError ||
    (error instanceof StatusError && (error.httpStatus >= 500 || error.httpStatus === 429));
}
