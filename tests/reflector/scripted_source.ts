/**
 * A source that answers from a script, and a store that records its calls.
 * @module
 */

import { type KubernetesObject, type Status, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { ReflectorStore } from "@listwatch/cache/queue";
import type {
  ListerWatcher,
  ListOptions,
  ListPage,
  ListWatchContext,
  Quarantined,
  ReflectorOptions,
  WatchStream,
} from "@listwatch/cache/reflector";
import { FakeClock, FakeWatcher } from "@listwatch/cache/testing";
import { Reflector } from "../../src/reflector/reflector.ts";
import type { ReflectorWiring } from "../../src/reflector/reflector_options.ts";
import { onAbort } from "../../src/util/abort.ts";
import { inBackground } from "../in_background.ts";
import { LogRecorder } from "../log_recorder.ts";

/** What a source does with a request. `hang` never answers, until the signal is aborted. */
export type Answer =
  | { readonly list: ListPage<KubernetesObject> | Error | "hang" }
  | { readonly watch: FakeWatcher | Promise<FakeWatcher> | Error | "hang" };

/** Answers requests in the order of its script, each in a later microtask. */
export class ScriptedSource implements ListerWatcher<KubernetesObject> {
  readonly description = "pods";
  /** The requests so far: `list "0" limit 500`, `watch "10"`, `stream ""`. */
  readonly requests: string[] = [];
  /** The options of the requests so far. */
  readonly options: ListOptions[] = [];
  /** Requests that are not in the script. */
  readonly problems: string[] = [];
  /** How often each stream that was handed out was closed by its reader. */
  readonly closed: number[] = [];
  readonly #script: Answer[];
  readonly #watchers: FakeWatcher[] = [];

  constructor(...script: Answer[]) {
    this.#script = script;
  }

  /** Adds to the script. */
  then(...script: Answer[]): void {
    this.#script.push(...script);
  }

  /** How many of the streams that were handed out are open. */
  get open(): number {
    return this.#watchers.filter((watcher) => !watcher.isStopped).length;
  }

  /** How many answers are left. */
  get left(): number {
    return this.#script.length;
  }

  async list(options: ListOptions, { signal }: ListWatchContext): Promise<ListPage<KubernetesObject>> {
    const { resourceVersion = "", limit, continue: token } = options;
    const version = token === undefined ? JSON.stringify(resourceVersion) : token;
    const answer = this.#next(`list ${version}${limit ? ` limit ${limit}` : ""}`, options);
    await Promise.resolve();
    signal.throwIfAborted();
    if (answer === undefined || !("list" in answer) || answer.list === "hang") return await never(signal);
    if (answer.list instanceof Error) throw answer.list;
    return structuredClone(answer.list);
  }

  async watch(options: ListOptions, { signal }: ListWatchContext): Promise<WatchStream<KubernetesObject>> {
    const kind = options.sendInitialEvents ? "stream" : "watch";
    const answer = this.#next(`${kind} ${JSON.stringify(options.resourceVersion ?? "")}`, options);
    await Promise.resolve();
    signal.throwIfAborted();
    if (answer === undefined || !("watch" in answer) || answer.watch === "hang") return await never(signal);
    if (answer.watch instanceof Error) throw answer.watch;
    return this.#tracked(await answer.watch, signal);
  }

  #next(request: string, options: ListOptions): Answer | undefined {
    this.requests.push(request);
    this.options.push(options);
    const answer = this.#script.shift();
    const verb = request.startsWith("list") ? "list" : "watch";
    if (answer === undefined) this.problems.push(`${request} was not expected`);
    else if (!(verb in answer)) this.problems.push(`${request} came, ${Object.keys(answer)} was expected`);
    return answer;
  }

  #tracked(watcher: FakeWatcher, signal: AbortSignal): WatchStream<KubernetesObject> {
    const index = this.closed.push(0) - 1;
    this.#watchers.push(watcher);
    onAbort(signal, () => watcher.fail(signal.reason));
    return {
      [Symbol.asyncIterator]: () => {
        const iterator = watcher[Symbol.asyncIterator]();
        return {
          next: () => iterator.next(),
          return: () => {
            this.closed[index]++;
            return iterator.return!();
          },
        };
      },
    };
  }
}

function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => onAbort(signal, () => reject(signal.reason)));
}

/** A store that writes down what it is told: `replace 10: a@1 b@2`, `add a@3`, `bookmark 12`. */
export class StoreRecorder implements ReflectorStore<KubernetesObject> {
  readonly operations: string[] = [];
  /** Called before each operation; what it throws is what the operation throws. */
  check: (operation: string) => void = () => {};

  add(object: KubernetesObject): void {
    this.#write(`add ${text(object)}`);
  }

  update(object: KubernetesObject): void {
    this.#write(`update ${text(object)}`);
  }

  delete(object: KubernetesObject): void {
    this.#write(`delete ${text(object)}`);
  }

  replace(objects: readonly KubernetesObject[], resourceVersion: string): void {
    this.#write(`replace ${resourceVersion}: ${objects.map(text).join(" ")}`.trimEnd());
  }

  resync(): void {
    this.#write("resync");
  }

  bookmark(resourceVersion: string): void {
    this.#write(`bookmark ${resourceVersion}`);
  }

  /** The calls since the last call of this. */
  take(): string[] {
    return this.operations.splice(0);
  }

  #write(operation: string): void {
    this.check(operation);
    this.operations.push(operation);
  }
}

/** `name@resourceVersion`. */
export function text(object: KubernetesObject): string {
  return `${object.metadata?.name}@${object.metadata?.resourceVersion}`;
}

/** A pod with a name and a resourceVersion, written `a@1`. */
export function at(written: string): KubernetesObject {
  const [name, resourceVersion] = written.split("@");
  return { apiVersion: "v1", kind: "Pod", metadata: { name, resourceVersion } };
}

/** A list's page of pods, written `a@1 b@2`. */
export function page(written: string, resourceVersion: string, next?: string): ListPage<KubernetesObject> {
  return {
    metadata: { resourceVersion, ...(next === undefined ? {} : { continue: next }) },
    items: written === "" ? [] : written.split(" ").map(at),
  };
}

/** The refusals and ERROR events that reflectors know. */
export const statuses: Readonly<
  Record<"expired" | "tooMany" | "internal" | "forbidden" | "invalid", Status>
> = {
  expired: newStatus(410, "Expired", "too old resource version: 1 (310)"),
  tooMany: newStatus(429, "TooManyRequests", "slow down"),
  internal: newStatus(500, "InternalError", "etcdserver: leader changed"),
  forbidden: newStatus(403, "Forbidden", "pods is forbidden"),
  invalid: newStatus(422, "Invalid", "sendInitialEvents is forbidden"),
};

/** As {@linkcode statuses}, as errors. */
export function refusal(name: keyof typeof statuses): StatusError {
  return new StatusError(statuses[name]);
}

/** A watch that is open; what was sent to it is read at once. */
export function openWatch(fill: (watcher: FakeWatcher) => void = () => {}): FakeWatcher {
  const watcher = new FakeWatcher();
  fill(watcher);
  return watcher;
}

/** A reflector over a script, and what is around it. */
export interface Run extends AsyncDisposable {
  readonly source: ScriptedSource;
  readonly store: StoreRecorder;
  readonly clock: FakeClock;
  readonly log: LogRecorder;
  /** The errors that the watch error handler received. */
  readonly errors: Error[];
  /** The quarantined objects. */
  readonly quarantined: Quarantined[];
  readonly reflector: Reflector<KubernetesObject>;
  /** Runs it, and lets everything happen that can without time passing. */
  start(): Promise<void>;
  /** Stops it and waits until it has. */
  stop(): Promise<void>;
}

/**
 * Makes a reflector over a script that has not started; with a wiring, the loop that an informer
 * runs. Its first delay is 800 ms, and they double.
 */
export function newRun(
  script: readonly Answer[],
  options: ReflectorOptions = {},
  wiring: ReflectorWiring | undefined = undefined,
): Run {
  const source = new ScriptedSource(...script);
  const store = new StoreRecorder();
  const clock = new FakeClock();
  const log = new LogRecorder();
  const errors: Error[] = [];
  const quarantined: Quarantined[] = [];
  const all: ReflectorOptions = {
    useWatchList: false,
    clock,
    random: () => 0,
    logger: log,
    watchErrorHandler: (error) => errors.push(error),
    onQuarantined: (one) => quarantined.push(one),
    ...options,
  };
  const reflector = new Reflector<KubernetesObject>(source, store, all, wiring);
  return {
    source,
    store,
    clock,
    log,
    errors,
    quarantined,
    reflector,
    ...inBackground(clock, (signal) => reflector.run(signal)),
  };
}
