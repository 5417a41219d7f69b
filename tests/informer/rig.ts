/**
 * An informer over a source that a test fills, on a clock that a test moves.
 * @module
 */

import {
  type HandlerRegistration,
  type KubernetesObject,
  type ResourceEventHandler,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  silentLogger,
} from "@listwatch/cache";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import { FakeClock, FakeControllerSource } from "@listwatch/cache/testing";
import { inBackground } from "../in_background.ts";
import { LogRecorder } from "../log_recorder.ts";
import { storage } from "./storages.ts";

/** A handler that writes down what it is told: `add a@1`, `update a@1>2`, `delete a@3`, `tombstone a@1`. */
export class Recorder implements ResourceEventHandler<KubernetesObject> {
  readonly calls: string[] = [];

  onAdd(object: KubernetesObject, isInInitialList: boolean): void {
    this.calls.push(`add ${text(object)}${isInInitialList ? " initial" : ""}`);
  }

  onUpdate(oldObject: KubernetesObject, newObject: KubernetesObject): void {
    this.calls.push(`update ${text(oldObject)}>${newObject.metadata?.resourceVersion}`);
  }

  onDelete: ResourceEventHandler<KubernetesObject>["onDelete"] = (deleted) => {
    const { object, finalStateUnknown } = deleted;
    this.calls.push(
      `${finalStateUnknown ? "tombstone" : "delete"} ${object === undefined ? deleted.key : text(object)}`,
    );
  };

  /** The notifications received since the last call. */
  take(): string[] {
    return this.calls.splice(0);
  }
}

/** An object as its name and resourceVersion: `a@1`. */
export function text(object: KubernetesObject): string {
  return `${object.metadata?.name}@${object.metadata?.resourceVersion}`;
}

/** An object with a name; in no namespace, so that its key is its name. */
export function named(name: string, labels?: Record<string, string>): KubernetesObject {
  return { metadata: { name, ...(labels && { labels }) } };
}

/** Options of {@linkcode newRig}. */
export type RigOptions<I extends string> = SharedIndexInformerOptions<KubernetesObject, I>;

/** An informer and what is around it. */
export interface Rig<I extends string> extends AsyncDisposable {
  readonly source: FakeControllerSource;
  readonly clock: FakeClock;
  readonly log: LogRecorder;
  readonly informer: SharedIndexInformer<KubernetesObject, I>;
  /** Runs the informer, and waits until it has synced and watches. */
  start(): Promise<void>;
  /** Stops it and waits until it has. */
  stop(): Promise<void>;
  /** Lets everything that can happen without time passing happen. */
  settle(): Promise<void>;
  /** Lets the time pass that it takes to list or watch again after a failure. */
  retry(): Promise<void>;
  /** Adds a handler that records. */
  record(options?: Parameters<SharedIndexInformer<KubernetesObject, I>["addEventHandler"]>[1]): Recording;
}

/** A recorder that was added to an informer. */
export interface Recording {
  readonly recorder: Recorder;
  readonly registration: HandlerRegistration;
}

/** Makes an informer that has not started. It waits for 1 ms after a failure. */
export function newRig<I extends string = never>(options: RigOptions<I> = {}): Rig<I> {
  const source = new FakeControllerSource();
  const clock = new FakeClock();
  const log = new LogRecorder();
  const informer = new SharedIndexInformer<KubernetesObject, I>(source, {
    clock,
    logger: log,
    storage: storage(),
    ...options,
    reflector: { useWatchList: false, backoff: { nextDelayMs: () => 1 }, ...options.reflector },
  });
  return {
    source,
    clock,
    log,
    informer,
    ...inBackground(clock, (signal) => informer.run(signal)),
    settle: () => clock.advance(0),
    retry: () => clock.advance(5),
    record(handlerOptions) {
      const recorder = new Recorder();
      return { recorder, registration: informer.addEventHandler(recorder, handlerOptions) };
    },
  };
}

/**
 * Starts an informer over any source, with a handler and an observer that write down what they receive;
 * resolves when it has come as far as it can without time passing.
 */
export async function startObserved<I extends string = never>(
  source: ListerWatcher<KubernetesObject>,
  options: SharedIndexInformerOptions<KubernetesObject, I> = {},
): Promise<ObservedInformer<I>> {
  const clock = new FakeClock();
  const informer = new SharedIndexInformer<KubernetesObject, I>(source, {
    storage: storage(),
    clock,
    logger: silentLogger,
    ...options,
    reflector: { useWatchList: false, random: () => 0, ...options.reflector },
  });
  const recorder = new Recorder();
  const observed: string[] = [];
  informer.addEventHandler(recorder);
  informer.observe((event) => observed.push(event.type));
  const running = informer.start();
  await clock.advance(0);
  return { clock, informer, recorder, observed, stop: () => running.stop() };
}

/** What {@linkcode startObserved} started. */
export interface ObservedInformer<I extends string> {
  readonly clock: FakeClock;
  readonly informer: SharedIndexInformer<KubernetesObject, I>;
  readonly recorder: Recorder;
  /** The types of the store's events. */
  readonly observed: string[];
  stop(): Promise<void>;
}
