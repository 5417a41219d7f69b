/** A list that comes as a watch: every present object as ADDED, then a bookmark. */

import { keyOf } from "../meta/keys.ts";
import { isInitialEventsEnd, type Quarantined, type WatchItem } from "../meta/list_watch.ts";
import { monotonicNow } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { defined } from "../util/json.ts";
import { StalledStreamError } from "./failures.ts";
import type { OpenWatch } from "./open_watch.ts";
import type { ReflectorSettings } from "./reflector_options.ts";
import { eventProblem } from "./store_writer.ts";
import { Watchdog } from "./timers.ts";

type Settings = Pick<
  ReflectorSettings,
  "clock" | "keyFunc" | "expectedKind" | "watchListSilenceMs" | "watchListEndMs" | "intake" | "quarantine"
>;

/** What a streamed list held. */
interface InitialEvents<T> {
  readonly items: T[];
  readonly resourceVersion: string;
  /** What was quarantined, and is not in `items` in another state. */
  readonly quarantined: readonly Quarantined[];
}

/** Reads a watch up to the end bookmark, leaving what comes after it unread. */
export async function readInitialEvents<T>(
  watch: OpenWatch<T>,
  settings: Settings,
  onProgress: (items: number) => void,
): Promise<InitialEvents<T> | undefined> {
  const { clock, watchListSilenceMs: silenceMs, watchListEndMs: endMs } = settings;
  const stalled = (text: string) => () => watch.end(new StalledStreamError(text));
  const silence = new Watchdog(
    clock,
    silenceMs,
    stalled(`no event for ${silenceMs} ms, and no end bookmark`),
    () => watch.received?.monotonicMs ?? 0, // a large object on a slow line is on its way
  );
  const end = new Watchdog(clock, endMs, stalled(`no end bookmark ${endMs} ms after the last initial event`));
  const deadline = new Watchdog(
    clock,
    watch.deadlineMs - monotonicNow(clock),
    stalled("no end bookmark by the watch's timeout"),
  );
  const gathered = new GatheredObjects<T>(watch, settings);
  try {
    for (;;) {
      const batch = await watch.next();
      if (batch === undefined) return undefined;
      silence.feed();
      const before = gathered.size;
      for (let i = 0; i < batch.length; i++) {
        const resourceVersion = gathered.take(batch[i]);
        if (resourceVersion === undefined) continue;
        watch.unread(batch.slice(i + 1));
        return { ...gathered.result(), resourceVersion };
      }
      // Changes of what is there say nothing about the end, and neither does anything that comes after the
      // first of them.
      if (gathered.size > before && !gathered.hasChanges) end.feed();
      onProgress(gathered.size);
    }
  } finally {
    silence.stop();
    end.stop();
    deadline.stop();
  }
}

/** The objects of a streamed list by key: the last valid state, or the report of why there is none. */
class GatheredObjects<T> {
  readonly #watch: OpenWatch<T>;
  readonly #settings: Settings;
  readonly #objects = new Map<string, T>();
  readonly #quarantinedByKey = new Map<string, Quarantined>();
  /** Whether something other than present objects came: servers send those first. */
  hasChanges = false;

  constructor(watch: OpenWatch<T>, settings: Settings) {
    this.#watch = watch;
    this.#settings = settings;
  }

  /** How many there are, quarantined ones included. */
  get size(): number {
    return this.#objects.size + this.#quarantinedByKey.size;
  }

  result(): Pick<InitialEvents<T>, "items" | "quarantined"> {
    return { items: [...this.#objects.values()], quarantined: [...this.#quarantinedByKey.values()] };
  }

  /** Takes one item in; the resourceVersion if it was the end bookmark. */
  take(item: WatchItem<T>): string | undefined {
    const { quarantine, keyFunc, expectedKind, intake } = this.#settings;
    if (item.type === "ERROR") quarantine.refuse(item.object, this.#watch.receivedBytes);
    if (item.type === "QUARANTINED") {
      this.#quarantine(item.quarantined);
      return undefined;
    }
    const problem = eventProblem(item.object, expectedKind);
    if (problem !== undefined) {
      this.#quarantine({ reason: problem, path: "", eventType: item.type });
      return undefined;
    }
    if (item.type === "BOOKMARK") {
      return isInitialEventsEnd(item.object) ? item.object.metadata.resourceVersion ?? "" : undefined;
    }
    if (item.type !== "ADDED") this.hasChanges = true;
    let key: string | undefined;
    try {
      key = keyOf(keyFunc, item.object, "stream");
      if (item.type === "DELETED") this.#objects.delete(key);
      else this.#objects.set(key, (intake === undefined ? item.object : intake(item.object)) as T);
      this.#quarantinedByKey.delete(key);
    } catch (error) {
      this.#quarantine(defined({ reason: errorMessage(error), path: "", eventType: item.type, key }));
    }
    return undefined;
  }

  /** The last accepted state of a quarantined event's key stays; a delete needs no more than the key. */
  #quarantine(quarantined: Quarantined): void {
    const { key, eventType } = quarantined;
    this.#settings.quarantine.add(quarantined);
    if (eventType === "MODIFIED" || eventType === "DELETED") this.hasChanges = true;
    if (key === undefined) return;
    if (eventType === "DELETED") {
      this.#objects.delete(key);
      this.#quarantinedByKey.delete(key);
    } else if (!this.#objects.has(key)) {
      this.#quarantinedByKey.set(key, quarantined);
    }
  }
}
