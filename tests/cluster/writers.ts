/**
 * Writers that create, change and delete objects at random, and remember what they did.
 * @module
 */

import {
  type Cluster,
  compareResourceVersions,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubernetesObject,
  metaNamespaceKey,
  NetworkError,
  parseResource,
  type ResourceClient,
  StatusError,
} from "@listwatch/cache";
import process from "node:process";

/** What ConfigMaps and Secrets have in common. */
export interface DataObject extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** What was written under one uid: the versions that the server acknowledged, and whether it was deleted. */
export interface WrittenObject {
  readonly key: string;
  readonly resourceVersions: string[];
  isDeleted: boolean;
}

/** All writes of the writers that share it. */
export class WriteLog {
  /** The written objects by uid. */
  readonly objects: Map<string, WrittenObject> = new Map();
  /** The marks of all writes that were sent, acknowledged or not. */
  readonly marks: Set<string> = new Set();
  /** How many writes were acknowledged. */
  acknowledged = 0;

  written(object: KubernetesObject): void {
    const { uid = "", resourceVersion = "" } = object.metadata ?? {};
    const { resourceVersions } = this.#acknowledge(uid, metaNamespaceKey(object));
    resourceVersions.push(resourceVersion);
    resourceVersions.sort(compareResourceVersions);
  }

  deleted(uid: string, key: string): void {
    this.#acknowledge(uid, key).isDeleted = true;
  }

  /** The uids of what was deleted so far. */
  deletedUids(): Set<string> {
    const uids = new Set<string>();
    for (const [uid, { isDeleted }] of this.objects) if (isDeleted) uids.add(uid);
    return uids;
  }

  // Writers that share an object are answered in any order: a delete perhaps before what it deletes.
  #acknowledge(uid: string, key: string): WrittenObject {
    this.acknowledged++;
    let object = this.objects.get(uid);
    if (object === undefined) {
      object = { key, resourceVersions: [], isDeleted: false };
      this.objects.set(uid, object);
    }
    return object;
  }
}

/** Where to write, and how. */
export interface WriterOptions {
  readonly cluster: Cluster;
  /** `v1/configmaps` or `v1/secrets`. */
  readonly resource: string;
  readonly namespaces: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** How many names there are in each namespace; writers share them. */
  readonly names: number;
  readonly log: WriteLog;
  readonly random: () => number;
}

/** The annotation that marks each write. */
export const MARK = "listwatch-test/mark";

/** The label with the team of an object; it changes occasionally. */
export const TEAM = "team";

const TEAMS = ["red", "green", "blue"];
// Frames are split anywhere, also within a character.
const TEXT = "naïve 日本語 🙂 \u2028 \\n\n";

/**
 * Runs writers side by side until each has made `writes` writes, or the server is down. They share their
 * objects, so they run into each other; a write that the server refuses for that counts, too.
 *
 * @returns Whether the server was there to the end.
 */
export async function runWriters(
  options: WriterOptions,
  { writers, writes }: { readonly writers: number; readonly writes: number },
): Promise<boolean> {
  const ends: Promise<boolean>[] = [];
  for (let i = 0; i < writers; i++) ends.push(new Writer(options).run(writes));
  return (await Promise.all(ends)).every((isWhole) => isWhole);
}

/** The seed of a test's random choices; LISTWATCH_PROPERTY_SEED repeats those of a run. */
export function newSeed(): number {
  const given = process.env.LISTWATCH_PROPERTY_SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  if (!Number.isInteger(seed)) {
    throw new RangeError(`LISTWATCH_PROPERTY_SEED must be a whole number, not ${given}`);
  }
  console.log(`LISTWATCH_PROPERTY_SEED=${seed}`);
  return seed;
}

let marks = 0;

class Writer {
  readonly #options: WriterOptions;
  readonly #client: ResourceClient<DataObject>;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#client = options.cluster.resource<DataObject>(parseResource(options.resource));
  }

  async run(writes: number): Promise<boolean> {
    try {
      for (let i = 0; i < writes; i++) await this.#write();
      return true;
    } catch (error) {
      // A server that is killed, or only just starts.
      if (error instanceof NetworkError || (error instanceof StatusError && error.httpStatus >= 500)) {
        return false;
      }
      throw error;
    }
  }

  async #write(): Promise<void> {
    const { namespaces, names, random } = this.#options;
    const namespace = namespaces[Math.floor(random() * namespaces.length)];
    const name = `item-${Math.floor(random() * names)}`;
    const choice = random();
    try {
      if (choice < 0.3) await this.#create(namespace, name);
      else if (choice < 0.5) await this.#patch(namespace, name);
      else if (choice < 0.75) await this.#replace(namespace, name);
      else await this.#delete(namespace, name);
    } catch (error) {
      if (!isAlreadyExists(error) && !isConflict(error) && !isNotFound(error)) throw error;
    }
  }

  async #create(namespace: string, name: string): Promise<void> {
    const metadata = { name, namespace, labels: this.#labels(), annotations: this.#annotations() };
    const object = { metadata, data: { text: btoa(String(this.#options.random())) } };
    this.#options.log.written(await this.#client.create(object));
  }

  async #patch(namespace: string, name: string): Promise<void> {
    const patch = { metadata: { labels: this.#labels(), annotations: this.#annotations() } };
    this.#options.log.written(await this.#client.patch(name, patch, { namespace }));
  }

  /** Read and write: fails if another writer was quicker. */
  async #replace(namespace: string, name: string): Promise<void> {
    const object = await this.#client.get(name, { namespace });
    const annotations = { ...object.metadata?.annotations, ...this.#annotations() };
    const changed = { ...object, metadata: { ...object.metadata, annotations } };
    this.#options.log.written(await this.#client.replace(changed));
  }

  async #delete(namespace: string, name: string): Promise<void> {
    const { cluster, resource, log } = this.#options;
    const path = `/api/${resource.replace("/", `/namespaces/${namespace}/`)}/${name}`;
    const status = await cluster.request(path, { method: "DELETE" }) as { details: { uid: string } };
    log.deleted(status.details.uid, `${namespace}/${name}`);
  }

  #labels(): Record<string, string> {
    const { labels, random } = this.#options;
    return { ...labels, [TEAM]: TEAMS[Math.floor(random() * TEAMS.length)] };
  }

  #annotations(): Record<string, string> {
    const mark = `mark-${++marks}`;
    this.#options.log.marks.add(mark);
    return { [MARK]: mark, text: TEXT };
  }
}
