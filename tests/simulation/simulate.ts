/**
 * Runs one simulated world, and reports its violations.
 * @module
 */

import { newStatus } from "@listwatch/cache/client";
import { ClusterModel } from "./cluster_model.ts";
import { clockText, describeAction, describeScenario } from "./describe_scenario.ts";
import { LEFT_AFTER_MS } from "../nothing_left.ts";
import { ListenerCensus } from "./listener_census.ts";
import { NetworkModel, type NetworkObserver, type SimRequest } from "./network_model.ts";
import { Program } from "./program.ts";
import { RestartingProgram } from "./restarting_program.ts";
import { type Action, type Fault, newScenario, type Scenario } from "./scenario.ts";
import { SeededRandom } from "./seeded_random.ts";
import { ServerModel, type ServerSettings } from "./server_model.ts";
import { VirtualTime } from "./virtual_time.ts";
import { WorldRecord } from "./world_record.ts";

/** The result of a seed. */
export interface SeedResult {
  readonly seed: number;
  /** The violations with their times; empty if there were none. */
  readonly violations: readonly string[];
  readonly scenario: Scenario;
  /** How much happened. */
  readonly requests: number;
  /** Network traffic and log lines, if requested. */
  readonly trace: readonly string[];
}

/** Options of {@linkcode simulateSeed}. */
export interface SimulateOptions {
  /** The faults that may occur; `FAULTS` by default. */
  readonly faults?: readonly Fault[];
  /** Whether to keep a trace; `false` by default. */
  readonly trace?: boolean;
}

/** After faults stop, the store must equal the server within so long: a bookmark may have to move it. */
const CONVERGENCE_MS = 65_000;
/**
 * What a slow handler may have left to do after that: hundreds of notifications, of a third of a second each.
 */
const HANDLERS_MS = 180_000;
/** No list, or watch that is not open yet, may wait for a response longer than this. */
const LIST_LIMIT_MS = 91_000;
const OPEN_LIMIT_MS = 31_000;
/**
 * Where streams are refused and lists are not, a list must come
 * after this: a minute of refusals, and a delay.
 */
const STREAM_REFUSALS_MS = 130_000;
/** A silent streamed list is ended after this, */
const STREAM_SILENCE_MS = 11_000;
/** and one that does not end although nothing is missing after this. */
const STREAM_END_MS = 61_000;
/** A server's cache may get the last of what is missing so late. */
const LONGEST_LAG_MS = 5_000;
/**
 * Three cut streams are replaced by a list after this, if the
 * delays between them have grown to their maximum.
 */
const STREAM_TRIES_MS = 75_000;
/** One list may be running, fail at its end, or bring a version that has expired. */
const MOST_SLOW_LISTS = 4;
/** A watch whose bookmarks stopped is ended after this. */
const BOOKMARK_SILENCE_MS = 91_000;
/** A program that was suspended notices within this. */
const STALL_LOOK_MS = 16_000;
/** A watch is ended this long after the time at which the server should have ended it. */
const TIMEOUT_GRACE_MS = 5_001;
/** More requests than this in a minute are a hot loop; the pages of a list count as one. */
const MOST_REQUESTS = 30;
const RATE_WINDOW_MS = 60_000;
/**
 * A refusal whose body is not there after this counts without it; one that is given up sooner was not read.
 */
const REFUSAL_MS = 1_000;
/**
 * A consistent read is answered within so long, also where a Retry-After or
 * the delay of a second cache's list comes before.
 */
const FRESH_MS = 75_000;
/** The maximum number of listeners on one signal. */
const MOST_LISTENERS = 3;
/**
 * After a restore the store must equal the server within so long: lists that compensate for losses come at
 * growing intervals; where only bookmarks can show it, two watches must have none, the second until its end.
 */
const RESTORE_MS = 32 * 60_000;
/** How long handlers take at most, from the write of a list to the last of their notifications of it. */
const HANDLED_MS = 2_000;

const START_MS = 1_790_000_000_000;

/** Simulates the world of a seed. */
export async function simulateSeed(seed: number, options: SimulateOptions = {}): Promise<SeedResult> {
  const world = new World(newScenario(seed, options.faults), options.trace ?? false);
  return await world.run();
}

class World {
  readonly #scenario: Scenario;
  readonly #time: VirtualTime;
  readonly #census = new ListenerCensus();
  readonly #cluster: ClusterModel;
  readonly #settings: ServerSettings;
  readonly #servers: ServerModel[];
  readonly #network: NetworkModel;
  readonly #programs: Program[];
  /** The programs that restart, whose numbers follow those of the others. */
  readonly #restarting: RestartingProgram[];
  readonly #recent: number[][] = [];
  readonly #notBeforeMs: number[] = [];
  /** Times without questions by reads of a served cache, as a server has refused them, by program. */
  readonly #noQuestions:
    ({ readonly by: number; readonly sinceMs: number; readonly untilMs: number } | undefined)[] = [];
  /** How many requests of each program failed to connect. */
  readonly #failures: number[] = [];
  readonly #record: WorldRecord;
  readonly #random: SeededRandom;
  /** The cluster was restored, and how its servers are since. */
  #restored: { readonly filters: boolean } | undefined;
  /** When faults stopped: later than planned, if programs were suspended. */
  #calmedMs = Infinity;
  #isStopping = false;

  constructor(scenario: Scenario, traces: boolean) {
    this.#scenario = scenario;
    this.#time = new VirtualTime(START_MS, scenario);
    this.#record = new WorldRecord({ time: this.#time, startMs: START_MS, traces });
    const random = this.#random = new SeededRandom(scenario.seed ^ 0x5eed);
    const time = this.#time;
    const cluster = this.#cluster = new ClusterModel(scenario.firstRevision);
    const settings = this.#settings = { ...scenario.settings };
    for (const { objects } of scenario.restarting) this.#fill(objects);
    for (const { atMs, action } of scenario.steps) if (atMs < 0) this.#act(action);
    this.#servers = Array.from(
      { length: scenario.servers },
      (_, index) => new ServerModel(`server ${index}`, { cluster, time, random: random.fork(), settings }),
    );
    cluster.onRevision = (revision) => {
      for (const server of this.#servers) server.follow(revision);
      for (const program of this.#programs) program.written();
    };
    const observer = this.#observer();
    this.#network = new NetworkModel({
      time,
      random: random.fork(),
      servers: this.#servers,
      settings,
      observer,
      calm: scenario.calmNetwork,
    });
    this.#programs = scenario.programs.map((config, index) => {
      this.#recent.push([]);
      this.#notBeforeMs.push(0);
      this.#failures.push(0);
      return new Program(index, config, {
        time,
        cluster,
        fetch: this.#network.fetchFor(index, config.scope, scenario),
        questions: this.#network.fetchFor(index, config.scope, {
          ...scenario,
          questions: { maxPage: config.consistentReader?.pageSize ?? 0 },
        }),
        violate: (text) => this.#violate(text),
        log: (text) => this.#log(text),
        mayDoubt: scenario.faults.includes("repeat") || scenario.faults.includes("restore"),
        isHealthy: scenario.faults.every((fault) => fault === "clock") &&
          !scenario.steps.some(({ action }) => action.do === "suspend" || action.do === "injure"),
        lastBytesMs: () => this.#network.lastBytesMs(index),
      });
    });
    this.#restarting = scenario.restarting.map((config, n) => {
      const index = scenario.programs.length + n;
      return new RestartingProgram(index, config, {
        time,
        cluster,
        fetch: this.#network.fetchFor(index, config.scope, scenario),
        questions: this.#network.fetchFor(index, config.scope, { ...scenario, questions: { maxPage: 0 } }),
        faults: scenario.faults,
        identifiesCluster: scenario.settings.identifiesCluster,
        answersProbes: scenario.calmNetwork.probes === undefined,
        isHealthy: isUndisturbed(scenario) && scenario.calmNetwork.probes === undefined,
        sendsBookmarks: scenario.settings.bookmarks && scenario.calmSettings.bookmarks,
        calmMs: START_MS + scenario.calmMs,
        violate: (text) => this.#violate(text),
        log: (text) => this.#log(text),
      });
    });
  }

  async run(): Promise<SeedResult> {
    await this.#record.live(() => this.#live(), {
      census: this.#census,
      settle: () => this.#time.settle(),
    });
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
    for (const program of [...this.#programs, ...this.#restarting]) program.start();
    for (const { atMs, action } of steps) {
      if (atMs < 0) continue;
      this.#time.schedule(() => {
        if (this.#time.worldNow() < START_MS + calmMs) this.#log(describeAction(action));
        this.#act(action);
      }, atMs);
    }
    this.#chatter();
    if (await this.#advance(calmMs)) return;
    this.#calmDown();
    this.#helpAfterRestore();
    if (await this.#outlastSilence()) return;
    if (await this.#outlastEndless()) return;
    if (await this.#converge("after faults stopped", this.#restored ? RESTORE_MS : CONVERGENCE_MS)) return;
    if (await this.#makeUpForRefusals()) return;
    if (await this.#convergeRestarting()) return;
    // Equality may be a coincidence: everything must still be live.
    for (const [index, { scope }] of this.#scenario.programs.entries()) {
      const key = `${scope.namespace || "a"}/last-${index}`;
      this.#cluster.put(scope.resource, key, { app: scope.app || "web", node: "node-1", value: 1_000 });
      this.#programs[index].call({ how: "waitForVersion", ahead: 0, key }); // a program that reads its own write
      if (index === 0) this.#cluster.delete(scope.resource, `${scope.namespace || "a"}/n0`);
    }
    if (await this.#converge("after a last write")) return;
    if (await this.#readFresh()) return;
    for (const program of this.#programs) program.checkIndices();
    const isWatched = () => this.#programs.every(({ informer }) => informer.status().outage === undefined);
    if (await this.#advance(CONVERGENCE_MS + this.#trapMs(), isWatched)) return;
    for (const program of this.#programs) program.checkOutages(this.#failures[program.index]);
    if (await this.#checkResyncs()) return;
    await this.#stop();
  }

  /** Puts objects that never change. */
  #fill(objects: number): void {
    for (let i = 0; i < objects; i++) {
      this.#cluster.put("leases", `a/n${i}`, { app: "web", node: "node-1", value: i });
    }
  }

  /** Moves time; true if the world may end. */
  async #advance(ms: number, done?: () => boolean): Promise<boolean> {
    const stop = () => this.#record.isFull || (done?.() ?? false);
    await this.#time.run(this.#time.worldNow() + ms, () => this.#check(), stop);
    return this.#record.violations.length > 0;
  }

  #check(): void {
    for (const program of this.#programs) program.check();
    for (const program of this.#restarting) program.check();
  }

  #calmDown(): void {
    this.#log("faults stop");
    this.#calmedMs = this.#time.worldNow();
    Object.assign(this.#settings, this.#scenario.calmSettings);
    this.#network.calmDown();
    for (const program of [...this.#programs, ...this.#restarting]) program.judge("strict");
    for (const server of this.#servers) {
      server.lag(5);
      server.freeze(false);
    }
    if (this.#scenario.flawsStay) return;
    for (const resource of ["pods", "services"]) {
      let value = 500;
      for (const [key, object] of [...this.#cluster.objects(resource)]) {
        if (this.#cluster.flawOf(object) === undefined) continue;
        if (this.#random.chance(0.5)) this.#cluster.delete(resource, key);
        else this.#cluster.put(resource, key, { app: "web", node: "node-1", value: value++ });
      }
    }
  }

  #restore({ back, filters, restarts, replaces }: Extract<Action, { do: "restore" }>): void {
    this.#restored = { filters };
    if (replaces) this.#cluster.replace();
    else this.#cluster.restore(back);
    for (const program of [...this.#programs, ...this.#restarting]) program.restored();
    for (const server of this.#servers) {
      server.restored({ filters });
      if (!restarts) continue;
      server.restart(500, 0, { graceful: false });
      this.#network.abandon(server);
    }
  }

  /** What no client can detect, a server reports: that its version is too old. */
  #helpAfterRestore(): void {
    const restored = this.#restored;
    if (restored === undefined) return;
    // A snapshot of a lost history that the server has passed looks like one of its own.
    for (const program of this.#restarting) {
      if (!program.knowsOfRestore) this.#network.expire(program.index);
    }
    // A write in every scope: no client can detect it without an event.
    if (!restored.filters) this.#writeToEach();
    for (const program of this.#programs) this.#helpProgram(program, restored);
  }

  /** Continuous writes pass its version while a dead connection withholds the events that would show it. */
  #requestedByVersion({ program, verb, query }: SimRequest): void {
    if (this.#restored === undefined || this.#calmedMs === Infinity) return;
    if (verb === "watch" && !query.has("sendInitialEvents")) {
      this.#helpProgram(this.#programs[program], this.#restored, query.get("resourceVersion"));
    }
  }

  /** @param version Where the watch begins that the program requests, if it requests one. */
  #helpProgram(program: Program, { filters }: { readonly filters: boolean }, version?: string | null): void {
    // With continuous writes, versions have passed its own before bookmarks are missing.
    const bookmarks = this.#settings.bookmarks && this.#scenario.chatterMs === 0;
    if (program.canNoticeRestore({ filters, bookmarks, version })) return;
    this.#log(`informer ${program.index} cannot know of the restore: its watch is too old`);
    this.#network.expire(program.index);
  }

  #writeToEach(): void {
    for (const [index, { scope }] of this.#scenario.programs.entries()) {
      const lost = this.#programs[index].keysOfLostHistory();
      const key = lost.length > 0 ? this.#random.pick(lost) : `${scope.namespace || "a"}/calm-${index}`;
      if (lost.length > 0 && this.#random.chance(0.5)) this.#cluster.delete(scope.resource, key);
      else this.#cluster.put(scope.resource, key, { app: scope.app || "web", node: "node-1", value: 1_000 });
    }
  }

  /** A permanently dead connection is a fault that lasts until the program ends it. */
  async #outlastSilence(): Promise<boolean> {
    for (let silent = this.#network.silent(); silent.length > 0; silent = this.#network.silent()) {
      const [request] = silent.sort((a, b) => this.#giveUpMs(a) - this.#giveUpMs(b));
      const untilMs = this.#giveUpMs(request);
      const isRemoved = () => !this.#network.open.has(request);
      if (await this.#advance(Math.max(0, untilMs - this.#time.worldNow()), isRemoved)) return true;
      if (!isRemoved()) {
        this.#violate(
          `informer ${request.program} holds on to a dead connection: request ${request.id}, a ${request.verb}, ` +
            `asked for at ${clockText(request.startMs - START_MS).trim()}`,
        );
        return true;
      }
    }
    return false;
  }

  /**
   * A streamed list that started during faults may never end, whatever servers do from then on.
   * As everything in flight arrives when faults stop, and what a server lags behind a little
   * later, its last initial event may have come then.
   */
  async #outlastEndless(): Promise<boolean> {
    const calmMs = this.#calmedMs;
    const endless = this.#network.watches().filter(({ startMs, query }) =>
      startMs < calmMs && query.get("sendInitialEvents") === "true"
    );
    const isOver = (request: SimRequest) => !this.#network.open.has(request) || request.connection!.sawEnd;
    const areOver = () => endless.every(isOver);
    const untilMs = calmMs + LONGEST_LAG_MS + STREAM_END_MS;
    if (await this.#advance(Math.max(0, untilMs - this.#time.worldNow()), areOver)) return true;
    const held = endless.find((request) => !isOver(request));
    if (held === undefined) return false;
    this.#violate(
      `informer ${held.program} holds on to a streamed list that does not end: request ${held.id}`,
    );
    return true;
  }

  /** When a program must have ended a silent connection. */
  #giveUpMs({ verb, query, connection, status, ...request }: SimRequest): number {
    // The program could not count while it was suspended.
    const { wokeMs, suspendedMs } = this.#time;
    const startMs = Math.max(request.startMs, wokeMs);
    if (verb === "list") return Math.max(connection?.lastDeliveryMs ?? 0, startMs) + LIST_LIMIT_MS;
    if (connection === undefined || status !== 200) return startMs + OPEN_LIMIT_MS;
    if (query.get("sendInitialEvents") === "true" && !connection.sawEnd) {
      return Math.max(connection.lastDeliveryMs, startMs) + STREAM_SILENCE_MS;
    }
    const seconds = Number(query.get("timeoutSeconds"));
    const timeoutMs = request.startMs + seconds * 1_000 + suspendedMs + TIMEOUT_GRACE_MS;
    // A watch that was dead when it resumed is ended at the next check.
    if ((connection.silentSinceMs ?? Infinity) <= wokeMs) return Math.min(timeoutMs, wokeMs + STALL_LOOK_MS);
    return connection.bookmarks === 0
      ? timeoutMs
      : Math.min(timeoutMs, Math.max(connection.lastDeliveryMs, wokeMs) + BOOKMARK_SILENCE_MS);
  }

  async #converge(when: string, longestMs: number = CONVERGENCE_MS): Promise<boolean> {
    const startMs = this.#time.worldNow();
    const limitMs = longestMs + this.#trapMs();
    const differs = () => this.#programs.find((program) => program.difference() !== undefined);
    if (await this.#advance(limitMs, () => differs() === undefined)) return true;
    // A watch that was opened late, after a delay between two tries, has its first bookmark later.
    if (differs()?.waitsForBookmark === true) {
      if (await this.#advance(CONVERGENCE_MS, () => differs()?.waitsForBookmark !== true)) return true;
    }
    const wrong = differs();
    if (wrong !== undefined) {
      const status = JSON.stringify(wrong.informer.status());
      this.#violate(
        `informer ${wrong.index} does not equal the server ${limitMs / 1_000} s ${when}: ` +
          `${wrong.difference()}; ${status}`,
      );
      return true;
    }
    this.#log(`stores equal the server ${this.#time.worldNow() - startMs} ms ${when}`);
    const late = () => this.#programs.find((program) => program.handlerDifference() !== undefined);
    if (await this.#advance(HANDLERS_MS, () => late() === undefined)) return true;
    const behind = late();
    if (behind === undefined) return false;
    this.#violate(`a handler does not equal its store ${when}: ${behind.handlerDifference()}`);
    return true;
  }

  /** What was killed, and loaded what it had saved, equals the server too. */
  async #convergeRestarting(): Promise<boolean> {
    const wrong = () => this.#restarting.find((program) => program.difference() !== undefined);
    const hasRefused = this.#restarting.some((program) => program.hasRefused);
    const base = this.#restored ? RESTORE_MS : CONVERGENCE_MS + BOOKMARK_SILENCE_MS;
    const limitMs = Math.max(base, hasRefused ? RESTORE_MS : 0) + this.#trapMs();
    if (await this.#advance(limitMs, () => wrong() === undefined)) return true;
    const one = wrong();
    if (one === undefined) return false;
    this.#violate(`restarting ${one.index} does not equal the server: ${one.difference()}; ${one.status}`);
    return true;
  }

  /** Reads that require what the API server has are answered, where it can prove that. */
  async #readFresh(): Promise<boolean> {
    const { calmSettings: { bookmarks, knowsWatch }, calmNetwork } = this.#scenario;
    if (!bookmarks || !knowsWatch || Object.keys(calmNetwork).length > 0 || this.#restored) return false;
    // No event shows that version.
    this.#cluster.tick();
    const failed = new Set(this.#programs);
    for (const program of this.#programs) {
      program.readsFresh().then((isFresh) => isFresh && failed.delete(program));
    }
    if (await this.#advance(FRESH_MS, () => failed.size === 0)) return true;
    for (const { index } of failed) this.#violate(`informer ${index}: a consistent read is not answered`);
    return failed.size > 0;
  }

  /** An object that was refused for a while is listed again, even if it never changes again. */
  async #makeUpForRefusals(): Promise<boolean> {
    const lacking = () =>
      this.#programs.find((program) => program.difference({ atLast: true }) !== undefined);
    if (lacking() === undefined) return false;
    this.#log("what was refused for a while has to be listed again");
    const longestMs = Math.max(...this.#programs.map((program) => program.longestRelistMs)) + this.#trapMs();
    if (await this.#advance(longestMs, () => lacking() === undefined)) return true;
    const wrong = lacking();
    if (wrong === undefined) return false;
    this.#violate(
      `informer ${wrong.index} never lists again what it refused for a while: ${
        wrong.difference({ atLast: true })
      }`,
    );
    return true;
  }

  /** Handlers with a resync period receive resyncs while watching, as long as nothing else happens. */
  async #checkResyncs(): Promise<boolean> {
    if (!this.#scenario.calmSettings.knowsWatch) return false;
    // A program that was suspended is late with its resyncs.
    if (this.#time.wokeMs > 0) return false;
    const windowMs = Math.max(...this.#programs.map((program) => program.resyncWindowMs));
    if (windowMs === 0) return false;
    for (let attempt = 0; attempt < 3; attempt++) {
      // What handlers receive of a list, which is applied in steps, is of an earlier time.
      if (await this.#advance(HANDLED_MS)) return true;
      const { requests } = this.#network;
      const isQuiet = this.#programs.every(({ informer }) => informer.status().phase === "watching");
      for (const program of this.#programs) program.watchResyncs();
      if (await this.#advance(windowMs)) return true;
      if (!isQuiet || this.#network.requests > requests) continue; // a new cycle restarts its resync period
      for (const program of this.#programs) program.checkResyncs(windowMs);
      break;
    }
    return this.#record.violations.length > 0;
  }

  /** How long a list takes, or a stream is silent, where that is permanent. */
  #trapMs(): number {
    const { calmSettings: { initialEvents, bookmarks }, calmNetwork, chatterMs } = this.#scenario;
    const { streams = "pass", longestAnswerMs, slowListMs = 0 } = calmNetwork;
    // Without writes the stream is silent, which shows sooner: of a list that follows a quarantine, say,
    // which may begin at the end of the time that it has.
    const isEndless = initialEvents === "endless" || initialEvents === "ignored" || !bookmarks;
    return (isEndless ? chatterMs > 0 ? STREAM_END_MS : STREAM_SILENCE_MS : 0) +
      (streams === "unanswered" ? OPEN_LIMIT_MS : 0) +
      (streams === "refused" || streams === "tooManySeconds" ? STREAM_REFUSALS_MS : 0) +
      (streams === "reset" || longestAnswerMs !== undefined ? STREAM_TRIES_MS : 0) +
      MOST_SLOW_LISTS * slowListMs;
  }

  /** Writes continuously, into the scope of each program. */
  #chatter(): void {
    const { chatterMs, programs } = this.#scenario;
    if (chatterMs === 0) return;
    let value = 2_000;
    const write = () => {
      if (this.#isStopping) return;
      for (const { scope } of programs) {
        const key = `${scope.namespace || "a"}/chatter`;
        this.#cluster.put(scope.resource, key, { app: scope.app || "web", node: "node-1", value: value++ });
      }
      this.#time.schedule(write, chatterMs);
    };
    write();
  }

  async #stop(): Promise<void> {
    this.#isStopping = true;
    this.#log("stop");
    const { most } = this.#census;
    if (most > MOST_LISTENERS) {
      this.#violate(`one signal has ${most} listeners: those of ended lists, watches or waits?`);
    }
    let stopped = 0;
    const all = [...this.#programs, ...this.#restarting];
    for (const program of all) {
      program.stop().then(() => stopped++, (error) => this.#violate(`stop failed: ${error}`));
    }
    await this.#advance(15_000, () => stopped === all.length);
    if (stopped < all.length) this.#violate("an informer does not stop");
    if (this.#time.programTimers > 0) {
      this.#violate(`${this.#time.programTimers} timers are left after the stop`);
    }
    for (const program of this.#programs) program.checkStopped();
    for (const { id, verb } of this.#network.open) {
      this.#violate(`request ${id}, a ${verb}, is left open after the stop`);
    }
    const { requests } = this.#network;
    await this.#advance(LEFT_AFTER_MS);
    if (this.#network.requests > requests) this.#violate("requests are made after the stop");
    for (const program of this.#programs) program.checkLeft();
  }

  #act(action: Action): void {
    const isBefore = this.#servers === undefined;
    switch (action.do) {
      case "put":
        return this.#cluster.put(action.resource, action.key, action);
      case "delete":
        return this.#cluster.delete(action.resource, action.key);
      case "tick":
        for (let i = 0; i < action.count; i++) this.#cluster.tick();
        return;
      case "addHandler":
        return this.#programs[action.program].addHandler(action.handler);
      case "removeHandler":
        return this.#programs[action.program].removeHandler();
      case "call":
        return this.#programs[action.program].call(action.call);
      case "heal":
        for (const { connection } of this.#network.open) connection?.heal();
        return;
    }
    // Actions that cause faults do nothing once faults have stopped.
    if (isBefore || this.#time.worldNow() >= START_MS + this.#scenario.calmMs) return;
    switch (action.do) {
      case "setClock":
        return this.#time.shiftWallClock(action.byMs);
      case "suspend":
        return this.#time.suspend(action.ms, action);
      case "bookmark":
        for (const server of this.#servers) server.bookmarkAll();
        return;
      case "compact":
        return this.#cluster.compact(this.#cluster.revision - action.keep);
      case "forget":
        return this.#servers[action.server].forget();
      case "lag":
        return this.#servers[action.server].lag(action.ms);
      case "freeze":
        return this.#servers[action.server].freeze(action.frozen);
      case "restart": {
        const server = this.#servers[action.server];
        server.restart(action.downMs, action.startingMs, action);
        return this.#network.abandon(server);
      }
      case "network":
        Object.assign(this.#network.state, action.state);
        return;
      case "refuse":
        this.#network.state.refusals[action.verb] = action.with;
        this.#network.state.refusalChance = action.chance;
        return;
      case "restore":
        return this.#restore(action);
      case "settings":
        Object.assign(this.#settings, action.settings);
        return;
      case "judge":
        for (const program of [...this.#programs, ...this.#restarting]) program.judge(action.mood);
        return;
      case "injure":
        return this.#network.injure(action.with, action.chance);
      case "failWatches": {
        const status = newStatus(action.code, action.reason, "an error in the stream");
        for (const server of this.#servers) server.failWatches(status, action.chance);
      }
    }
  }

  #restartingOf(program: number): RestartingProgram | undefined {
    return this.#restarting[program - this.#programs.length];
  }

  #observer(): NetworkObserver {
    return {
      onRequest: (request) => {
        const { id, program, verb, query, isQuestion } = request;
        this.#log(`informer ${program}: ${isQuestion ? "question" : "request"} ${id}: ${verb} ${query}`);
        const nowMs = this.#time.worldNow();
        const restarting = this.#restartingOf(program);
        if (restarting !== undefined) {
          if (!isQuestion) restarting.requested(query);
          return; // after a kill, the program does not know what the one before had received
        }
        if (isQuestion) {
          const leftMs = (this.#noQuestions[program]?.untilMs ?? 0) - nowMs;
          // The body of the refusal may be on its way.
          const isRefused = [...this.#network.open].every((one) =>
            one === request || !one.isQuestion || one.program !== program
          );
          if (leftMs <= 0 || !isRefused) return;
          return this.#violate(`informer ${program}: a question ${leftMs} ms before Retry-After allows it`);
        }
        const recent = this.#recent[program];
        if (nowMs < this.#notBeforeMs[program]) {
          this.#violate(
            `informer ${program} asks ${this.#notBeforeMs[program] - nowMs} ms before Retry-After allows it`,
          );
        }
        if (!query.has("continue")) {
          while (recent.length > 0 && recent[0] <= nowMs - RATE_WINDOW_MS) recent.shift();
          recent.push(nowMs);
          if (recent.length > MOST_REQUESTS) {
            this.#violate(`informer ${program} made ${recent.length} requests in ${RATE_WINDOW_MS} ms`);
            recent.length = 0;
          }
        }
        this.#programs[program].requested(query);
        this.#requestedByVersion(request);
      },
      onAnswer: ({ id, program, query, isQuestion }, status, retryAfterMs) => {
        this.#log(
          `request ${id}: ${status === 0 ? "failed" : `answered ${status}`}${
            retryAfterMs === undefined ? "" : `, Retry-After ${retryAfterMs} ms`
          }`,
        );
        const restarting = this.#restartingOf(program);
        if (restarting !== undefined) {
          return isQuestion ? restarting.answeredQuestion(status) : restarting.answered(status, query);
        }
        if (isQuestion) {
          if (retryAfterMs !== undefined) {
            const sinceMs = this.#time.worldNow();
            this.#noQuestions[program] = { by: id, sinceMs, untilMs: sinceMs + retryAfterMs };
          }
          return;
        }
        if (status === 0) this.#failures[program]++;
        if (status === 410 || status === 504) this.#programs[program].unavailable();
        if (retryAfterMs !== undefined) this.#notBeforeMs[program] = this.#time.worldNow() + retryAfterMs;
      },
      onGivenUp: ({ id, program, verb, isQuestion }) => {
        if (isQuestion) {
          const refused = this.#noQuestions[program];
          const readMs = this.#time.worldNow() - (refused?.sinceMs ?? 0);
          if (refused?.by === id && readMs < REFUSAL_MS) this.#noQuestions[program] = undefined;
          return;
        }
        if (this.#restartingOf(program) !== undefined) return;
        const isFine = !isUndisturbed(this.#scenario) || this.#programs[program].isUnavailable;
        if (this.#isStopping || isFine) return;
        this.#violate(`informer ${program} cancels request ${id}, a ${verb}, without a fault`);
      },
      onUnavailable: ({ program, isQuestion }) => {
        const restarting = this.#restartingOf(program);
        if (restarting !== undefined) restarting.unavailable();
        else if (!isQuestion) this.#programs[program].unavailable();
      },
      log: (text) => this.#log(text),
    };
  }

  #violate(text: string): void {
    this.#record.violate(text);
  }

  #log(text: string): void {
    this.#record.log(text);
  }
}

/** Whether no connection may be ended: no faults, except wall clocks that are set back. */
function isUndisturbed({ faults, steps }: Scenario): boolean {
  if (faults.some((fault) => fault !== "clock")) return false;
  return steps.every(({ action }) =>
    action.do !== "suspend" && action.do !== "injure" && (action.do !== "setClock" || action.byMs < 0)
  );
}

/** A failed seed as text: what was wrong, the script, and the command that repeats it. */
export function describeFailure(result: SeedResult, command: string): string {
  const lines = [
    `seed ${result.seed} failed:`,
    ...result.violations.map((text) => `  ${text}`),
    "the script:",
    ...describeScenario(result.scenario).split("\n").map((text) => `  ${text}`),
  ];
  if (result.trace.length > 0) lines.push("the trace:", ...result.trace.map((text) => `  ${text}`));
  lines.push(`repeat it: ${command}`);
  return lines.join("\n");
}
