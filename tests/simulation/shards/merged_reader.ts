/**
 * A reader of what is served as one, as client-go's reflector, and what its answers must be.
 * @module
 */

import { compareResourceVersions } from "@listwatch/cache";
import { decodeMergedVersion } from "../../../src/meta/merged_version.ts";
import type { SimObject } from "../cluster_model.ts";
import type { SeededRandom } from "../seeded_random.ts";
import { Link } from "../tree/link.ts";
import { RESOURCE } from "../tree/origin.ts";
import type { MergedProgram, ShardsWorldParts } from "./merged_program.ts";
import { differenceOf } from "./merged_truth.ts";

const PATH = `http://reader/api/v1/${RESOURCE}`;

interface Page {
  readonly items: readonly SimObject[];
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
}

/** Lists and watches at any of the programs, and checks each event and each list. */
export class MergedReader {
  readonly name: string;
  readonly links: readonly [Link];
  readonly #random: SeededRandom;
  readonly #programs: readonly MergedProgram[];
  readonly #world: ShardsWorldParts;
  readonly #hasBookmarks: boolean;
  readonly #stop = new AbortController();
  readonly #objects = new Map<string, string>();
  /** Where its next watch begins; `""`: it lists. */
  #resourceVersion = "";
  /** The last merged version that it was at. */
  #position = "";
  checks = 0;

  constructor(
    config: {
      readonly name: string;
      readonly random: SeededRandom;
      readonly programs: readonly MergedProgram[];
    },
    world: ShardsWorldParts,
  ) {
    this.name = config.name;
    this.#random = config.random;
    this.#programs = config.programs;
    this.#world = world;
    this.#hasBookmarks = config.random.chance(0.7);
    const { time, log } = world;
    this.links = [new Link({ name: this.name, time, random: config.random.fork(), log })];
  }

  async run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const program = this.#random.pick(this.#programs);
      try {
        if (this.#resourceVersion === "") await this.#list(program);
        await this.#watch(program);
      } catch (error) {
        if (error instanceof Violation) throw error;
        this.#world.log(`${this.name}: ${error instanceof Error ? error.message : error}`);
      }
      await this.#pause(this.#random.int(10, 1_500));
    }
  }

  stop(): void {
    this.#stop.abort();
    for (const link of this.links) link.vanish("reset");
  }

  difference(): string | undefined {
    const { truth } = this.#world;
    const expected = truth.contentOf(truth.versions);
    const keys = (content: ReadonlyMap<string, string>) =>
      new Map([...content.keys()].map((key) => [key, ""]));
    const found = this.#hasBookmarks
      ? differenceOf(this.#objects, expected)
      : differenceOf(keys(this.#objects), keys(expected));
    return found && `${this.name}: ${found}`;
  }

  async #list(program: MergedProgram): Promise<void> {
    const random = this.#random;
    const partial = random.chance(0.3) ? "&partial=true" : "";
    const limit = random.chance(0.4) ? random.int(1, 3) : undefined;
    const items: SimObject[] = [];
    let query = limit === undefined ? `resourceVersion=0${partial}` : `limit=${limit}${partial}`;
    for (;;) {
      const page = await this.#get(program, query);
      items.push(...page.items);
      const { resourceVersion, continue: token } = page.metadata;
      if (!token) {
        this.#objects.clear();
        for (const { metadata } of items) {
          const key = `${metadata.namespace}/${metadata.name}`;
          if (this.#objects.has(key)) this.#violate(`a list has ${key} twice`);
          this.#objects.set(key, metadata.resourceVersion);
        }
        this.#position = "";
        return this.#at(resourceVersion, { isList: true });
      }
      query = `limit=${limit}&continue=${token}${partial}`;
    }
  }

  async #get(program: MergedProgram, query: string): Promise<Page> {
    const response = await this.links[0].fetchTo(() => program)(`${PATH}?${query}`, {
      signal: this.#stop.signal,
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} to ${query}`);
    return JSON.parse(text);
  }

  async #watch(program: MergedProgram): Promise<void> {
    const random = this.#random;
    const query = [
      "watch=true",
      `resourceVersion=${this.#resourceVersion}`,
      `timeoutSeconds=${random.int(1, 20)}`,
      "partial=true",
      ...(this.#hasBookmarks ? ["allowWatchBookmarks=true"] : []),
    ];
    const fetch = this.links[0].fetchTo(() => program);
    const response = await fetch(`${PATH}?${query.join("&")}`, { signal: this.#stop.signal });
    if (response.status !== 200) throw new Error(`${response.status} to a watch`);
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (this.#event(JSON.parse(line))) continue;
        this.#resourceVersion = "";
        return void reader.cancel().catch(() => {});
      }
    }
  }

  #event({ type, object }: { readonly type: string; readonly object: SimObject }): boolean {
    if (type === "ERROR") return false;
    this.checks++;
    const { namespace, name, resourceVersion } = object.metadata;
    const key = `${namespace}/${name}`;
    if (type === "ADDED" && this.#objects.has(key)) this.#violate(`ADDED ${key}, which was there`);
    if ((type === "MODIFIED" || type === "DELETED") && !this.#objects.has(key)) {
      this.#violate(`${type} ${key}, which was not there`);
    }
    if (type === "DELETED") this.#objects.delete(key);
    else if (type !== "BOOKMARK") this.#objects.set(key, resourceVersion);
    this.#resourceVersion = resourceVersion;
    if (decodeMergedVersion(resourceVersion) !== undefined) this.#at(resourceVersion, { isList: false });
    return true;
  }

  /** The reader has come to a merged version. */
  #at(resourceVersion: string, { isList }: { readonly isList: boolean }): void {
    this.checks++;
    const { parts } = decodeMergedVersion(resourceVersion)!;
    const before = decodeMergedVersion(this.#position)?.parts;
    if (before?.some((part, i) => compareResourceVersions(part, parts[i]) > 0)) {
      this.#violate(`it goes back from ${before} to ${parts}`);
    }
    this.#position = this.#resourceVersion = resourceVersion;
    const expected = this.#world.truth.contentOf(parts);
    const keys = (content: ReadonlyMap<string, string>) =>
      new Map([...content.keys()].map((key) => [key, ""]));
    const found = this.#hasBookmarks || isList
      ? differenceOf(this.#objects, expected)
      : differenceOf(keys(this.#objects), keys(expected));
    if (found !== undefined) this.#violate(`at ${parts} ${found}`);
  }

  #violate(text: string): never {
    this.#world.violate(`${this.name}: ${text}`);
    throw new Violation(text);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#world.time.schedule(resolve, ms));
  }
}

class Violation extends Error {}
