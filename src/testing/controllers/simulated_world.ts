/** One simulated world: a cluster, copies of a program with controllers, and what a plan does to them. */

import type { ManagerOptions } from "../../controller/manager.ts";
import { StatusError } from "../../meta/status.ts";
import { sleep } from "../../util/abort.ts";
import { settle } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { FakeClock } from "../fake_clock.ts";
import { answerStatus, connectionRefused, connectionReset } from "../faults.ts";
import { InMemoryApiServer } from "../in_memory_api_server.ts";
import { seededRandom } from "../seeded_random.ts";
import type { CustomResource } from "../served_resources.ts";
import { collectGarbage, isOwn, targetOf, untilIdle } from "./controller_world.ts";
import type { Plan, TimedStep, WriteFault } from "./plan.ts";
import {
  ControllerProcess,
  type DefineControllers,
  type ProcessRequest,
  type ProcessSend,
} from "./process.ts";

/** Chances of an {@linkcode Act}, which the seed decides. */
export interface Chance {
  /** A number from 0 (included) to 1 (excluded). */
  random(): number;
  /** Picks one of these; `undefined` if there are none. */
  pick<T>(from: readonly [T, ...T[]]): T;
  pick<T>(from: readonly T[]): T | undefined;
  /** The memory outside of the cluster and the program; empty at the start of each world. */
  readonly memory: Map<string, unknown>;
}

/** An act of a user on the cluster. A refusal by the server is no failure. */
export type Act = (server: InMemoryApiServer, chance: Chance) => void;

/**
 * Looks at the cluster. One of `eventually` returns `false` or throws while it does not hold; one of
 * `never` returns `true` or throws when it happens.
 * @param memory The memory outside of the cluster and the program; empty at the start of each world.
 */
export type Check = (server: InMemoryApiServer, memory: Map<string, unknown>) => boolean | void;

/** Options of {@linkcode simulateController}. */
export interface SimulationOptions {
  /** The acts of users: one at a time, with objects and values that the seed decides. */
  readonly act: Readonly<Record<string, Act>>;
  /** Checks of the world when every fault has ended and nothing is left to do. */
  readonly eventually?: Readonly<Record<string, Check>>;
  /** Checks after every write of what must not happen. */
  readonly never?: Readonly<Record<string, Check>>;
  /** Makes the objects that are there at the start. */
  readonly start?: (server: InMemoryApiServer) => void;
  /** The resources besides the built-in ones. */
  readonly customResources?: readonly CustomResource[];
  /** How many worlds; 200 by default. */
  readonly worlds?: number;
  /** The seed of the first world, a whole number from 1; by default another one in each run. */
  readonly from?: number;
  /** Options of the `Manager` of each copy of the program; leader election is the simulation's. */
  readonly manager?: Partial<ManagerOptions>;
}

export interface WorldOptions extends Required<Omit<SimulationOptions, "worlds" | "from">> {
  readonly define: DefineControllers;
}

export interface Violation {
  /** The failed check, such as `never "two of one name"`: the same text for the same fault. */
  readonly what: string;
  readonly message: string;
}

export interface Outcome {
  readonly violation: Violation | undefined;
  readonly story: readonly string[];
  readonly writes: number;
}

// A world that is not settled after this time never will be.
const SETTLES_WITHIN_MS = 900_000;
// How long a server that has lost its connection still shows the
// past, after its watches have caught up at another.
const STALE_MS = 10_000;
// How long faults continue after the last step.
const LONGEST_REST_MS = 12_000;
// How long a supervisor waits before it starts a program again that has ended.
const RESTART_MS = 1_000;

export async function runWorld(plan: Plan, options: WorldOptions): Promise<Outcome> {
  const world = new SimulatedWorld(plan, options);
  try {
    return await world.run();
  } finally {
    world.close();
    await settle(); // nothing of it runs beside the next one
  }
}

class SimulatedWorld {
  readonly #plan: Plan;
  readonly #options: WorldOptions;
  readonly #clock = new FakeClock(Date.UTC(2026, 0, 1));
  readonly #startMs = this.#clock.monotonicNow();
  readonly #server: InMemoryApiServer;
  readonly #memory = new Map<string, unknown>();
  readonly #random: () => number;
  readonly #story: string[] = [];
  readonly #copies: (ControllerProcess | undefined)[];
  readonly #starts: number[];
  readonly #writeFaults = new Map<number, WriteFault>();
  /** The versions of the past, newest last. */
  readonly #versions: { readonly ms: number; readonly version: string }[] = [];
  /** The version at which an API server stopped to follow, by the copy that asks it. */
  readonly #stale = new Map<number, string>();
  #isAway = false;
  #isHealed = false;
  #writes = 0;
  #violation: Violation | undefined;

  constructor(plan: Plan, options: WorldOptions) {
    this.#plan = plan;
    this.#options = options;
    this.#random = seededRandom(plan.seed ^ 0x5bd1e995);
    this.#server = new InMemoryApiServer({
      clock: this.#clock,
      customResources: options.customResources,
      initialEvents: plan.streamsLists ? "serve" : "refuse",
    });
    this.#copies = Array.from({ length: plan.copies }, () => undefined);
    this.#starts = this.#copies.map(() => 0);
    for (const step of plan.steps) if (step.kind === "write") this.#writeFaults.set(step.nth, step);
  }

  async run(): Promise<Outcome> {
    this.#options.start(this.#server);
    this.#check();
    for (const copy of this.#copies.keys()) this.#start(copy);
    await this.#clock.advance(100);
    const timed = this.#plan.steps.filter((step): step is TimedStep => step.kind !== "write")
      .sort((a, b) => a.atMs - b.atMs);
    for (const step of timed) {
      await this.#advanceTo(step.atMs + 100);
      if (this.#violation !== undefined) break;
      this.#do(step);
    }
    // Faults end by themselves where nothing new begins; only a part of them, so that others end together.
    const lastMs = Math.max(0, ...timed.map((step) => step.atMs + 2 * ("forMs" in step ? step.forMs : 0)));
    await this.#advanceTo(Math.min(lastMs, (timed.at(-1)?.atMs ?? 0) + LONGEST_REST_MS));
    if (this.#violation === undefined) await this.#settle();
    return { violation: this.#violation, story: this.#story, writes: this.#writes };
  }

  close(): void {
    for (const copy of this.#copies) copy?.kill();
    this.#server.close();
  }

  async #advanceTo(ms: number): Promise<void> {
    const leftMs = this.#startMs + ms - this.#clock.monotonicNow();
    if (leftMs <= 0) return;
    await this.#clock.advance(leftMs);
    // The garbage collector of a cluster takes its time.
    if (this.#random() < 0.3) this.#collectGarbage();
  }

  /** Ends all faults, and waits until what should hold holds. */
  async #settle(): Promise<void> {
    await this.#clock.advance(2_000);
    this.#isHealed = true;
    this.#isAway = false;
    this.#stale.clear();
    for (const [copy, process] of this.#copies.entries()) {
      if (!process?.isRunning) this.#start(copy);
      else {
        process.releaseEvents();
        process.thaw();
      }
    }
    this.#note("everything works again");
    const isIdle = await untilIdle(this.#server, this.#clock, () => this.#running, SETTLES_WITHIN_MS);
    this.#check();
    if (this.#violation !== undefined) return;
    if (!isIdle) {
      const minutes = SETTLES_WITHIN_MS / 60_000;
      this.#violation = {
        what: "it never comes to rest",
        message: `keys still wait or are tried again ${minutes} minutes after everything works again`,
      };
      return;
    }
    for (const [name, check] of Object.entries(this.#options.eventually)) {
      this.#hold(`eventually ${JSON.stringify(name)}`, check, (result) => result !== false);
    }
  }

  get #running(): ControllerProcess[] {
    return this.#copies.filter((copy): copy is ControllerProcess => copy?.isRunning ?? false);
  }

  #start(copy: number): void {
    const name = this.#plan.copies === 1 ? "program" : `program ${copy + 1}`;
    const start = ++this.#starts[copy];
    this.#note(`${name} starts${this.#stale.has(copy) ? " on an API server that is behind" : ""}`);
    const leader = { lease: "simulated", namespace: "default", identity: `${copy + 1}-${start}` };
    const process = new ControllerProcess({
      name,
      define: this.#options.define,
      memory: this.#memory,
      clock: this.#clock,
      fetch: this.#server.fetch,
      random: this.#random,
      manager: { ...this.#options.manager, ...(this.#plan.copies > 1 && { leader }) },
      network: (request, send) => this.#network(copy, request, send),
    });
    this.#copies[copy] = process;
    void process.ended.then((error) => {
      if (this.#copies[copy] !== process) return;
      this.#note(`${name} ends: ${error === undefined ? "stopped" : errorMessage(error)}`);
      this.#clock.setTimeout(() => {
        if (this.#copies[copy] === process) this.#start(copy);
      }, RESTART_MS);
    });
  }

  #do(step: TimedStep): void {
    if (step.kind === "act") return this.#act(step.name, step.seed);
    if (step.kind === "compact") {
      this.#note("the server forgets its history");
      return this.#server.compact();
    }
    if (step.kind === "server away") {
      this.#note(`every watch breaks, and nothing listens for ${step.forMs} ms`);
      this.#isAway = step.forMs > 0;
      this.#server.closeWatches({ reset: true });
      return this.#later(step.forMs, () => this.#isAway = false);
    }
    const process = this.#copies[step.copy];
    if (!process?.isRunning) return;
    if (step.kind === "kill") return this.#kill(step.copy, step.forMs, step.lagMs);
    const isFrozen = step.kind === "freeze";
    this.#note(
      isFrozen
        ? `${process.name} is frozen for ${step.forMs} ms`
        : `what ${process.name} watches is ${step.forMs} ms late`,
    );
    process.holdEvents();
    if (isFrozen) process.freeze();
    this.#later(step.forMs, () => {
      if (isFrozen) process.thaw();
      const isLost = step.kind === "delay events" && step.isLost;
      if (isLost) {
        this.#note(`what ${process.name} watched is lost, and the server forgets its history`);
        this.#server.compact();
      }
      process.releaseEvents({ isLost });
    });
  }

  /** Does something after a while, unless everything works again by then. */
  #later(ms: number, callback: () => void): void {
    this.#clock.setTimeout(() => {
      if (!this.#isHealed) callback();
    }, ms);
  }

  #act(name: string, seed: number): void {
    const random = seededRandom(seed);
    const note = this.#noteLater(name);
    try {
      const result: unknown = this.#options.act[name](this.#server, {
        random,
        pick: <T>(from: readonly T[]) => from[Math.floor(random() * from.length)],
        memory: this.#memory,
      });
      requireNoPromise(`act ${JSON.stringify(name)}`, result);
      note("");
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      note(`: ${error.message}`);
    }
    this.#check();
  }

  #kill(copy: number, forMs: number, lagMs = 0): void {
    const process = this.#copies[copy]!;
    this.#note(`${process.name} is killed`);
    process.kill();
    // The program connects to another server next, which lost its connection to the store some time ago.
    const sinceMs = this.#clock.monotonicNow() - lagMs;
    const then = this.#versions.findLast(({ ms }) => ms <= sinceMs) ?? this.#versions[0];
    if (lagMs > 0 && then !== undefined) this.#stale.set(copy, then.version);
    else this.#stale.delete(copy);
    this.#later(forMs, () => {
      if (this.#copies[copy] !== process) return;
      this.#start(copy);
      if (lagMs === 0) return;
      this.#copies[copy]!.holdEvents();
      this.#later(forMs, () => this.#copies[copy]?.releaseEvents());
      this.#later(forMs + STALE_MS, () => this.#stale.delete(copy));
    });
  }

  async #network(copy: number, request: ProcessRequest, send: ProcessSend): Promise<Response> {
    if (this.#isAway) throw connectionRefused(request.url.href);
    const { method, url, init } = request;
    if (method === "GET") return await send(this.#behind(copy, url), init);
    const target = targetOf(url);
    if (target === undefined || !isOwn(target)) return await send(url, init);
    const { resource, name, subresource } = target;
    const text = `${this.#copies[copy]?.name}: ${method} ${resource} ${name}${
      subresource && ` ${subresource}`
    }`;
    this.#writes++;
    const { fault, status = 0, delayMs = 0 } = this.#isHealed
      ? { fault: undefined }
      : this.#writeFaults.get(this.#writes) ?? { fault: undefined };
    switch (fault) {
      case "die before":
        this.#note(`${text}: not sent`);
        this.#kill(copy, delayMs);
        break;
      case "lose request":
        this.#note(`${text}: the connection breaks before it arrives`);
        throw connectionReset();
      case "refuse": {
        const code = method === "POST" && status === 409 ? 500 : status;
        this.#note(`${text}: the server refuses it (${code})`);
        const refuse = answerStatus(code);
        return await refuse(new Request(url), () => Promise.reject(), {
          signal: new AbortController().signal,
          clock: this.#clock,
        });
      }
      case "meddle":
        if (name !== "" && this.#server.get(resource, name) !== undefined) {
          this.#note(`another client annotates ${resource} ${name}`);
          this.#server.patch(resource, name, {
            metadata: { annotations: { meddled: String(this.#writes) } },
          });
        }
        break;
      case "delay":
        this.#note(`${text}: is ${delayMs} ms on its way`);
        await sleep(delayMs, { clock: this.#clock, ...(init.signal && { signal: init.signal }) });
        break;
    }
    const response = await send(url, init);
    this.#note(`${text} -> ${response.status}`);
    this.#check();
    if (fault === "die after") {
      this.#kill(copy, delayMs);
      return await new Promise(() => {});
    }
    if (fault !== "lose answer") return response;
    this.#note("the connection breaks before its answer arrives");
    await response.body?.cancel();
    throw connectionReset();
  }

  /** The request to a server that is behind: its cache lists an earlier state. */
  #behind(copy: number, url: URL): URL {
    const version = this.#stale.get(copy);
    const { searchParams } = url;
    if (version === undefined || searchParams.has("watch") || searchParams.get("resourceVersion") !== "0") {
      return url;
    }
    const changed = new URL(url);
    changed.searchParams.set("resourceVersion", version);
    changed.searchParams.set("resourceVersionMatch", "Exact");
    return changed;
  }

  #collectGarbage(): void {
    if (!collectGarbage(this.#server, this.#running)) return;
    this.#note("the garbage collector deletes what has no owner");
    this.#check();
  }

  /** Looks at the cluster after a change. */
  #check(): void {
    this.#versions.push({ ms: this.#clock.monotonicNow(), version: this.#server.resourceVersion });
    for (const [name, check] of Object.entries(this.#options.never)) {
      this.#hold(`never ${JSON.stringify(name)}`, check, (result) => result !== true);
    }
  }

  #hold(what: string, check: Check, isWell: (result: unknown) => boolean): void {
    if (this.#violation !== undefined) return;
    let message = what.startsWith("never") ? "it has happened" : "it does not hold";
    let result: unknown;
    let isThrown = false;
    try {
      result = check(this.#server, this.#memory);
    } catch (error) {
      isThrown = true;
      message = errorMessage(error);
    }
    requireNoPromise(what, result);
    if (!isThrown && isWell(result)) return;
    this.#violation = { what, message };
    this.#note(`${what}: ${message}`);
  }

  #note(text: string): void {
    this.#noteLater(text)("");
  }

  /** A line at this place of the story, whose end comes later. */
  #noteLater(text: string): (end: string) => void {
    const seconds = (this.#clock.monotonicNow() - this.#startMs) / 1_000;
    const at = this.#story.push(`${seconds.toFixed(3).padStart(9)} s  ${text}`) - 1;
    return (end) => this.#story[at] += end;
  }
}

// A promise is neither true nor false, and what comes after it would happen at any time.
function requireNoPromise(what: string, result: unknown): void {
  if (!(result instanceof Promise)) return;
  result.catch(() => {});
  throw new TypeError(`Cannot simulate ${what}: the function returns a promise; let it do all at once`);
}
