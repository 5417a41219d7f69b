/**
 * Queries of indices of a merged resource.
 * @module
 */

import { encodeMergedVersion } from "../../meta/merged_version.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import type { Status } from "../../meta/status.ts";
import { indentedText } from "../../protocol/responses.ts";
import { errorMessage } from "../../util/errors.ts";
import { INDICES_VERSION } from "../index_routes.ts";
import { objectHeaders } from "../send/responses.ts";
import { mergedHeaders } from "./merged_headers.ts";
import { askShard, type AwayShard, incomplete, layoutOf, type Merged, shardText } from "./shards.ts";

/** An answer of a shard: the names of indices, or the values of one. */
interface IndexAnswer extends Readonly<Record<string, unknown>> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly { readonly name?: string; readonly value?: string; readonly count?: number }[];
}

/** The answer to a query of the indices, or of the values of one: the counts of all shards together. */
export async function answerMergedIndex(
  merged: Merged,
  request: Request,
  abort: AbortController,
): Promise<Response | Status> {
  const { shards } = merged;
  const { pathname, searchParams: params } = new URL(request.url);
  const isPartial = params.get("partial") === "true";
  const isPretty = params.get("pretty") === "true";
  for (const own of ["partial", "pretty"]) params.delete(own);
  const outcomes = await Promise.all(
    shards.map((shard) =>
      askShard(merged, shard, { pathname, params, accept: "application/json", signal: abort.signal })
    ),
  );
  const refused = outcomes.find((outcome) => outcome.kind === "refused");
  if (refused?.kind === "refused") return refused.status;
  const away: AwayShard[] = [];
  const responses: Response[] = [];
  const answers: (IndexAnswer | undefined)[] = [];
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.kind === "answer") {
      responses.push(outcome.response);
      try {
        answers.push(indexAnswer(JSON.parse(await shardText(merged, outcome.response, abort.signal))));
      } catch (error) {
        abort.signal.throwIfAborted();
        away.push({ shard: shards[i], why: errorMessage(error) });
        answers.push(undefined);
      }
    } else {
      if (outcome.kind === "away") away.push({ shard: shards[i], why: outcome.why });
      answers.push(undefined);
    }
  }
  const found = answers.filter((answer) => answer !== undefined);
  if (found.length === 0 || (away.length > 0 && !isPartial)) return incomplete(merged, away);
  const resourceVersion = encodeMergedVersion({
    layout: layoutOf(merged, shards),
    parts: answers.map((answer) => answer?.metadata?.resourceVersion || "0"),
  });
  const { items, isLast } = mergedItems(found);
  const last = items.at(-1)?.value;
  const document = {
    ...found[0],
    metadata: { resourceVersion, ...(!isLast && last !== undefined && { continue: base64(last) }) },
    resource: formatGroupResource(merged.resource),
    items,
  };
  const headers = mergedHeaders(responses, { resourceVersion, away, isSnapshot: shards.length === 1 });
  for (const [name, value] of Object.entries(objectHeaders("application/json"))) headers.set(name, value);
  return new Response(isPretty ? indentedText(document) : `${JSON.stringify(document)}\n`, { headers });
}

function indexAnswer(answer: Partial<IndexAnswer> | null): IndexAnswer {
  if (answer?.apiVersion !== INDICES_VERSION || !Array.isArray(answer.items)) {
    throw new TypeError("its answer is none of an index");
  }
  return answer as IndexAnswer;
}

/** The items of all answers up to where each of them is known, in order; the counts of a value are added. */
function mergedItems(
  answers: readonly IndexAnswer[],
): { readonly items: IndexAnswer["items"]; readonly isLast: boolean } {
  const counts = new Map<string, number>();
  const [first] = answers[0].items;
  if (first !== undefined && first.value === undefined) return { items: answers[0].items, isLast: true };
  let end: string | undefined;
  for (const { items, metadata } of answers) {
    for (const { value = "", count = 0 } of items) counts.set(value, (counts.get(value) ?? 0) + count);
    const last = items.at(-1)?.value;
    // What comes after its page is not known of this shard.
    if (metadata?.continue && last !== undefined && (end === undefined || last < end)) end = last;
  }
  const values = Array.from(counts.keys()).sort().filter((value) => end === undefined || value <= end);
  return { items: values.map((value) => ({ value, count: counts.get(value)! })), isLast: end === undefined };
}

function base64(value: string): string {
  return btoa(Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join(""));
}
