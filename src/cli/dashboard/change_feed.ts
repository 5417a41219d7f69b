/** The latest changes, as lines for people. */

import { podPrinter } from "../../hono/tables/pod_printer.ts";
import type { StoreChange, StoreEvent } from "../../informer/events.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import type { Clock } from "../../util/clock.ts";
import { visibleText } from "../../util/logger.ts";
import type { FeedEntry } from "./dashboard_message.ts";
import { isCore, type ReflectedResource } from "../cluster/reflect.ts";

export interface ChangeFeedOptions {
  readonly clock: Clock;
  readonly limit?: number;
  /** Called synchronously with every change; must be fast. */
  readonly onChange?: (resource: ReflectedResource) => void;
  /** Receives the error when an object of an unexpected shape cannot be described. */
  readonly onError?: (error: unknown) => void;
}

const LONGEST_KEY = 200;
const LONGEST_NOTE = 200;

// A relist after an outage may have thousands of changes, more than a person reads.
const MAX_LINES_OF_A_LIST = 30;

/** The number of seconds that {@linkcode ChangeFeed.changesPerSecond} covers. */
const RATE_WINDOW_SECONDS = 60;

/** Observes informers, and keeps the last changes and the number of changes in each of the last seconds. */
export class ChangeFeed {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #onChange: (resource: ReflectedResource) => void;
  readonly #onError: (error: unknown) => void;
  readonly #unobserve: (() => void)[] = [];
  // Oldest first; cut to the limit when it is twice as long, so that a change costs O(1).
  #entries: FeedEntry[] = [];
  #seq = 0;
  /** The number of changes in second `s` is at index `s % RATE_WINDOW_SECONDS`. */
  readonly #rates: number[] = new Array<number>(RATE_WINDOW_SECONDS).fill(0);
  #rateSecond = 0;

  constructor(resources: readonly ReflectedResource[], options: ChangeFeedOptions) {
    this.#clock = options.clock;
    this.#limit = options.limit ?? 100;
    this.#onChange = options.onChange ?? (() => {});
    this.#onError = options.onError ?? (() => {});
    this.#rateSecond = Math.floor(this.#clock.now() / 1_000);
    for (const resource of resources) {
      this.#unobserve.push(resource.informer.observe((event) => this.#observe(resource, event)));
    }
  }

  /** The last entry's number; 0 before the first. */
  get lastSeq(): number {
    return this.#seq;
  }

  /** The kept entries after number `seq`, oldest first. */
  since(seq: number): readonly FeedEntry[] {
    const missing = Math.min(this.#seq - seq, this.#limit, this.#entries.length);
    return missing <= 0 ? [] : this.#entries.slice(-missing);
  }

  /** The number of changes in each of the last 60 whole seconds, the oldest first. */
  changesPerSecond(): number[] {
    this.#advanceRates();
    const rates: number[] = [];
    for (let s = this.#rateSecond - RATE_WINDOW_SECONDS + 1; s <= this.#rateSecond; s++) {
      rates.push(this.#rates[modulo(s)]);
    }
    return rates;
  }

  close(): void {
    for (const unobserve of this.#unobserve.splice(0)) unobserve();
  }

  #observe(resource: ReflectedResource, event: StoreEvent<KubernetesObject>): void {
    if (event.type === "bookmark") return;
    if (event.type === "replaced") this.#addList(resource, event.changes);
    else {
      this.#count(1);
      this.#addChange(resource, event);
    }
    this.#onChange(resource);
  }

  #addList(resource: ReflectedResource, changes: readonly StoreChange<KubernetesObject>[]): void {
    const isFirst = !resource.informer.hasSynced();
    if (!isFirst && changes.length <= MAX_LINES_OF_A_LIST) {
      for (const change of changes) this.#addChange(resource, change);
    }
    if (!isFirst) this.#count(changes.length);
    const count = `${changes.length} ${changes.length === 1 ? "object" : "objects"}`;
    this.#add({ type: "listed", resource: resource.name, key: isFirst ? count : `relist, ${count} changed` });
  }

  #addChange(resource: ReflectedResource, change: StoreChange<KubernetesObject>): void {
    const note = change.type === "deleted" ? undefined : this.#describe(resource, change.object);
    const line = { type: change.type, resource: resource.name, key: visibleText(change.key, LONGEST_KEY) };
    this.#add(note === undefined ? line : { ...line, note: visibleText(note, LONGEST_NOTE) });
  }

  /** Returns no note if the object cannot be described. */
  #describe(resource: ReflectedResource, object: KubernetesObject): string | undefined {
    try {
      return describe(resource, object, this.#clock.now());
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
  }

  #add(line: Omit<FeedEntry, "seq" | "timeMs">): void {
    this.#entries.push({ seq: ++this.#seq, timeMs: this.#clock.now(), ...line });
    if (this.#entries.length >= this.#limit * 2) this.#entries = this.#entries.slice(-this.#limit);
  }

  #count(changes: number): void {
    this.#advanceRates();
    this.#rates[modulo(this.#rateSecond)] += changes;
  }

  #advanceRates(): void {
    const second = Math.floor(this.#clock.now() / 1_000);
    const passed = Math.min(second - this.#rateSecond, RATE_WINDOW_SECONDS);
    for (let i = 1; i <= passed; i++) this.#rates[modulo(this.#rateSecond + i)] = 0;
    if (second > this.#rateSecond) this.#rateSecond = second;
    // After a long silence the loop above has cleared every second.
  }
}

function modulo(second: number): number {
  return second % RATE_WINDOW_SECONDS;
}

// The fields may have any type: the body of an object is not validated.
interface Described extends KubernetesObject {
  readonly spec?: { readonly replicas?: unknown; readonly unschedulable?: unknown } | null;
  readonly status?: { readonly readyReplicas?: unknown } | null;
  readonly reason?: unknown;
  readonly message?: unknown;
}

function describe(resource: ReflectedResource, object: KubernetesObject, nowMs: number): string | undefined {
  const { spec, status, reason, message } = object as Described;
  const { group, resource: plural } = resource.resource;
  if (isCore(resource, "pods")) {
    // As `kubectl get pods` prints it.
    const [, ready, word] = podPrinter.cells(object, nowMs);
    return `${word} ${ready}`;
  }
  if (isCore(resource, "nodes")) return spec?.unschedulable === true ? "cordoned" : undefined;
  if (isCore(resource, "events")) {
    const parts = [reason, message].filter((part) => typeof part === "string");
    return parts.length === 0 ? undefined : parts.map((part) => part.slice(0, 120)).join(": ");
  }
  if (group === "apps" && typeof spec?.replicas === "number" && plural !== "daemonsets") {
    const ready = status?.readyReplicas;
    return `${typeof ready === "number" ? ready : 0}/${spec.replicas} ready`;
  }
  return undefined;
}
