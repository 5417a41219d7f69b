/**
 * Runs one simulated tree of caches, and reports its violations.
 * @module
 */

import { clockText } from "../describe_scenario.ts";
import { ClusterModel, type Scope } from "../cluster_model.ts";
import { ListenerCensus } from "../listener_census.ts";
import { NetworkModel } from "../network_model.ts";
import { SeededRandom } from "../seeded_random.ts";
import { ServerModel, type ServerSettings } from "../server_model.ts";
import { VirtualTime } from "../virtual_time.ts";
import { isQuestion, type Link, type LinkState, type Target } from "./link.ts";
import { TreeNode } from "./node.ts";
import { RESOURCE } from "./origin.ts";
import { TreeReader } from "./reader.ts";
import { WindowReader, type WindowReaderWorld } from "./window_reader.ts";
import { newTreeScenario, type TreeAction, type TreeScenario } from "./tree_scenario.ts";
import { WorldRecord } from "../world_record.ts";
import { LEFT_AFTER_MS } from "../../nothing_left.ts";

/** The result of a seed. */
export interface TreeResult {
  readonly seed: number;
  /** The violations with their times; empty if there were none. */
  readonly violations: readonly string[];
  readonly scenario: TreeScenario;
  /** How many requests reached the origin. */
  readonly requests: number;
  /** What happened, if requested. */
  readonly trace: readonly string[];
}

/** A level that has just synced may be in the longest delay between two tries of the level below. */
const CONVERGENCE_MS = 120_000;
/** A list that compensates for a loss comes at growing intervals, at each level. */
const RESTORE_MS = 100 * 60_000;
/** An upstream that is away costs a node no more, in the long run. */
const MOST_REQUESTS_PER_SECOND = 0.25;
const LONG_RUN_MS = 600_000;
/** The tries of the first minute. */
const FIRST_REQUESTS = 20;
const MOST_LISTENERS = 4;
const START_MS = 1_790_000_000_000;

/** Simulates the tree of a seed. */
export async function simulateTree(
  seed: number,
  { trace = false }: { readonly trace?: boolean } = {},
): Promise<TreeResult> {
  return await new TreeWorld(newTreeScenario(seed), trace).run();
}

class TreeWorld {
  readonly #scenario: TreeScenario;
  readonly #time = new VirtualTime(START_MS);
  readonly #census = new ListenerCensus();
  readonly #random: SeededRandom;
  readonly #cluster: ClusterModel;
  readonly #servers: ServerModel[];
  readonly #network: NetworkModel;
  readonly #nodes: TreeNode[] = [];
  readonly #readers: TreeReader[];
  readonly #screen: WindowReader | undefined;
  readonly #regions = new Map<string, number>([["origin", 0]]);
  readonly #splits = new Map<number, LinkState>();
  /** Times without any contact to the upstream. */
  readonly #blocks: { readonly fromMs: number; readonly toMs: number }[] = [];
  readonly #record: WorldRecord;
  #isInDoubt = false;
  #isCalm = false;

  constructor(scenario: TreeScenario, traces: boolean) {
    this.#scenario = scenario;
    this.#record = new WorldRecord({ time: this.#time, startMs: START_MS, traces });
    const random = this.#random = new SeededRandom(scenario.seed ^ 0x0716);
    const time = this.#time;
    const cluster = this.#cluster = new ClusterModel(scenario.firstRevision);
    for (const { atMs, action } of scenario.steps) if (atMs < 0) this.#act(action);
    const settings: ServerSettings = {
      initialEvents: "sent",
      knowsWatch: true,
      bookmarks: true,
      listsFromCache: scenario.listsFromCache,
      tokensExpire: false,
      refusesByHttp: random.chance(0.3),
      windowRevisions: scenario.windowRevisions,
      servesMetadata: random.chance(0.7),
      identifiesCluster: true,
    };
    this.#servers = Array.from(
      { length: scenario.servers },
      (_, index) => new ServerModel(`server ${index}`, { cluster, time, random: random.fork(), settings }),
    );
    cluster.onRevision = (revision) => {
      for (const server of this.#servers) server.follow(revision);
    };
    this.#network = new NetworkModel({
      time,
      random: random.fork(),
      servers: this.#servers,
      settings,
      observer: {
        onRequest: () => {},
        onAnswer: () => {},
        onGivenUp: () => {},
        onUnavailable: () => {},
        log: (text) => this.#log(`origin: ${text}`),
      },
      calm: { latencyMs: [0, 1] },
    });
    const world = {
      time,
      cluster,
      isInDoubt: () => this.#isInDoubt,
      violate: (text: string) => this.#violate(text),
      log: (text: string) => this.#log(text),
    };
    for (const [index, config] of scenario.nodes.entries()) {
      this.#regions.set(config.name, config.region);
      this.#nodes.push(
        new TreeNode(config, this.#targetOf(index, config.upstream), {
          ...world,
          between: (target) => this.#between(config.region, target),
        }),
      );
    }
    this.#readers = scenario.readers.map((config) => {
      const { namespace } = config;
      const nodes = this.#nodes.filter(({ config: { scope } }) =>
        scope.namespace === "" || scope.namespace === namespace
      );
      return new TreeReader(config, {
        ...world,
        nodes,
        between: (target) => this.#between(config.region, target),
      });
    });
    this.#screen = this.#newScreen(world);
  }

  /** A screen at one of the nodes that have everything. */
  #newScreen(world: Omit<WindowReaderWorld, "nodes" | "between">): WindowReader | undefined {
    const nodes = this.#nodes.filter(({ config: { scope } }) => scope.namespace === "" && scope.app === "");
    if (nodes.length === 0) return undefined;
    const between = (target: Target) => this.#between(0, target);
    return new WindowReader(this.#scenario.seed ^ 0x5c4e, { ...world, nodes, between });
  }

  async run(): Promise<TreeResult> {
    await this.#record.live(() => this.#live(), { census: this.#census, settle: () => this.#time.settle() });
    return {
      seed: this.#scenario.seed,
      violations: this.#record.violations,
      scenario: this.#scenario,
      requests: this.#network.requests,
      trace: this.#record.trace,
    };
  }

  async #live(): Promise<void> {
    const { steps, calmMs } = this.#scenario;
    for (const node of this.#nodes) node.start();
    for (const reader of this.#readers) {
      reader.run().catch((error) =>
        this.#violate(`a reader fails: ${error instanceof Error ? error.stack : error}`)
      );
    }
    for (const { atMs, action } of steps) {
      if (atMs < 0) continue;
      this.#time.schedule(() => {
        this.#log(JSON.stringify(action));
        this.#act(action);
      }, atMs);
    }
    if (await this.#advance(calmMs)) return;
    this.#calmDown();
    if (await this.#converge("after faults stopped", this.#isInDoubt ? RESTORE_MS : CONVERGENCE_MS)) return;
    // What is on its way is of the time before.
    if (this.#isInDoubt && await this.#advance(10_000)) return;
    this.#isInDoubt = false;
    for (const reader of this.#readers) reader.isRestless = false;
    this.#cluster.put(RESOURCE, "a/last", { app: "web", node: "node-1", value: 1_000 });
    this.#cluster.delete(RESOURCE, "a/n0");
    if (await this.#converge("after a last write")) return;
    if (await this.#readFresh()) return;
    this.#checkRequests();
    await this.#stop();
  }

  /** Moves time; true if the world may end. */
  async #advance(ms: number, done?: () => boolean): Promise<boolean> {
    const check = () => {
      for (const node of this.#nodes) node.check();
    };
    const stop = () => this.#record.isFull || (done?.() ?? false);
    await this.#time.run(this.#time.worldNow() + ms, check, stop);
    return this.#record.violations.length > 0;
  }

  #calmDown(): void {
    this.#log("faults stop");
    this.#isCalm = true;
    this.#splits.clear();
    for (const link of this.#links()) link.heal();
    for (const server of this.#servers) {
      server.lag(5);
      server.freeze(false);
    }
    if (this.#isInDoubt) { for (const node of this.#nodes) node.helpAfterRestore(); }
    for (const node of this.#nodes) node.start();
    for (const reader of this.#readers) {
      reader.isHurried = true;
      if (this.#isInDoubt) reader.helpAfterRestore();
    }
    // What no client can detect, a server reports: that the version is too old.
    if (this.#isInDoubt) { for (const index of this.#nodes.keys()) this.#network.expire(index); }
  }

  async #converge(when: string, longestMs = CONVERGENCE_MS): Promise<boolean> {
    const difference = () => {
      for (const one of [...this.#nodes, ...this.#readers, ...this.#screen ? [this.#screen] : []]) {
        const found = one.difference();
        if (found !== undefined) return found;
      }
      return undefined;
    };
    if (await this.#advance(longestMs, () => difference() === undefined)) return true;
    const found = difference();
    if (found === undefined) return false;
    this.#violate(`${longestMs / 1_000} s ${when}: ${found}`);
    return true;
  }

  /** Reads that require what the origin has are answered, at each node that promises it. */
  async #readFresh(): Promise<boolean> {
    // No event shows that version.
    this.#cluster.tick();
    const [reader] = this.#readers;
    const left = new Set(this.#nodes.filter((node) => node.isConsistent && this.#isFor(reader, node)));
    for (const node of left) {
      const tryAgain = async () => {
        while (!await reader.readsFresh(node)) {
          await new Promise<void>((resolve) => this.#time.schedule(resolve, 1_000));
          if (this.#record.violations.length > 0) return;
        }
        left.delete(node);
      };
      tryAgain();
    }
    if (await this.#advance(CONVERGENCE_MS, () => left.size === 0)) return true;
    for (const { name } of left) this.#violate(`${name}: a consistent read is not answered`);
    return left.size > 0;
  }

  #isFor({ config: { namespace } }: TreeReader, { config: { scope } }: TreeNode): boolean {
    return scope.namespace === "" || scope.namespace === namespace;
  }

  /** While its upstream is away for long, a node makes few requests. */
  #checkRequests(): void {
    for (const { fromMs, toMs } of this.#blocks) {
      const seconds = (toMs - fromMs) / 1_000;
      for (const { name, requestsMs } of this.#nodes) {
        const count = requestsMs.filter((ms) => fromMs <= ms && ms < toMs).length;
        if (count > FIRST_REQUESTS + seconds * MOST_REQUESTS_PER_SECOND) {
          this.#violate(`${name} makes ${count} requests in ${seconds} s of an outage`);
        }
      }
    }
  }

  async #stop(): Promise<void> {
    this.#log("stop");
    const { steps } = this.#scenario;
    const { most } = this.#census;
    if (most > MOST_LISTENERS) this.#violate(`one signal has ${most} listeners`);
    for (const reader of this.#readers) reader.stop();
    this.#screen?.stop();
    await this.#advance(1_000);
    for (const node of this.#nodes.toReversed()) {
      let hasStopped = false;
      node.stop().then(() => hasStopped = true, (error) => this.#violate(`stop failed: ${error}`));
      await this.#advance(5_000, () => hasStopped);
      if (!hasStopped) this.#violate(`${node.name} does not stop`);
    }
    await this.#advance(LEFT_AFTER_MS);
    if (this.#time.programTimers > 0) {
      this.#violate(`${this.#time.programTimers} timers are left after the stop`);
    }
    for (const { name, link } of this.#nodes) {
      if (link.open > 0) this.#violate(`${link.open} connections of ${name} are left after the stop`);
    }
    // The origin does not notice that a silent peer has left.
    const hasSilence = steps.some(({ action }) =>
      ("how" in action && action.how === "silent") || ("state" in action && action.state === "silent")
    );
    const { size } = this.#network.open;
    if (size > 0 && !hasSilence) this.#violate(`${size} requests are left at the origin`);
  }

  #act(action: TreeAction): void {
    const cluster = this.#cluster;
    switch (action.do) {
      case "put":
        return cluster.put(RESOURCE, action.key, { ...action, node: `node-${action.value % 3}` });
      case "delete":
        return cluster.delete(RESOURCE, action.key);
      case "tick":
        for (let i = 0; i < action.count; i++) cluster.tick();
        return;
    }
    if (this.#isCalm) return;
    const later = (ms: number, act: () => void) =>
      this.#time.schedule(() => {
        if (!this.#isCalm) act();
      }, ms);
    switch (action.do) {
      case "bookmark":
        for (const server of this.#servers) server.bookmarkAll();
        return;
      case "compact":
        cluster.compact(cluster.revision);
        // The caches have what was written before.
        later(20, () => {
          for (const server of this.#servers) server.forget();
        });
        return;
      case "freeze":
        this.#servers[action.server].freeze(true);
        later(action.ms, () => this.#servers[action.server].freeze(false));
        return;
      case "lag":
        return this.#servers[action.server].lag(action.ms);
      case "restart": {
        const server = this.#servers[action.server];
        server.restart(action.downMs, 0, { graceful: false });
        return this.#network.abandon(server);
      }
      case "restore":
        return this.#restore(action);
      case "kill":
      case "stop": {
        const node = this.#nodes[action.node];
        const restart = () => {
          node.upstream = this.#targetOf(action.node, action.upstream);
          node.start();
        };
        if (action.do === "kill") {
          node.kill(action.how, action.disk);
          for (const link of this.#links()) link.cut(action.how, (target) => target === node);
          later(action.downMs, restart);
        } else {
          // One that was still stopping when the faults stopped is started now.
          node.stop(action.disk).then(() => this.#isCalm ? restart() : later(action.downMs, restart));
        }
        return;
      }
      case "cut":
        return this.#linkOf(action.link).forEach((link) => link.cut(action.how));
      case "heal":
        return this.#linkOf(action.link).forEach((link) => link.heal());
      case "block": {
        const { link, state, ms } = action;
        for (const one of this.#linkOf(link)) one.state = state;
        if (ms >= LONG_RUN_MS) {
          const nowMs = this.#time.worldNow();
          this.#blocks.push({ fromMs: nowMs, toMs: nowMs + ms });
        }
        later(ms, () => this.#linkOf(link).forEach((one) => one.heal()));
        return;
      }
      case "slow": {
        const { link, latencyMs, ms } = action;
        for (const one of this.#linkOf(link)) one.latencyMs = latencyMs;
        later(ms, () => this.#linkOf(link).forEach((one) => one.heal()));
        return;
      }
      case "split": {
        const { region, state, ms } = action;
        this.#splits.set(region, state);
        const how = state === "refused" ? "reset" : "silent";
        this.#cutSplit(how);
        later(ms, () => {
          this.#splits.delete(region);
          for (const link of this.#links()) link.heal();
          this.#cutSplit("silent");
        });
      }
    }
  }

  /** Breaks the connections between regions that are split. */
  #cutSplit(how: "reset" | "silent"): void {
    for (const [index, config] of [...this.#scenario.nodes, ...this.#scenario.readers].entries()) {
      const isSplit = (target: Target) => this.#between(config.region, target) !== "up";
      for (const link of this.#linkOf(index)) link.cut(how, isSplit);
    }
  }

  #restore({ back, restarts, filters }: Extract<TreeAction, { do: "restore" }>): void {
    this.#isInDoubt = true;
    this.#cluster.restore(back);
    for (const reader of this.#readers) reader.forget();
    this.#screen?.forget();
    for (const server of this.#servers) {
      server.restored({ filters });
      if (!restarts) continue;
      server.restart(500, 0, { graceful: false });
      this.#network.abandon(server);
    }
  }

  #between(region: number, target: Target): LinkState {
    const other = this.#regions.get(target.name)!;
    if (region === other) return "up";
    return this.#splits.get(region) ?? this.#splits.get(other) ?? "up";
  }

  #targetOf(node: number, upstream: number): Target {
    return this.#nodes[upstream] ?? this.#originFor(node);
  }

  #originFor(node: number): Target {
    const { scope } = this.#scenario.nodes[node];
    const style = { chunking: "send", byteStream: false } as const;
    const fetch = this.#network.fetchFor(node, scope satisfies Scope, style);
    const ask = this.#network.fetchFor(node, scope, { ...style, questions: { maxPage: 0 } });
    return {
      name: "origin",
      isUp: true,
      fetch: async (path, init) =>
        await (isQuestion(init.headers) ? ask : fetch)(`http://origin${path}`, init),
    };
  }

  #linkOf(index: number): Link[] {
    const nodes = this.#nodes.length;
    return index < nodes ? [this.#nodes[index].link] : this.#readers[index - nodes].links;
  }

  #links(): Link[] {
    const screen = this.#screen === undefined ? [] : [this.#screen.link];
    return [
      ...this.#nodes.map(({ link }) => link),
      ...this.#readers.flatMap(({ links }) => links),
      ...screen,
    ];
  }

  #violate(text: string): void {
    this.#record.violate(text);
  }

  #log(text: string): void {
    this.#record.log(text);
  }
}

/** A failed seed as text: what was wrong, the scenario, and the command that repeats it. */
export function describeTreeFailure({ seed, violations, scenario, trace }: TreeResult): string {
  const { steps, nodes, readers, ...rest } = scenario;
  return [
    `tree ${seed} failed:`,
    ...violations.map((text) => `  ${text}`),
    `the tree: ${JSON.stringify(rest)}`,
    ...[...nodes, ...readers].map((one) => `  ${JSON.stringify(one)}`),
    "the script:",
    ...steps.map(({ atMs, action }) => `  ${clockText(atMs)}  ${JSON.stringify(action)}`),
    ...(trace.length > 0 ? ["the trace:", ...trace.map((text) => `  ${text}`)] : []),
    `repeat it: deno task simulate --tree --seeds 1 --from ${seed} --trace`,
  ].join("\n");
}
