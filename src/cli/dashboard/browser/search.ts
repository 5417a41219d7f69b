/** The text of the search, and the parameters of the read API that it means. */

import type { ResourceState } from "../dashboard_message.ts";
import { notReadyFilter, stateFilter } from "./kinds.ts";
import { isSegment } from "./route.ts";

/** A word of a search, or `not ready`. */
export type Term =
  | { readonly type: "not ready" }
  /** `ns:shop`. */
  | { readonly type: "ns"; readonly value: string }
  /** `node=worker-1`, `owner=web`, `name=web`, `phase=Pending`, `reason=Error`. */
  | { readonly type: Field; readonly value: string }
  /** `app=web`, `app!=web`. */
  | { readonly type: "label"; readonly requirement: string }
  | { readonly type: "word"; readonly word: string };

type Field = "node" | "owner" | "name" | "phase" | "reason";

const FIELDS: Readonly<Record<string, Field | "ns">> = {
  ns: "ns",
  namespace: "ns",
  node: "node",
  owner: "owner",
  name: "name",
  phase: "phase",
  status: "phase",
  reason: "reason",
};

const LONGEST = 200;

export function parseSearch(text: string): Term[] {
  const terms: Term[] = [];
  const words = text.slice(0, LONGEST).split(/[\s,]+/).filter((word) => word !== "");
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    const both = `${word} ${words[i + 1] ?? ""}`.toLowerCase();
    if (both === "not ready") i++;
    if (both === "not ready" || /^(?:not-?ready|unready)$/i.test(word)) {
      terms.push({ type: "not ready" });
      continue;
    }
    const at = word.search(/[:=]/);
    const field = at > 0 ? FIELDS[word.slice(0, at).toLowerCase()] : undefined;
    if (field !== undefined) {
      const value = word.slice(at + 1).replace(/^=/, "");
      if (value !== "") terms.push({ type: field, value });
    } else if (/^[^!=]+!?==?[^=]*$/.test(word)) terms.push({ type: "label", requirement: word });
    else terms.push({ type: "word", word });
  }
  return terms;
}

export interface Wanted {
  readonly namespace: string | undefined;
  readonly filter: string | undefined;
  readonly labelSelector: string | undefined;
}

/** The parameters of a list of the resource; `undefined` if none of its objects can be what is searched. */
export function wantedOf(
  terms: readonly Term[],
  { name, namespaced }: Pick<ResourceState, "name" | "namespaced">,
): Wanted | undefined {
  let namespace: string | undefined;
  const filters: string[] = [];
  const labels: string[] = [];
  for (const term of terms) {
    if (term.type === "label") labels.push(term.requirement);
    else if (term.type === "ns") {
      if (!namespaced || !isSegment(term.value)) return undefined;
      if (namespace !== undefined && namespace !== term.value) return undefined;
      namespace = term.value;
    } else {
      const filter = filterOf(term, name);
      if (filter === undefined) return undefined;
      filters.push(filter);
    }
  }
  return {
    namespace,
    filter: filters.length === 0 ? undefined : filters.join(","),
    labelSelector: labels.length === 0 ? undefined : labels.join(","),
  };
}

function filterOf(term: Exclude<Term, { type: "label" | "ns" }>, name: string): string | undefined {
  switch (term.type) {
    case "not ready":
      return notReadyFilter(name);
    case "node":
      if (name === "nodes") return `metadata.name=${quoted(term.value)}`;
      return name === "pods" ? `spec.nodeName=${quoted(term.value)}` : undefined;
    case "owner":
      return `metadata.ownerReferences[].name=${quoted(term.value)}`;
    case "phase":
      return `status.phase~${quoted(term.value)}`;
    case "reason":
      return name === "pods"
        ? `status.containerStatuses[].state.waiting.reason~${quoted(term.value)}`
        : name === "events"
        ? `reason~${quoted(term.value)}`
        : `status.conditions[].reason~${quoted(term.value)}`;
    case "name":
      return `metadata.name~${quoted(term.value)}`;
    case "word":
      return stateFilter(name, term.word.toLowerCase()) ?? `metadata.name~${quoted(term.word)}`;
  }
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** The words of a search that name resources, as kubectl does, and the other terms. */
export function chooseResources<R extends Pick<ResourceState, "name" | "kind" | "shortNames">>(
  terms: readonly Term[],
  resources: readonly R[],
): { readonly resources: readonly R[]; readonly terms: readonly Term[] } {
  const isNamed = ({ name, kind, shortNames }: R, word: string) =>
    [name, name.split(".")[0], kind.toLowerCase(), ...shortNames].includes(word);
  const wordOf = (term: Term) => term.type === "word" ? term.word.toLowerCase() : "";
  const chosen = resources.filter((resource) => terms.some((term) => isNamed(resource, wordOf(term))));
  if (chosen.length === 0) return { resources, terms };
  return {
    resources: chosen,
    terms: terms.filter((term) => !chosen.some((resource) => isNamed(resource, wordOf(term)))),
  };
}

/** The lower the better a name is as the answer to words. */
export function rankOf(name: string, terms: readonly Term[]): number {
  let rank = 0;
  for (const term of terms) {
    if (term.type !== "word") continue;
    const at = name.indexOf(term.word.toLowerCase());
    rank += at < 0 ? 3 : at > 0 ? 2 : name.length > term.word.length ? 1 : 0;
  }
  return rank;
}
