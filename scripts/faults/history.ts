/**
 * The writer, and the history that it makes: what each object was at
 * which version, and what a client received of it.
 * @module
 */

import { type KubernetesObject, metaNamespaceKey, type ResourceClient } from "@listwatch/cache";
import { sleepUnlessAborted } from "../../src/util/abort.ts";
import { realClock } from "../../src/util/clock.ts";

/** A ConfigMap with one value. */
export interface ValueObject extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** What a client has or had of an object. */
export type Seen = readonly [what: "set" | "delete", key: string, resourceVersion: string, value: string];

/** The namespace that is written to; clients may see others. */
export const NAMESPACE = "faults";

const NAMES = 50;
const PAUSE_MS = 100;
// Pieces of it end within a character.
const TEXT = "naïve 日本語 🙂 \u2028 \\n\n";

/** One life of an object: from a create to the delete. */
interface Life {
  readonly key: string;
  /** The values by resourceVersion. */
  readonly values: Map<string, string>;
  isDeleted: boolean;
}

/** The only writer. Its writes follow each other, so it knows what the server has. */
export class Writer {
  /** How many writes there were. */
  written = 0;
  readonly #client: ResourceClient<ValueObject>;
  readonly #random: () => number;
  readonly #lives: Life[] = [];
  readonly #present = new Map<string, { readonly life: Life; readonly resourceVersion: string }>();

  constructor(client: ResourceClient<ValueObject>, random: () => number) {
    this.#client = client;
    this.#random = random;
  }

  /** The keys of the objects that exist, each with its resourceVersion. */
  get present(): ReadonlyMap<string, string> {
    return new Map([...this.#present].map(([key, { resourceVersion }]) => [key, resourceVersion]));
  }

  /** The server's version: that of the last write, which may have been a delete. */
  async version(): Promise<number> {
    return Number((await this.#client.list()).metadata.resourceVersion);
  }

  /** Removes what an earlier writer left, and creates every other object. */
  async fill(): Promise<void> {
    const { items } = await this.#client.list();
    for (const { metadata } of items) {
      if (metadata?.namespace === NAMESPACE) {
        await this.#client.delete(metadata.name!, { namespace: NAMESPACE });
      }
    }
    for (let i = 0; i < NAMES; i += 2) await this.#create(`item-${i}`);
  }

  /** Writes ten times a second until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (await sleepUnlessAborted(PAUSE_MS, { clock: realClock, signal })) await this.write();
  }

  /** Writes so many times, one write directly after the other. */
  async burst(writes: number): Promise<void> {
    for (let i = 0; i < writes; i++) await this.write();
  }

  /** Creates, changes or deletes an object. */
  async write(): Promise<void> {
    const name = `item-${Math.floor(this.#random() * NAMES)}`;
    if (!this.#present.has(`${NAMESPACE}/${name}`)) await this.#create(name);
    else if (this.#random() < 0.35) await this.#delete(name);
    else {
      const value = this.#value();
      this.#note(await this.#client.patch(name, { data: { value } }, { namespace: NAMESPACE }));
    }
  }

  /** Deletes so many objects; every second one is created again. */
  async deleteSome(count: number): Promise<void> {
    for (const key of [...this.#present.keys()].slice(0, count)) {
      const name = key.slice(NAMESPACE.length + 1);
      await this.#delete(name);
      if (this.#random() < 0.5) await this.#create(name);
    }
  }

  /**
   * How many of these are no state of this history, in their order: the object was never so; it was so before
   * the state that was seen last; or it was deleted, but existed.
   */
  countImpossible(seen: readonly Seen[]): number {
    const lives = new Map<string, Life>();
    for (const life of this.#lives) {
      for (const resourceVersion of life.values.keys()) lives.set(`${life.key} ${resourceVersion}`, life);
    }
    const last = new Map<string, string>();
    let count = 0;
    for (const [what, key, resourceVersion, value] of seen) {
      if (!key.startsWith(`${NAMESPACE}/`)) continue;
      const before = last.get(key);
      const life = lives.get(`${key} ${resourceVersion}`);
      if (what === "delete") {
        // The version is that of the delete, or of the last state that the client had.
        const deleted = life ?? (before === undefined ? undefined : lives.get(`${key} ${before}`));
        if (deleted?.isDeleted !== true) count++;
        continue;
      }
      if (life === undefined || life.values.get(resourceVersion) !== value) count++;
      else if (before !== undefined && Number(resourceVersion) < Number(before)) count++;
      else last.set(key, resourceVersion);
    }
    return count;
  }

  async #create(name: string): Promise<void> {
    const created = await this.#client.create({
      metadata: { name, namespace: NAMESPACE },
      data: { value: this.#value() },
    });
    this.#lives.push({ key: metaNamespaceKey(created), values: new Map(), isDeleted: false });
    this.#note(created, this.#lives.at(-1));
  }

  async #delete(name: string): Promise<void> {
    await this.#client.delete(name, { namespace: NAMESPACE });
    const key = `${NAMESPACE}/${name}`;
    this.#present.get(key)!.life.isDeleted = true;
    this.#present.delete(key);
    this.written++;
  }

  #note(object: ValueObject, life?: Life): void {
    const key = metaNamespaceKey(object);
    const { resourceVersion = "" } = object.metadata ?? {};
    const lived = life ?? this.#present.get(key)!.life;
    lived.values.set(resourceVersion, object.data?.value ?? "");
    this.#present.set(key, { life: lived, resourceVersion });
    this.written++;
  }

  #value(): string {
    return `${TEXT}${this.#random()}`;
  }
}
