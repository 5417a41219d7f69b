/**
 * A reader of the tree's nodes, as any Kubernetes client, and what its answers must be.
 * @module
 */

import { type ClusterModel, keyOfObject, type SimObject, stateOf } from "../cluster_model.ts";
import { SELECTORS } from "../indices.ts";
import { SeededRandom } from "../seeded_random.ts";
import type { VirtualTime } from "../virtual_time.ts";
import { Link, type LinkState, type Target } from "./link.ts";
import type { Gap, TreeNode } from "./node.ts";
import {
  differenceAt,
  hadState,
  isSameObject,
  type Matches,
  nextEvent,
  RESOURCE,
  type WatchLine,
} from "./origin.ts";

/** What a reader is like. */
export interface TreeReaderConfig {
  readonly name: string;
  readonly region: number;
  /** `""` for all. */
  readonly namespace: string;
  /** The index in `SELECTORS` that the reader uses; -1 for none. */
  readonly selector: number;
  /** Whether it follows by watch, or lists and gets again and again. */
  readonly follows: boolean;
  /** How long it stays on one watch, or between two reads, in milliseconds. */
  readonly hopMs: number;
  /** How many objects a page may have. */
  readonly limit: number;
  /** Whether its watches must end where events are missing. */
  readonly isStrict: boolean;
  /** How long it may take to read a chunk of a watch. */
  readonly readMs: number;
  readonly seed: number;
}

/** What a reader needs of its world. */
export interface TreeReaderWorld {
  readonly time: VirtualTime;
  readonly cluster: ClusterModel;
  /** The nodes that have all of its selection. */
  readonly nodes: readonly TreeNode[];
  readonly isInDoubt: () => boolean;
  readonly between: (target: Target) => LinkState;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
}

/** What was true when a request was sent. */
interface Sent {
  readonly text: string;
  readonly node: TreeNode;
  readonly history: number;
  /** The least version of the answer, and of one of the same life of the node. */
  readonly least: number;
  readonly leastOfLife: number;
  /** Whether it must have everything that was acknowledged before, unless it has a warning. */
  readonly isConsistent: boolean;
  readonly revision: number;
  /**
   * Whether its server was restored shortly before: a slow reader may read of the lost history long after.
   */
  readonly isInDoubt: boolean;
  /** The events that may be missing. */
  readonly gaps: readonly Gap[];
}

/** A list, however it came. */
interface Listed {
  readonly version: number;
  readonly objects: Map<string, SimObject>;
  readonly isStale: boolean;
}

const LISTS = ["plain", "plain", "zero", "atLeast", "pages", "exact", "stream", "streamZero"] as const;
type ListKind = (typeof LISTS)[number];

const ANSWER_MS = 15_000;
/** The server sends a bookmark each 30 s. */
const SILENCE_MS = 45_000;
const RETRY_MS = 1_000;
const MOST_READS = 25;
// Enough for a tree that lasts hours.
const MOST_HOPS = 12;
// Made once: a stack costs more than a request.
const ENOUGH = new Error("the reader has read enough");
const NO_ANSWER = new TypeError("no answer");
const REFUSALS = [410, 503, 504];

/** Reads from node to node, until it is stopped. */
export class TreeReader {
  readonly config: TreeReaderConfig;
  readonly link: Link;
  readonly #world: TreeReaderWorld;
  readonly #random: SeededRandom;
  readonly #matches: Matches;
  readonly #base: string;
  readonly #selector: string;
  readonly #stop = new AbortController();
  /** The last version that it read of each history of each node. */
  readonly #seenAt = new Map<string, number>();
  #seen = 0;
  #node: TreeNode;
  #known = new Map<string, SimObject>();
  #position = 0;
  /** The list in place of events that the reader is within: its content is of no single version. */
  #leap: Gap | undefined;
  #isFollowing = false;
  #wasRestored = false;
  #reads = 0;
  #hops = 0;
  /** Whether it still may choose another node, or read without need. */
  isRestless = true;
  /** Whether it reads as fast as it can. */
  isHurried = false;

  constructor(config: TreeReaderConfig, world: TreeReaderWorld) {
    this.config = config;
    this.#world = world;
    const random = this.#random = new SeededRandom(config.seed);
    const { time, log } = world;
    this.link = new Link({ name: config.name, time, random: random.fork(), log, between: world.between });
    const [text, matches] = SELECTORS[config.selector] ?? ["", () => true];
    const { namespace } = config;
    this.#selector = text;
    this.#matches = ({ metadata }) =>
      (namespace === "" || metadata.namespace === namespace) && matches(metadata.labels ?? {});
    this.#base = `/api/v1${namespace === "" ? "" : `/namespaces/${namespace}`}/${RESOURCE}`;
    this.#node = random.pick(world.nodes);
  }

  /** Reads until it is stopped. */
  async run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      if (this.isRestless && this.#random.chance(0.5)) this.#node = this.#random.pick(this.#world.nodes);
      if (this.config.follows) await this.#follow();
      else if (this.isRestless && this.#reads < MOST_READS) await this.#poll();
      await this.#pause(this.config.follows ? RETRY_MS : this.config.hopMs);
    }
    this.#isFollowing = false;
  }

  /** Ends it. */
  stop(): void {
    this.#stop.abort();
  }

  /** The origin was restored: what it has seen may be of a lost history. */
  forget(): void {
    this.#wasRestored = true;
    this.#seenAt.clear();
    this.#seen = 0;
    this.#leap = undefined;
  }

  /** The reader lists again: nothing can show it that its version is of a lost history. */
  helpAfterRestore(): void {
    this.forget();
    this.#position = 0;
    for (const link of this.links) link.cut("reset");
  }

  /** How what it follows differs from the origin. */
  difference(): string | undefined {
    if (!this.config.follows) return undefined;
    const { name } = this.config;
    if (!this.#isFollowing) return `${name} does not follow`;
    const { cluster } = this.#world;
    const found = differenceAt(cluster, this.#known, {
      version: cluster.revision,
      matches: this.#matches,
    });
    return found && `${name} at ${this.#node.name}: ${found}`;
  }

  /** Lists once more, from one node, everything that was written; whether that was the answer. */
  async readsFresh(node: TreeNode): Promise<boolean> {
    const listed = await this.#list(node, "plain");
    return listed !== undefined && !listed.isStale;
  }

  async #poll(): Promise<void> {
    this.#reads++;
    const node = this.#node;
    if (this.#random.chance(0.3)) await this.#get(node);
    else await this.#list(node, this.#random.pick(LISTS));
  }

  /** Lists, and watches from there, from node to node. */
  async #follow(): Promise<void> {
    const kind = this.#random.pick(LISTS);
    if (kind.startsWith("stream")) {
      if (await this.#watch({ initial: kind }) === "expired") return;
    } else {
      const listed = await this.#list(this.#node, kind);
      if (listed === undefined) return;
      this.#known = listed.objects;
      this.#position = listed.version;
      this.#leap = undefined;
    }
    while (this.#position > 0 && !this.#stop.signal.aborted) {
      const how = await this.#watch({});
      if (how === "expired") return;
      if (how === "failed") await this.#pause(RETRY_MS);
      if (!this.isRestless || !this.#random.chance(0.5)) continue;
      this.#node = this.#random.pick(this.#world.nodes);
    }
  }

  #sent(node: TreeNode, path: string, { least = 0, mayBeOld = false }): Sent {
    const { cluster, log } = this.#world;
    const text = `${this.config.name}: ${path} of ${node.name} sent at ${cluster.revision}`;
    log(text);
    return {
      text,
      node,
      history: node.histories,
      least,
      leastOfLife: this.#seenAt.get(`${node.name} ${node.histories}`) ?? 0,
      isConsistent: !mayBeOld && node.isConsistent,
      revision: cluster.revision,
      isInDoubt: this.#world.isInDoubt(),
      gaps: this.config.isStrict ? [] : node.gaps,
    };
  }

  async #list(node: TreeNode, kind: ListKind): Promise<Listed | undefined> {
    if (kind.startsWith("stream")) return await this.#streamedList(node, kind);
    const selector = `labelSelector=${encodeURIComponent(this.#selector)}`;
    const version = kind === "zero"
      ? "&resourceVersion=0"
      : kind === "atLeast" && this.#seen > 0
      ? `&resourceVersion=${this.#seen}&resourceVersionMatch=NotOlderThan`
      : kind === "exact" && this.#seen > 0
      ? `&resourceVersion=${this.#seen}&resourceVersionMatch=Exact`
      : "";
    const limit = kind === "pages" || (kind === "exact" && this.#random.chance(0.5))
      ? `&limit=${this.config.limit}`
      : "";
    const path = `${this.#base}?${selector}${version}`;
    const sent = this.#sent(node, path + limit, {
      least: kind === "atLeast" ? this.#seen : 0,
      mayBeOld: version !== "",
    });
    const objects = new Map<string, SimObject>();
    let listed: Listed | undefined;
    let token = "";
    let at = node;
    do {
      const page = token === "" ? `${path}${limit}` : `${this.#base}?${selector}${limit}&continue=${token}`;
      const answer = await this.#fetch(at, page);
      if (answer === undefined) return undefined;
      const { status, headers, text } = answer;
      if (status !== 200) return this.#refused(sent, status, text);
      const { metadata, items } = JSON.parse(text) as {
        metadata: { resourceVersion: string; continue?: string };
        items: SimObject[];
      };
      listed ??= {
        version: Number(metadata.resourceVersion),
        objects,
        isStale: headers.has("Warning"),
      };
      if (Number(metadata.resourceVersion) !== listed.version) {
        this.#wrong(sent, `a page is at ${metadata.resourceVersion}, the first one at ${listed.version}`);
      }
      if (limit !== "" && items.length > this.config.limit) this.#wrong(sent, `a page of ${items.length}`);
      for (const object of items) {
        const key = keyOfObject(object);
        if (objects.has(key)) this.#wrong(sent, `it has ${key} twice`);
        objects.set(key, object);
      }
      token = metadata.continue ?? "";
      if (token === "") break;
      await this.#pause(this.#random.pick([0, 0, 20, 700]));
      // Another cache of the same cluster has the same states, unless
      // one of them has those of a lost history.
      if (this.#random.chance(0.2) && !this.#world.isInDoubt()) at = this.#random.pick(this.#world.nodes);
    } while (!this.#stop.signal.aborted);
    if (token !== "") return undefined;
    if (version.endsWith("Exact") && listed!.version !== this.#exactOf(version)) {
      this.#wrong(sent, `its version is ${listed!.version}`);
    }
    return this.#judged(sent, listed!);
  }

  #exactOf(query: string): number {
    return Number(new URLSearchParams(query).get("resourceVersion"));
  }

  /** The initial events of a watch, and no more of it. */
  async #streamedList(node: TreeNode, kind: ListKind): Promise<Listed | undefined> {
    const reader = new TreeReader({ ...this.config, seed: this.#random.int(0, 2 ** 31) }, this.#world);
    reader.#node = node;
    reader.#seen = this.#seen;
    for (const [name, version] of this.#seenAt) reader.#seenAt.set(name, version);
    reader.link.state = this.link.state;
    this.#companions.add(reader);
    const { histories } = node;
    const how = await reader.#watch({ initial: kind, onlyInitial: true });
    this.#companions.delete(reader);
    if (how !== "done") return undefined;
    this.#saw(node, reader.#position, histories);
    return { version: reader.#position, objects: reader.#known, isStale: reader.#isStale };
  }

  /** The readers that read for this one. */
  readonly #companions = new Set<TreeReader>();
  #isStale = false;

  /** The reader's links, and those of its companions. */
  get links(): Link[] {
    return [this.link, ...[...this.#companions].flatMap((one) => one.links)];
  }

  async #get(node: TreeNode): Promise<void> {
    const namespace = this.config.namespace || this.#random.pick(["a", "b"]);
    const name = `n${this.#random.int(0, 4)}`;
    const query = this.#random.pick(["", "", "?resourceVersion=0"]);
    const path = `/api/v1/namespaces/${namespace}/${RESOURCE}/${name}`;
    const sent = this.#sent(node, path + query, { mayBeOld: query !== "" });
    const answer = await this.#fetch(node, path + query);
    if (answer === undefined) return;
    const { status, headers, text } = answer;
    if (status !== 200 && status !== 404) return void this.#refused(sent, status, text);
    const { cluster, isInDoubt } = this.#world;
    if (isInDoubt()) return;
    const object = status === 404 ? undefined : JSON.parse(text) as SimObject;
    const key = `${namespace}/${name}`;
    const must = sent.isConsistent && !headers.has("Warning");
    for (let version = must ? sent.revision : 0; version <= cluster.revision; version++) {
      const state = cluster.stateAt(RESOURCE, version).get(key);
      if (stateOf(state) !== stateOf(object)) continue;
      if (object !== undefined && !isSameObject(object, state!)) break;
      return;
    }
    this.#wrong(sent, `it has ${stateOf(object)}: ${text.slice(0, 400)}`);
  }

  /** Watches; `"expired"`: it must list again; `"done"`: it may continue from its version. */
  async #watch(
    { initial, onlyInitial = false }: { readonly initial?: ListKind; readonly onlyInitial?: boolean },
  ): Promise<"expired" | "failed" | "done"> {
    const node = this.#node;
    const version = initial === "stream"
      ? ""
      : initial === "streamZero"
      ? "&resourceVersion=0"
      : `&resourceVersion=${this.#position}`;
    const path = `${this.#base}?labelSelector=${encodeURIComponent(this.#selector)}&watch=true` +
      "&allowWatchBookmarks=true" + version +
      (initial ? "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" : "");
    const sent = this.#sent(node, path, { mayBeOld: initial !== "stream" });
    const { time } = this.#world;
    const stopping = new AbortController();
    const { signal } = this.#stop;
    const end = () => stopping.abort(ENOUGH);
    signal.addEventListener("abort", end, { once: true });
    let timer = time.schedule(end, ANSWER_MS);
    const isOver = () => stopping.signal.aborted;
    const { hopMs, readMs } = this.config;
    const hop = onlyInitial ? undefined : time.schedule(() => {
      if (this.isRestless && this.#hops++ < MOST_HOPS) end();
    }, hopMs);
    let outcome: "expired" | "failed" | "done" = "failed";
    try {
      const response = await this.link.fetchTo(() => node)(`http://node${path}`, {
        signal: stopping.signal,
        ...(this.config.isStrict && { headers: { Prefer: "handling=strict" } }),
      });
      if (response.status !== 200) {
        this.#refused(sent, response.status, await response.text());
        return initial || response.status === 410 ? "expired" : "failed";
      }
      this.#isStale = response.headers.has("Warning");
      const gathered = initial === undefined ? undefined : new Map<string, SimObject>();
      this.#isFollowing = gathered === undefined;
      let isInitial = gathered !== undefined;
      const reader = response.body!.getReader();
      const decoder = new TextDecoder();
      let text = "";
      outcome = "done";
      for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
        time.clearTimeout(timer);
        timer = time.schedule(end, SILENCE_MS);
        text += decoder.decode(chunk.value, { stream: true });
        const lines = text.split("\n");
        text = lines.pop()!;
        for (const line of lines) {
          if (isOver()) break;
          const event = JSON.parse(line) as WatchLine;
          if (event.type === "ERROR") {
            outcome = this.#failed(sent, event);
            continue;
          }
          if (!isInitial) {
            if (this.#isOfLostHistory(event)) return "expired";
            this.#apply(sent, event);
            continue;
          }
          if (event.type !== "BOOKMARK") {
            if (event.type !== "ADDED") this.#wrong(sent, `an initial event is ${event.type}`);
            gathered!.set(keyOfObject(event.object), event.object);
            continue;
          }
          isInitial = false;
          const at = Number(event.object.metadata.resourceVersion);
          const listed = { version: at, objects: gathered!, isStale: this.#isStale };
          this.#judged(sent, listed);
          this.#known = gathered!;
          this.#position = at;
          this.#leap = undefined;
          this.#isFollowing = true;
          if (onlyInitial) return "done";
        }
        if (readMs > 0 && !this.isHurried) await this.#pause(readMs);
      }
      return isInitial && outcome === "done" ? "failed" : outcome;
    } catch (error) {
      if (!(error instanceof TypeError) && !isOver()) throw error;
      return outcome === "done" && !isOver() ? "failed" : outcome;
    } finally {
      this.#isFollowing = false;
      end();
      time.clearTimeout(timer);
      time.clearTimeout(hop);
      signal.removeEventListener("abort", end);
    }
  }

  #failed(sent: Sent, { object }: WatchLine): "expired" | "failed" {
    const { code, message } = object as unknown as { code: number; message: string };
    this.#world.log(`${sent.text}: ERROR ${code} ${message}`);
    if (!REFUSALS.includes(code)) this.#wrong(sent, `a watch ends with ${code} ${message}`);
    return code === 410 ? "expired" : "failed";
  }

  /** After a restore a bookmark shows that the reader is ahead. */
  #isOfLostHistory({ type, object }: WatchLine): boolean {
    return type === "BOOKMARK" && this.#world.isInDoubt() &&
      Number(object.metadata.resourceVersion) < this.#position;
  }

  /**
   * Applies one event: the next one of the origin for its selection,
   * or one of a list that took the place of events.
   */
  #apply(sent: Sent, event: WatchLine): void {
    const { cluster, isInDoubt } = this.#world;
    const { type, object } = event;
    const version = Number(object.metadata.resourceVersion);
    if (isInDoubt()) return this.#fold(sent, event, version);
    if (this.#isKnown(event, version)) return;
    if (this.#leap !== undefined && version > this.#leap.through) this.#land(sent, version);
    if (version > cluster.revision) {
      return this.#wrong(sent, `an event is at ${version}, the origin at ${cluster.revision}`);
    }
    const next = this.#next(sent, version);
    const isNext = type === "BOOKMARK"
      ? version >= this.#position && (next === undefined || next.revision > version)
      : next !== undefined && next.revision === version && next.type === type &&
        keyOfObject(next.object) === keyOfObject(object) &&
        next.object.metadata.uid === object.metadata.uid &&
        (type === "DELETED" || isSameObject(object, next.object));
    if (!isNext && !this.#leaps(sent, event, { version, next: next?.revision })) {
      return this.#wrong(
        sent,
        `at ${this.#position} it receives ${type} ${keyOf(event)} ${stateOf(object)}, and not ${
          next === undefined ? "nothing" : `${next.type} ${keyOf(next)} ${stateOf(next.object)}`
        }`,
      );
    }
    this.#fold(sent, event, version);
  }

  /**
   * Whether it is of a list that a node has read at the version which it had of the lost history: watches
   * from that version receive what differs, as they may be of either.
   */
  #isKnown({ type, object }: WatchLine, version: number): boolean {
    if (!this.#wasRestored || type === "BOOKMARK" || version !== this.#position) return false;
    const known = this.#known.get(keyOfObject(object));
    return stateOf(known) === stateOf(type === "DELETED" ? undefined : object);
  }

  /**
   * The next event of the origin, after lists that took the place of events in which nothing was left of it.
   */
  #next(sent: Sent, version: number): ReturnType<typeof nextEvent> {
    const { cluster } = this.#world;
    const matches = this.#matches;
    for (;;) {
      const next = nextEvent(cluster, { after: this.#position, through: cluster.revision, matches });
      if (next === undefined || next.revision >= version || this.#leap !== undefined) return next;
      const gap = sent.gaps.find(({ from, through }) =>
        from < next.revision && next.revision <= through && through < version
      );
      if (gap === undefined) return next;
      const found = differenceAt(cluster, this.#known, { version: gap.through, matches });
      if (found !== undefined) return next;
      this.#position = gap.through;
    }
  }

  /** Whether an event may be one of a list that took the place of events. */
  #leaps(
    sent: Sent,
    { type, object }: WatchLine,
    { version, next = this.#position }: { readonly version: number; readonly next?: number | undefined },
  ): boolean {
    const { cluster } = this.#world;
    if (this.#leap === undefined) {
      this.#leap = sent.gaps.find(({ from, through }) =>
        ((from <= this.#position && this.#position <= through) || (from < next && next <= through)) &&
        version <= through
      );
    }
    const leap = this.#leap;
    if (leap === undefined || version > leap.through) return false;
    return type === "BOOKMARK" || type === "DELETED" ||
      hadState(cluster, object, { from: leap.from, through: leap.through });
  }

  /** The list that took the place of events is over: it must be at its version now. */
  #land(sent: Sent, version: number): void {
    const { cluster } = this.#world;
    for (;;) {
      const { from, through } = this.#leap!;
      const found = differenceAt(cluster, this.#known, { version: through, matches: this.#matches });
      if (found === undefined) {
        this.#leap = undefined;
        this.#position = Math.max(this.#position, through);
        return;
      }
      // Another list has cut it short, or it was that one from the start.
      const longer = sent.gaps.find((gap) => gap.from <= through && gap.through > through);
      if (longer === undefined) {
        this.#leap = undefined;
        return this.#wrong(sent, `after a list that took the place of events, before ${version}: ${found}`);
      }
      this.#leap = { from: Math.min(from, longer.from), through: longer.through };
      if (version <= longer.through) return;
    }
  }

  #fold({ node, history }: Sent, { type, object }: WatchLine, version: number): void {
    if (type === "DELETED") this.#known.delete(keyOfObject(object));
    else if (type !== "BOOKMARK") this.#known.set(keyOfObject(object), object);
    // A bookmark at the reader's own version says that there is nothing newer, and not how far the node is.
    const hasShown = type !== "BOOKMARK" || version > this.#position;
    this.#position = this.#world.isInDoubt() ? version : Math.max(this.#position, version);
    // What the reader knew from elsewhere is not what this node has shown.
    if (hasShown) this.#saw(node, version, history);
  }

  /** Checks a list. */
  #judged(sent: Sent, listed: Listed): Listed | undefined {
    const { cluster, isInDoubt } = this.#world;
    if (sent.isInDoubt || isInDoubt()) return listed;
    const { version, objects, isStale } = listed;
    const least = Math.max(
      sent.least,
      // A request that was on its way may have been answered by the next life.
      sent.node.histories === sent.history ? sent.leastOfLife : 0,
      sent.isConsistent && !isStale ? sent.revision : 0,
    );
    if (version > cluster.revision) {
      this.#wrong(sent, `it is at ${version}, the origin at ${cluster.revision}`);
      return undefined;
    }
    if (version < least) {
      this.#wrong(sent, `it is at ${version}, and must be at ${least} at least`);
      return undefined;
    }
    const found = differenceAt(cluster, objects, { version, matches: this.#matches });
    if (found !== undefined) this.#wrong(sent, found);
    this.#saw(sent.node, version, sent.history);
    return listed;
  }

  /** What a life of a node has shown may arrive after its end: the next one need not know it. */
  #saw(node: TreeNode, version: number, history: number): void {
    if (this.#world.isInDoubt()) return;
    this.#seen = Math.max(this.#seen, version);
    this.#seenAt.set(`${node.name} ${history}`, version);
  }

  #refused(sent: Sent, status: number, text: string): undefined {
    this.#world.log(`${sent.text}: ${status}`);
    if (!REFUSALS.includes(status)) this.#wrong(sent, `it receives ${status}: ${text}`);
    return undefined;
  }

  #wrong(sent: Sent, text: string): void {
    this.#world.violate(`${sent.text}: ${text}`);
  }

  /** A whole answer; `undefined` if none came. */
  async #fetch(
    node: TreeNode,
    path: string,
  ): Promise<{ readonly status: number; readonly headers: Headers; readonly text: string } | undefined> {
    const { time } = this.#world;
    const stopping = new AbortController();
    const end = () => stopping.abort(NO_ANSWER);
    this.#stop.signal.addEventListener("abort", end, { once: true });
    const timer = time.schedule(end, ANSWER_MS);
    try {
      const response = await this.link.fetchTo(() => node)(`http://node${path}`, { signal: stopping.signal });
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch (error) {
      if (error instanceof TypeError) return undefined;
      throw error;
    } finally {
      time.clearTimeout(timer);
      this.#stop.signal.removeEventListener("abort", end);
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { time } = this.#world;
    await new Promise<void>((resolve) => {
      const done = () => {
        time.clearTimeout(timer);
        this.#stop.signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = time.schedule(done, ms);
      this.#stop.signal.addEventListener("abort", done, { once: true });
    });
  }
}

function keyOf({ type, object }: WatchLine): string {
  return type === "BOOKMARK" ? "" : keyOfObject(object);
}
