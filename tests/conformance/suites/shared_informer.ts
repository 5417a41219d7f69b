/**
 * The suite `shared_informer`: one shared informer over a scripted
 * source, compared notification by notification.
 * @module
 */

import {
  DeletedFinalStateUnknown,
  FilteringResourceEventHandler,
  type HandlerRegistration,
  type IndexFunc,
  type KubernetesObject,
  type ResourceEventHandler,
  SharedIndexInformer,
  silentLogger,
  StatusError,
} from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { QueueContext } from "@listwatch/cache/informer";
import { DeltaFIFO, type Queue } from "@listwatch/cache/queue";
import type { ListerWatcher, ListWatchContext, WatchItem } from "@listwatch/cache/reflector";
import type { HoldText } from "../../../src/text/object_text_reader.ts";
import type { CaseHolding } from "../holdings.ts";
import { canonical, type Case } from "./harness.ts";
import { ScriptClock } from "./script_clock.ts";

/** A shorter period of a handler's resyncs is raised to it. */
const LEAST_RESYNC_PERIOD_MS = 1_000;
const NO_TIMEOUT_MS = 1e12;

type Labels = Readonly<Record<string, string>>;

interface Item extends KubernetesObject {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly labels: Labels;
    readonly resourceVersion: string;
  };
}

interface Notification {
  readonly type: "add" | "update" | "delete";
  readonly key: string;
  readonly newRV?: string;
  readonly oldRV?: string;
  readonly oldUID?: string;
  readonly newUID?: string;
  readonly isInInitialList?: boolean;
  readonly tombstone?: boolean;
  readonly labels?: Labels;
}

interface Do {
  readonly op: string;
  readonly key: string;
  readonly labels?: Labels;
  readonly uid?: string;
  readonly missed?: boolean;
  readonly on?: boolean;
  readonly handler: string;
  readonly registration: string;
  readonly resyncPeriodMs?: number;
  readonly filter?: { readonly label: string; readonly equals: string };
  readonly indexer: string;
  readonly ms: number;
}

interface TraceCase {
  readonly name: string;
  readonly informer: {
    readonly resyncPeriodMs: number;
    readonly indexers: readonly string[];
    readonly transform?: { readonly stripLabel: string };
  };
  readonly steps: readonly { readonly do: Do; readonly after: Readonly<Record<string, unknown>> }[];
}

/** Options of a run. */
interface RunOptions {
  /** Makes the informer's queue; its default if absent. */
  readonly queue?: (context: QueueContext<Item>) => Queue<Item>;
  /**
   * Whether only the order of each object's notifications counts, not that across objects; false by default.
   */
  readonly anyOrderAcrossKeys?: boolean;
}

/**
 * Plays a case with a `DeltaFIFO`, which keeps the order of each object's changes only. A case in
 * which the server deletes an object that the store does not hold is left out: a `DeltaFIFO` drops
 * such a delete, the recorded queue hands it on.
 *
 * @returns Whether the case was played.
 */
export async function runSharedInformerCaseWithDeltaFIFO(
  caze: Case,
  holding: CaseHolding,
): Promise<boolean> {
  if (deletesUnknown(caze as unknown as TraceCase)) return false;
  await play(caze, holding, {
    queue: (context) => new DeltaFIFO<Item>({ ...context, emitDeltaTypeReplaced: true }),
    anyOrderAcrossKeys: true,
  });
  return true;
}

function deletesUnknown(trace: TraceCase): boolean {
  let stored = new Set<string>();
  for (const { do: todo, after } of trace.steps) {
    const notified = Object.values(after.notifications as Notifications ?? {}).flat();
    if (todo.op !== "relist" && notified.some((n) => n.type === "delete" && !stored.has(n.key))) {
      return true;
    }
    stored = new Set((after.store as [string, string][]).map(([key]) => key));
  }
  return false;
}

/** The in-memory source that the cases are written for. */
class Source implements ListerWatcher<Item> {
  readonly description = "items";
  readonly #objects = new Map<string, Item>();
  readonly #log: { readonly rv: number; readonly item: WatchItem<Item> }[] = [];
  #rv = 100;
  #watch: Stream | undefined;
  listFails = false;
  failedLists = 0;

  get isWatched(): boolean {
    return this.#watch !== undefined;
  }

  /** How many objects it sent as text, and how many as objects. */
  readonly sent = { texts: 0, objects: 0 };

  list(
    _options: unknown,
    { holdText }: ListWatchContext,
  ): Promise<{ metadata: { resourceVersion: string }; items: Item[] }> {
    if (this.listFails) {
      this.failedLists++;
      return Promise.reject(new StatusError(newStatus(500, "InternalError", "list is failing")));
    }
    const keys = [...this.#objects.keys()].sort();
    const items = keys.map((key) => this.#copyOf(this.#objects.get(key)!, holdText));
    return Promise.resolve({ metadata: { resourceVersion: String(this.#rv) }, items });
  }

  watch(
    options: { readonly resourceVersion?: string; readonly sendInitialEvents?: boolean },
    { signal, holdText }: ListWatchContext,
  ): Promise<Stream> {
    if (options.sendInitialEvents) {
      return Promise.reject(new StatusError(newStatus(422, "Invalid", "sendInitialEvents is not offered")));
    }
    const stream = new Stream((item) =>
      item.type === "ADDED" || item.type === "MODIFIED" || item.type === "DELETED"
        ? { ...item, object: this.#copyOf(item.object, holdText) }
        : structuredClone(item)
    );
    const from = Number(options.resourceVersion);
    for (const { rv, item } of this.#log) if (rv > from) stream.push(item);
    this.#watch = stream;
    signal.addEventListener("abort", () => {
      stream.end();
      if (this.#watch === stream) this.#watch = undefined;
    });
    return Promise.resolve(stream);
  }

  add({ key, labels = {}, uid = "", missed }: Do): void {
    const [namespace, name] = key.split("/");
    this.#change("ADDED", { metadata: { namespace, name, uid, labels, resourceVersion: "" } }, missed);
  }

  modify({ key, labels = {}, missed }: Do): void {
    const object = this.#objects.get(key)!;
    this.#change("MODIFIED", { metadata: { ...object.metadata, labels } }, missed);
  }

  delete({ key, missed }: Do): void {
    this.#change("DELETED", this.#objects.get(key)!, missed);
  }

  resend({ key }: Do): void {
    this.#watch!.push({ type: "MODIFIED", object: this.#objects.get(key)! });
  }

  relist(): void {
    const watch = this.#watch!;
    this.#watch = undefined;
    watch.push({ type: "ERROR", object: newStatus(410, "Expired", "too old resource version") });
  }

  reconnect(): void {
    const watch = this.#watch!;
    this.#watch = undefined;
    watch.end();
  }

  #change(type: "ADDED" | "MODIFIED" | "DELETED", base: Item, missed = false): void {
    const object: Item = { metadata: { ...base.metadata, resourceVersion: String(++this.#rv) } };
    const key = `${object.metadata.namespace}/${object.metadata.name}`;
    if (type === "DELETED") this.#objects.delete(key);
    else this.#objects.set(key, object);
    const item: WatchItem<Item> = { type, object };
    this.#log.push({ rv: this.#rv, item });
    if (!missed) this.#watch?.push(item);
  }

  /** What is sent of an object: its text to a reader that holds texts, or a copy. */
  #copyOf(object: Item, holdText: HoldText | undefined): Item {
    if (holdText === undefined) {
      this.sent.objects++;
      return structuredClone(object);
    }
    const read = holdText.reader.read(JSON.stringify(object));
    if (!holdText.reader.isText(read)) throw new Error(`read as no object: ${JSON.stringify(object)}`);
    this.sent.texts++;
    return holdText.hold(read.text, { metadata: object.metadata }, read) as Item;
  }
}

/** A watch that is fed by hand. */
class Stream implements AsyncIterable<readonly WatchItem<Item>[]> {
  #items: WatchItem<Item>[] = [];
  #ended = false;
  #wake: () => void = () => {};
  readonly #copyOf: (item: WatchItem<Item>) => WatchItem<Item>;

  constructor(copyOf: (item: WatchItem<Item>) => WatchItem<Item>) {
    this.#copyOf = copyOf;
  }

  push(item: WatchItem<Item>): void {
    this.#items.push(this.#copyOf(item));
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<readonly WatchItem<Item>[]> {
    for (;;) {
      if (this.#items.length > 0) {
        const batch = this.#items;
        this.#items = [];
        yield batch;
      } else if (this.#ended) {
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }
}

/** Plays one case; throws at the first step whose state differs from the record. */
export async function runSharedInformerCase(caze: Case, holding: CaseHolding): Promise<void> {
  await play(caze, holding);
}

async function play(caze: Case, holding: CaseHolding, options: RunOptions = {}): Promise<void> {
  const trace = caze as unknown as TraceCase;
  const run = new Run(trace, holding, options);
  try {
    for (const [index, step] of trace.steps.entries()) {
      const actual = await run.step(step.do);
      for (const [property, expected] of Object.entries(step.after)) {
        const wanted = property === "notifications"
          ? run.inOrder(expected as Notifications, step.do)
          : expected;
        const got = property === "notifications"
          ? run.inOrder(actual.notifications as Notifications, step.do)
          : actual[property];
        if (canonical(wanted) !== canonical(got)) {
          throw new Error(
            `${trace.name}, step ${index} ${JSON.stringify(step.do)}: ${property}: ` +
              `expected ${canonical(wanted)}, got ${canonical(got)}`,
          );
        }
      }
      for (const property of ["error", "isStopped"]) {
        if (!(property in step.after) && actual[property]) {
          throw new Error(`${trace.name}, step ${index} ${JSON.stringify(step.do)}: unexpected ${property}`);
        }
      }
    }
    run.checkHeld();
  } finally {
    await run.stop();
  }
}

type Notifications = Readonly<Record<string, readonly Notification[]>>;

/** One informer under test, with its source, clock and recorders. */
class Run {
  readonly #source = new Source();
  readonly #clock: ScriptClock;
  readonly #informer: SharedIndexInformer<Item, string>;
  readonly #hasTransform: boolean;
  readonly #anyOrderAcrossKeys: boolean;
  /** Whether the texts of the source are held: a transform and a queue of the user's own receive objects. */
  readonly #holdsTexts: boolean;
  readonly #indexers: string[];
  readonly #recorders = new Map<string, ResourceEventHandler<Item>>();
  readonly #timesUsed = new Map<string, number>();
  readonly #registrations = new Map<string, HandlerRegistration>();
  readonly #removed = new Map<string, HandlerRegistration>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #notifications: Record<string, Notification[]> = {};

  constructor(
    { informer, steps }: TraceCase,
    { storage }: CaseHolding,
    { queue, anyOrderAcrossKeys = false }: RunOptions,
  ) {
    const periods = [informer, ...steps.map((step) => step.do)].map(({ resyncPeriodMs = 0 }) =>
      resyncPeriodMs
    );
    this.#clock = new ScriptClock([...periods, LEAST_RESYNC_PERIOD_MS]);
    this.#anyOrderAcrossKeys = anyOrderAcrossKeys;
    const label = informer.transform?.stripLabel;
    this.#hasTransform = label !== undefined;
    this.#holdsTexts = queue === undefined && !this.#hasTransform;
    this.#indexers = [...informer.indexers];
    this.#informer = new SharedIndexInformer<Item, string>(this.#source, {
      resyncPeriodMs: informer.resyncPeriodMs,
      indexers: Object.fromEntries(informer.indexers.map((name) => [name, indexFunc(name)])),
      clock: this.#clock,
      logger: silentLogger,
      // No watch of a script ends by itself: upstream none does, however long it is silent.
      reflector: {
        backoff: { nextDelayMs: () => 0 },
        bookmarkSilenceMs: Infinity,
        minWatchTimeoutMs: NO_TIMEOUT_MS,
      },
      ...(label === undefined ? {} : { transform: stripLabel(label) }),
      ...(queue === undefined ? {} : { queue }),
      ...(storage === undefined ? {} : { storage }),
    });
  }

  async step(todo: Do): Promise<Record<string, unknown>> {
    this.#notifications = {};
    let error = false;
    try {
      await this.#perform(todo);
    } catch {
      error = true;
    }
    await this.#quiet();
    return {
      ...(error ? { error } : {}),
      notifications: this.#notifications,
      store: this.#informer.indexer.list().map((item) => [keyOf(item), item.metadata.resourceVersion])
        .sort(([a], [b]) => byteOrder(a, b)),
      index: Object.fromEntries(
        this.#indexers.map((name) => [
          name,
          Object.fromEntries(
            this.#informer.indexer.listIndexFuncValues(name).map((value) => [
              value,
              this.#informer.indexer.indexKeys(name, value),
            ]),
          ),
        ]),
      ),
      hasSynced: this.#informer.hasSynced(),
      registrationSynced: Object.fromEntries(
        [...this.#registrations].map(([name, registration]) => [name, registration.hasSynced()]),
      ),
      lastSyncResourceVersion: this.#informer.lastSyncResourceVersion(),
      ...(this.#informer.isStopped() ? { isStopped: true } : {}),
    };
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#quiet();
    await this.#running;
  }

  /** Whether the informer held all that the source has, as text if it is to. */
  checkHeld(): void {
    const { texts, objects } = this.#source.sent;
    const others = this.#holdsTexts ? objects : texts;
    if (others > 0) throw new Error(`the source sent ${texts} texts and ${objects} objects`);
  }

  /** Brings the notifications of each handler into the order in which they are compared. */
  inOrder(all: Notifications, todo: Do): Notifications {
    return Object.fromEntries(
      Object.entries(all).map(([handler, list]) => {
        if (this.#anyOrderAcrossKeys) list = list.toSorted((a, b) => byteOrder(a.key, b.key));
        if ((this.#timesUsed.get(handler) ?? 0) > 1) {
          const text = (n: Notification) => [n.key, n.type, n.oldRV ?? "", n.newRV ?? ""];
          return [handler, list.toSorted((a, b) => byTexts(text(a), text(b)))];
        }
        const isInRun = (n: Notification) =>
          n.tombstone === true || (todo.op === "addHandler" && n.type === "add") ||
          (todo.op === "advance" && n.type === "update");
        return [handler, sortRuns(list, isInRun)];
      }),
    );
  }

  async #perform(todo: Do): Promise<void> {
    switch (todo.op) {
      case "start":
        this.#running = this.#informer.run(this.#stop.signal);
        await this.#until(() =>
          this.#source.listFails
            ? this.#source.failedLists > 0
            : this.#informer.hasSynced() && this.#source.isWatched
        );
        break;
      case "stop":
        this.#stop.abort();
        await this.#until(() => this.#informer.isStopped());
        await this.#running;
        break;
      case "add":
        return this.#source.add(todo);
      case "modify":
        return this.#source.modify(todo);
      case "delete":
        return this.#source.delete(todo);
      case "resend":
        return this.#source.resend(todo);
      case "relist":
        this.#source.relist();
        return await this.#until(() => this.#source.isWatched);
      case "reconnect":
        this.#source.reconnect();
        return await this.#until(() => this.#source.isWatched);
      case "setListError":
        this.#source.listFails = todo.on!;
        if (!todo.on && this.#running) {
          await this.#until(() => this.#informer.hasSynced() && this.#source.isWatched);
        }
        break;
      case "addHandler":
        return this.#addHandler(todo);
      case "removeHandler": {
        const registration = this.#registrations.get(todo.registration) ??
          this.#removed.get(todo.registration);
        await this.#informer.removeEventHandler(registration!);
        this.#removed.set(todo.registration, registration!);
        this.#registrations.delete(todo.registration);
        break;
      }
      case "addIndexer":
        this.#informer.addIndexers({ [todo.indexer]: indexFunc(todo.indexer) });
        this.#indexers.push(todo.indexer);
        break;
      case "advance":
        await this.#clock.jump(todo.ms);
        break;
      default:
        throw new Error(`unknown op ${JSON.stringify(todo.op)}`);
    }
  }

  #addHandler({ handler, registration, resyncPeriodMs, filter }: Do): void {
    let recorder = this.#recorders.get(handler);
    if (recorder === undefined) {
      recorder = this.#recorder(handler);
      this.#recorders.set(handler, recorder);
    }
    const added = this.#informer.addEventHandler(
      filter === undefined ? recorder : new FilteringResourceEventHandler(accepts(filter), recorder),
      resyncPeriodMs === undefined ? {} : { resyncPeriodMs },
    );
    this.#timesUsed.set(handler, (this.#timesUsed.get(handler) ?? 0) + 1);
    this.#registrations.set(registration, added);
  }

  #recorder(name: string): ResourceEventHandler<Item> {
    const record = (notification: Notification, item: Item | undefined) => {
      const labels = this.#hasTransform ? { labels: item?.metadata.labels ?? {} } : {};
      (this.#notifications[name] ??= []).push({ ...notification, ...labels });
    };
    return {
      onAdd: (item, isInInitialList) =>
        record(
          { type: "add", key: keyOf(item), newRV: item.metadata.resourceVersion, isInInitialList },
          item,
        ),
      onUpdate: (oldItem, item) => {
        const uids = oldItem.metadata.uid === item.metadata.uid
          ? {}
          : { oldUID: oldItem.metadata.uid, newUID: item.metadata.uid };
        const oldRV = oldItem.metadata.resourceVersion;
        const newRV = item.metadata.resourceVersion;
        record({ type: "update", key: keyOf(item), oldRV, newRV, ...uids }, item);
      },
      onDelete: (deleted) => {
        const oldRV = deleted.object?.metadata.resourceVersion ?? "";
        record(
          { type: "delete", key: deleted.key, oldRV, tombstone: deleted.finalStateUnknown },
          deleted.object,
        );
      },
    };
  }

  async #until(condition: () => boolean): Promise<void> {
    for (let turn = 0; !condition(); turn++) {
      if (turn === 1_000) throw new Error("the informer did not get there");
      await this.#clock.settle();
      await new Promise((resolve) => setTimeout(resolve, 1)); // the delay before a retry is a real one
    }
  }

  async #quiet(): Promise<void> {
    for (let turn = 0; turn < 4; turn++) await this.#clock.settle();
  }
}

function indexFunc(name: string): IndexFunc<Item> {
  if (name === "namespace") return (item) => [item.metadata.namespace];
  return (item) => Object.hasOwn(item.metadata.labels, name) ? [item.metadata.labels[name]] : [];
}

function stripLabel(label: string): (item: Item) => Item {
  return (item) => {
    const { [label]: _, ...labels } = item.metadata.labels;
    return { ...item, metadata: { ...item.metadata, labels } };
  };
}

function accepts({ label, equals }: { readonly label: string; readonly equals: string }) {
  return (item: Item | DeletedFinalStateUnknown<Item>): boolean => {
    const object = item instanceof DeletedFinalStateUnknown ? item.object : item;
    return object !== undefined && object.metadata.labels[label] === equals;
  };
}

function keyOf(item: Item): string {
  return `${item.metadata.namespace}/${item.metadata.name}`;
}

function byteOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function byTexts(a: readonly string[], b: readonly string[]): number {
  const i = a.findIndex((text, i) => text !== b[i]);
  return i < 0 ? 0 : byteOrder(a[i], b[i]);
}

/** Sorts each run of consecutive elements that belong to one, by key. */
function sortRuns(list: readonly Notification[], isInRun: (n: Notification) => boolean): Notification[] {
  const sorted: Notification[] = [];
  let run: Notification[] = [];
  const endRun = () => {
    sorted.push(...run.sort((a, b) => byteOrder(a.key, b.key)));
    run = [];
  };
  for (const notification of list) {
    if (isInRun(notification)) {
      run.push(notification);
    } else {
      endRun();
      sorted.push(notification);
    }
  }
  endRun();
  return sorted;
}
