/**
 * Loads the content of a snapshot.
 * @module
 */

import { keyOf } from "../meta/keys.ts";
import { resourceVersionOf } from "../meta/object.ts";
import type { RestoredContent } from "../reflector/reflector_wiring.ts";
import type { Held } from "../store/holding.ts";
import { ObjectText } from "../text/object_text.ts";
import { abortable, withTimeLimit } from "../util/abort.ts";
import { errorMessage } from "../util/errors.ts";
import { newObjectPacer } from "../util/turns.ts";
import {
  type LoadedSnapshot,
  type SnapshotEntry,
  type SnapshotIdentity,
  SnapshotRefusedError,
  type SnapshotStorage,
} from "./snapshot.ts";
import type { SnapshotContext } from "./snapshot_run.ts";

/**
 * Loads a snapshot: all of it or nothing, in turns. Objects are in the form in which the store holds them.
 *
 * @returns `undefined` if there is none.
 * @throws {SnapshotRefusedError} It cannot be used, or takes too long.
 * @throws The signal's reason.
 */
export async function loadSnapshot<T>(
  storage: SnapshotStorage,
  context: SnapshotContext<T>,
  { identity, timeoutMs, signal, onBegin }: {
    readonly identity: SnapshotIdentity;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
    /** Receives what resolves when the storage has ended the load, which may be long after it is awaited. */
    readonly onBegin: (ended: Promise<void>) => void;
  },
): Promise<RestoredContent | undefined> {
  const load = async (limited: AbortSignal) => {
    const loaded = await storage.load(identity, limited);
    limited.throwIfAborted();
    return loaded && await contentOf(loaded, context, limited);
  };
  try {
    return await withTimeLimit((limited) => {
      const loading = load(limited);
      onBegin(loading.then(() => {}, () => {}));
      return abortable(loading, limited);
    }, {
      ms: timeoutMs,
      newError: () => {
        const why = `it was not loaded within ${timeoutMs} ms; nothing is saved before the load ends`;
        return new SnapshotRefusedError("timeout", why);
      },
      clock: context.clock,
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SnapshotRefusedError) throw error;
    throw new SnapshotRefusedError("unreadable", errorMessage(error), { cause: error });
  }
}

async function contentOf<T>(
  loaded: LoadedSnapshot,
  context: SnapshotContext<T>,
  signal: AbortSignal,
): Promise<RestoredContent> {
  const { resourceVersion, savedAtMs, needsList, clusterUid, count } = loaded;
  if (typeof resourceVersion !== "string" || !Number.isFinite(savedAtMs) || !Number.isInteger(count)) {
    throw new SnapshotRefusedError("corrupt", "its version, its time or its number of objects is missing");
  }
  // A server refuses watches and lists of another one: nothing would ever replace it.
  if (!/^[0-9]*$/.test(resourceVersion)) {
    const version = JSON.stringify(resourceVersion.slice(0, MAX_SHOWN_LENGTH));
    throw new SnapshotRefusedError("corrupt", `its version ${version} is no decimal number`);
  }
  const pacer = newObjectPacer(context.pace, context.clock);
  const hold = newHold(context);
  const items: Held<T>[] = [];
  const keys = new Set<string>();
  const giveTurn = async () => {
    await pacer.rest();
    signal.throwIfAborted();
  };
  for await (const batch of loaded.entries()) {
    for (const entry of batch) {
      if (items.length === count) {
        throw new SnapshotRefusedError(
          "corrupt",
          `it has more than the ${count} objects that it should have`,
        );
      }
      items.push(hold(entry));
      if (keys.size === keys.add(entry.key).size) {
        throw new SnapshotRefusedError("corrupt", `it has ${JSON.stringify(entry.key)} twice`);
      }
      if (pacer.spend()) await giveTurn();
    }
    signal.throwIfAborted();
    // Batches may be empty.
    if (pacer.spend()) await giveTurn();
  }
  if (items.length !== count) {
    throw new SnapshotRefusedError("truncated", `it has ${items.length} objects, and should have ${count}`);
  }
  return {
    items,
    resourceVersion,
    savedAtMs,
    needsList: needsList !== false || isNoPosition(resourceVersion),
    clusterUid,
  };
}

const MAX_SHOWN_LENGTH = 100;

/** Whether a watch from this version begins anywhere. */
export function isNoPosition(resourceVersion: string): boolean {
  return resourceVersion === "" || resourceVersion === "0";
}

/** Makes what puts an entry into the form in which the store holds it. */
function newHold<T>({ store, accept }: SnapshotContext<T>): (entry: SnapshotEntry) => Held<T> {
  const { holding } = store;
  const take = (entry: SnapshotEntry): Held<T> => {
    const { key, held, head } = entry;
    if (held !== undefined) {
      if (holding.isHeld(held)) return held as Held<T>;
      // A store that holds objects as they are has no form of its own.
      if (holding.holdText === undefined && Object.getPrototypeOf(held) === Object.prototype) {
        return held as Held<T>;
      }
      throw new SnapshotRefusedError("foreign", `${JSON.stringify(key)} is in another form than the store's`);
    }
    const { json } = entry;
    if (holding.holdText === undefined) return holding.hold(JSON.parse(json));
    if (head !== undefined) return holding.holdText.hold(json, head, { key, fields: [] }) as Held<T>;
    const read = holding.holdText.reader.read(json);
    if (!(read instanceof ObjectText)) return read as Held<T>;
    return holding.holdText.hold(read.text, read.head as SnapshotEntry["head"] & object, read) as Held<T>;
  };
  return (entry) => {
    const { key } = entry;
    try {
      const held = take(entry);
      const own = keyOf(holding.keyFunc, held, "load");
      if (own !== key) {
        throw new SnapshotRefusedError(
          "other-identity",
          `the object saved as ${JSON.stringify(key)} has the key ${JSON.stringify(own)}`,
        );
      }
      if (resourceVersionOf(held) === undefined) throw new TypeError("it has no metadata");
      accept?.(held);
      return held;
    } catch (error) {
      if (error instanceof SnapshotRefusedError) throw error;
      throw new SnapshotRefusedError("corrupt", `${JSON.stringify(key)}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  };
}
