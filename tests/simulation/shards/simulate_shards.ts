/**
 * Runs one simulated set of shards or clusters that are served as one, with caches above
 * them and readers, and reports its violations.
 * @module
 */

import { ClusterModel } from "../cluster_model.ts";
import { ListenerCensus } from "../listener_census.ts";
import { NetworkModel } from "../network_model.ts";
import { SeededRandom } from "../seeded_random.ts";
import { ServerModel, type ServerSettings } from "../server_model.ts";
import { isQuestion, type Target } from "../tree/link.ts";
import { RESOURCE } from "../tree/origin.ts";
import { VirtualTime } from "../virtual_time.ts";
import { WorldRecord } from "../world_record.ts";
import { MergedProgram } from "./merged_program.ts";
import { MergedReader } from "./merged_reader.ts";
import { MergedTruth } from "./merged_truth.ts";
import { LEFT_AFTER_MS } from "../../nothing_left.ts";

/** The result of a seed. */
export interface ShardsResult {
  readonly seed: number;
  /** The violations with their times; empty if there were none. */
  readonly violations: readonly string[];
  readonly setting: ShardsSetting;
  readonly trace: readonly string[];
  /** How many events and lists the readers have checked. */
  readonly checks: number;
}

/** What is served as one. */
export interface ShardsSetting {
  readonly seed: number;
  readonly by: "uid" | "name" | "cluster";
  readonly sources: number;
  readonly programs: number;
  readonly copies: number;
  readonly readers: number;
  readonly storage: "objects" | "short texts" | "plain";
  readonly useWatchList: boolean;
  readonly eventWindow: number;
}

const START_MS = 1_790_000_000_000;
const CONVERGENCE_MS = 300_000;
const KEYS = ["a/n0", "a/n1", "a/n2", "b/n0", "b/n1"];

/** Simulates the shards of a seed. */
export async function simulateShards(
  seed: number,
  { trace = false }: { readonly trace?: boolean } = {},
): Promise<ShardsResult> {
  return await new ShardsWorld(seed, trace).run();
}

class ShardsWorld {
  readonly #setting: ShardsSetting;
  readonly #time = new VirtualTime(START_MS);
  readonly #census = new ListenerCensus();
  readonly #random: SeededRandom;
  readonly #record: WorldRecord;
  /** One, or one for each source. */
  readonly #clusters: ClusterModel[];
  readonly #servers: ServerModel[][];
  readonly #networks: NetworkModel[];
  readonly #truth: MergedTruth;
  readonly #programs: MergedProgram[];
  readonly #readers: MergedReader[];
  #isCalm = false;

  constructor(seed: number, traces: boolean) {
    this.#record = new WorldRecord({ time: this.#time, startMs: START_MS, traces });
    const random = this.#random = new SeededRandom(seed ^ 0x5a4d);
    const by = random.pick(["uid", "uid", "uid", "name", "cluster", "cluster"] as const);
    const setting: ShardsSetting = this.#setting = {
      seed,
      by,
      sources: random.int(1, 3),
      programs: random.int(1, 2),
      copies: random.int(0, 2),
      readers: random.int(1, 3),
      storage: random.pick(["objects", "short texts", "plain"] as const),
      useWatchList: random.chance(0.5),
      eventWindow: random.pick([4, 16, 200]),
    };
    const count = by === "cluster" ? setting.sources : 1;
    this.#clusters = Array.from({ length: count }, () => new ClusterModel(random.int(10, 2_000)));
    const time = this.#time;
    const settings: ServerSettings = {
      initialEvents: "sent",
      knowsWatch: true,
      bookmarks: true,
      listsFromCache: random.chance(0.3),
      tokensExpire: false,
      refusesByHttp: random.chance(0.3),
      windowRevisions: random.pick([5, 1_000]),
      servesMetadata: random.chance(0.7),
      identifiesCluster: true,
    };
    this.#servers = this.#clusters.map((cluster, i) => {
      const servers = [0, 1].map((j) =>
        new ServerModel(`server ${i}.${j}`, { cluster, time, random: random.fork(), settings })
      );
      cluster.onRevision = (revision) => {
        for (const server of servers) server.follow(revision);
      };
      return servers;
    });
    this.#networks = this.#servers.map((servers) =>
      new NetworkModel({
        time,
        random: random.fork(),
        servers,
        settings,
        observer: {
          onRequest: () => {},
          onAnswer: () => {},
          onGivenUp: () => {},
          onUnavailable: () => {},
          log: (text) => this.#log(`origin: ${text}`),
        },
        calm: { latencyMs: [0, 1] },
      })
    );
    this.#truth = new MergedTruth(this.#clusters, setting);
    const world = {
      time,
      truth: this.#truth,
      violate: (text: string) => this.#record.violate(text),
      log: (text: string) => this.#log(text),
    };
    const merged = Array.from({ length: setting.programs }, (_, i) =>
      new MergedProgram(
        { name: `merged ${i}`, setting, random: random.fork() },
        { origins: () => this.#origins(i) },
        world,
      ));
    const copies = Array.from({ length: setting.copies }, (_, i) =>
      new MergedProgram(
        { name: `copy ${i}`, setting, random: random.fork() },
        { upstream: () => random.pick(merged) },
        world,
      ));
    this.#programs = [...merged, ...copies];
    this.#readers = Array.from(
      { length: setting.readers },
      (_, i) =>
        new MergedReader({ name: `reader ${i}`, random: random.fork(), programs: this.#programs }, world),
    );
  }

  async run(): Promise<ShardsResult> {
    await this.#record.live(() => this.#live(), { census: this.#census, settle: () => this.#time.settle() });
    const { violations, trace } = this.#record;
    const checks = this.#readers.reduce((sum, reader) => sum + reader.checks, 0);
    return { seed: this.#setting.seed, violations, setting: this.#setting, trace, checks };
  }

  async #live(): Promise<void> {
    const random = this.#random;
    for (let i = 0; i < 8; i++) this.#write();
    for (const program of this.#programs) program.start();
    for (const reader of this.#readers) {
      reader.run().catch((error) => this.#record.violate(`a reader fails: ${error?.stack ?? error}`));
    }
    const writes = random.int(20, 80);
    for (let i = 0; i < writes; i++) this.#time.schedule(() => this.#write(), random.int(0, 60_000));
    const faults = random.int(0, 14);
    for (let i = 0; i < faults; i++) this.#time.schedule(() => this.#fault(), random.int(0, 60_000));
    if (await this.#advance(70_000)) return;
    this.#calmDown();
    if (await this.#converge("after faults stopped")) return;
    for (const cluster of this.#clusters) {
      cluster.put(RESOURCE, "a/last", { app: "web", node: "node-1", value: 1_000 });
      cluster.delete(RESOURCE, "a/n0");
    }
    if (await this.#converge("after a last write")) return;
    for (const reader of this.#readers) reader.stop();
    await this.#advance(1_000);
    for (const program of this.#programs.toReversed()) {
      let hasStopped = false;
      program.stop().then(
        () => (hasStopped = true),
        (error) => this.#record.violate(`stop failed: ${error}`),
      );
      await this.#advance(5_000, () => hasStopped);
      if (!hasStopped) this.#record.violate(`${program.name} does not stop`);
    }
    await this.#advance(LEFT_AFTER_MS);
    if (this.#time.programTimers > 0) {
      this.#record.violate(`${this.#time.programTimers} timers are left after the stop`);
    }
  }

  async #advance(ms: number, done?: () => boolean): Promise<boolean> {
    const check = () => {
      for (const program of this.#programs) program.check();
    };
    await this.#time.run(
      this.#time.worldNow() + ms,
      check,
      () => this.#record.isFull || (done?.() ?? false),
    );
    return this.#record.violations.length > 0;
  }

  async #converge(when: string): Promise<boolean> {
    const difference = () => {
      for (const each of [...this.#programs, ...this.#readers]) {
        const found = each.difference();
        if (found !== undefined) return found;
      }
      return undefined;
    };
    if (await this.#advance(CONVERGENCE_MS, () => difference() === undefined)) return true;
    const found = difference();
    if (found !== undefined) this.#record.violate(`${CONVERGENCE_MS / 1_000} s ${when}: ${found}`);
    return found !== undefined;
  }

  /** Often the same object again under its name: it has another uid. */
  #write(): void {
    const random = this.#random;
    const cluster = random.pick(this.#clusters);
    const key = random.pick(KEYS);
    const value = random.int(0, 99);
    const kind = random.int(0, 9);
    if (kind < 4) cluster.delete(RESOURCE, key);
    if (kind > 2) {
      cluster.put(RESOURCE, key, { app: random.pick(["web", "db"]), node: `node-${value % 3}`, value });
    }
    if (random.chance(0.2)) cluster.tick();
  }

  #fault(): void {
    if (this.#isCalm) return;
    const random = this.#random;
    const program = random.pick(this.#programs);
    const later = (ms: number, act: () => void) =>
      this.#time.schedule(() => {
        if (!this.#isCalm) act();
      }, ms);
    const links = [...program.links, ...random.pick(this.#readers).links];
    const kind = random.pick(
      ["cut", "cut", "block", "slow", "kill", "lag", "compact", "bookmark", "restart"] as const,
    );
    this.#log(`${kind} ${program.name}`);
    switch (kind) {
      case "cut":
        return random.pick(links).cut(random.pick(["reset", "silent"] as const));
      case "block": {
        const link = random.pick(links);
        link.state = random.pick(["refused", "silent"] as const);
        return void later(random.int(100, 20_000), () => link.heal());
      }
      case "slow": {
        const link = random.pick(links);
        link.latencyMs = [50, 900];
        return void later(random.int(1_000, 20_000), () => link.heal());
      }
      case "kill":
        program.kill();
        for (const each of this.#programs) {
          for (const link of each.links) {
            link.cut("reset", (to) => to === program);
          }
        }
        for (const { links } of this.#readers) {
          for (const link of links) {
            link.cut("reset", (to) => to === program);
          }
        }
        return void later(random.int(10, 5_000), () => program.start());
      case "lag":
        return random.pick(random.pick(this.#servers)).lag(random.int(0, 3_000));
      case "compact": {
        const i = random.int(0, this.#clusters.length - 1);
        this.#clusters[i].compact(this.#clusters[i].revision);
        return void later(20, () => this.#servers[i].forEach((server) => server.forget()));
      }
      case "bookmark":
        return this.#servers.flat().forEach((server) => server.bookmarkAll());
      case "restart": {
        const i = random.int(0, this.#clusters.length - 1);
        const server = random.pick(this.#servers[i]);
        server.restart(random.int(10, 3_000), 0, { graceful: false });
        return this.#networks[i].abandon(server);
      }
    }
  }

  #calmDown(): void {
    this.#log("faults stop");
    this.#isCalm = true;
    for (const each of [...this.#programs, ...this.#readers]) for (const link of each.links) link.heal();
    for (const server of this.#servers.flat()) server.lag(5);
    for (const program of this.#programs) program.start();
  }

  /** What each source of a program lists. */
  #origins(program: number): Target[] {
    return Array.from({ length: this.#setting.sources }, (_, i): Target => {
      const network = this.#networks[i % this.#networks.length];
      const scope = { resource: RESOURCE, namespace: "", app: "" };
      const style = { chunking: "send", byteStream: false } as const;
      const fetch = network.fetchFor(program, scope, style);
      const ask = network.fetchFor(program, scope, { ...style, questions: { maxPage: 0 } });
      return {
        name: `origin ${i}`,
        isUp: true,
        fetch: async (path, init) =>
          await (isQuestion(init.headers) ? ask : fetch)(`http://origin${path}`, init),
      };
    });
  }

  #log(text: string): void {
    this.#record.log(text);
  }
}

/** A failed seed as text. */
export function describeShardsFailure({ seed, violations, setting, trace }: ShardsResult): string {
  return [
    `shards ${seed} failed:`,
    ...violations.map((text) => `  ${text}`),
    `the setting: ${JSON.stringify(setting)}`,
    ...(trace.length > 0 ? ["the trace:", ...trace.map((text) => `  ${text}`)] : []),
    `repeat it: deno task simulate --shards --seeds 1 --from ${seed} --trace`,
  ].join("\n");
}
