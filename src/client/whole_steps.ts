/** Watches of a resource that a cache has merged of several servers. */

import type { WatchItem, WatchStream } from "../meta/list_watch.ts";
import { layoutOf } from "../meta/object.ts";

/**
 * The events of a merged resource, each batch up to a bookmark: objects have the versions of their own
 * servers, and the bookmark behind a few of them says where they lead. A store that takes such a batch in one
 * turn has a state of the resource after it. Batches of other resources stay as they are.
 *
 * @param from Where the watch begins; a streamed list shows at its end what it is.
 */
export async function* wholeSteps<T>(
  stream: WatchStream<T>,
  from: string,
): AsyncGenerator<readonly WatchItem<T>[]> {
  let isMerged = layoutOf(from) !== "";
  let step: WatchItem<T>[] = [];
  for await (const batch of stream) {
    const end = batch.findLastIndex(endsStep) + 1;
    isMerged ||= end > 0;
    if (!isMerged) {
      yield batch;
      continue;
    }
    if (end > 0) {
      yield [...step, ...batch.slice(0, end)];
      step = [];
    }
    step.push(...batch.slice(end));
  }
  // A server that ends a watch here sends no such bookmarks.
  if (step.length > 0) yield step;
}

/** Whether the item shows a merged version, as only bookmarks do, or is the last one. */
function endsStep(item: WatchItem<unknown>): boolean {
  if (item.type === "ERROR") return true;
  return item.type === "BOOKMARK" && layoutOf(item.object.metadata.resourceVersion ?? "") !== "";
}
