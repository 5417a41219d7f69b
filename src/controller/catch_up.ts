/**
 * Brings a cache up to now: it has all that was written before, by a leader before this process, or on a
 * server that knows more than the one that answered.
 *
 * Versions count the changes of all resources, so that of a quiet one the version that the server names does
 * not come by itself before the next bookmark, a minute later. What shows sooner that nothing is missing: the
 * versions of all objects, if they are few, or a short watch on which nothing comes.
 */

import { changesSince, currentState } from "../informer/snapshot/progress.ts";
import type { ResourceClient } from "../client/resource_client.ts";
import type { VersionProof } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Indexer } from "../store/store.ts";
import { linkedAbort, sleep } from "../util/abort.ts";
import { type Clock, momentOf } from "../util/clock.ts";

// As many objects as one page of a list has.
const MOST_COMPARED = 500;
// Events that are on their way come within this time.
const GRACE_MS = 20;
// Where the events of a slow server are waited for.
const LONGEST_PAUSE_MS = 2_000;

/** A cache, or a part of one: an informer, or one namespace of it. */
export interface CaughtUpInformer {
  readonly indexer: Pick<
    Indexer<KubernetesObject, string>,
    "lastStoreSyncResourceVersion" | "listKeys" | "getByKey"
  >;
  waitForVersion(version: string, options: { readonly signal: AbortSignal }): Promise<void>;
  proven(proof: VersionProof): boolean;
}

interface Source {
  readonly informer: CaughtUpInformer;
  readonly client: ResourceClient<KubernetesObject>;
  readonly clock: Clock;
}

/**
 * Waits until the cache has reached a version that the server has.
 *
 * @throws What a request fails with; the signal's reason.
 */
export async function catchUp(source: Source, version: string, signal: AbortSignal): Promise<void> {
  const proving = linkedAbort(signal);
  try {
    await Promise.race([
      source.informer.waitForVersion(version, { signal: proving.signal }),
      proveUntilReached(source, proving.signal),
    ]);
  } finally {
    proving.abort();
    proving.unlink();
  }
}

/** Looks for proofs until the wait for the version ends, with what it fails with. */
async function proveUntilReached(source: Source, signal: AbortSignal): Promise<never> {
  for (let delayMs = GRACE_MS;; delayMs = Math.min(2 * delayMs, LONGEST_PAUSE_MS)) {
    await sleep(delayMs, { clock: source.clock, signal });
    await proveOnce(source, signal);
  }
}

async function proveOnce({ informer, client, clock }: Source, signal: AbortSignal): Promise<void> {
  const metadata = client.metadata();
  const from = informer.indexer.lastStoreSyncResourceVersion();
  const asked = momentOf(clock);
  const state = await currentState(metadata, { maxObjects: MOST_COMPARED, signal });
  if (state !== undefined) {
    await sleep(GRACE_MS, { clock, signal });
    if (!isEqual(informer, state.versions)) return;
    const after = informer.indexer.lastStoreSyncResourceVersion();
    informer.proven({ after, through: state.resourceVersion, asked, byState: true });
    return;
  }
  const changes = await changesSince(metadata, { resourceVersion: from, signal });
  if (changes === undefined) return;
  const after = changes.lastChange || from;
  await informer.waitForVersion(after, { signal });
  informer.proven({ after, through: changes.through, asked });
}

function isEqual(
  { indexer }: CaughtUpInformer,
  versions: ReadonlyMap<string, string>,
): boolean {
  const keys = indexer.listKeys();
  return keys.length === versions.size &&
    keys.every((key) => versions.get(key) === indexer.getByKey(key)?.metadata?.resourceVersion);
}
