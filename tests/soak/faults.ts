/**
 * The faults and their times: a plan that a seed repeats, and the code that carries it out.
 * @module
 */

import { sleepUnlessAborted } from "../../src/util/abort.ts";
import { realClock } from "../../src/util/clock.ts";
import type { FaultProxy, ProxiedConnection } from "./fault_proxy.ts";

/**
 * What can happen. Those that end in `All` meet every connection,
 * `refuse` new ones, the others one that is open.
 */
export type FaultKind =
  | "cut"
  | "cutAll"
  | "cutAfter"
  | "truncate"
  | "halfClose"
  | "delay"
  | "delayAll"
  | "blackHole"
  | "blackHoleAll"
  | "refuse";

/** A fault to come. */
export interface PlannedFault {
  readonly kind: FaultKind;
  /** After the fault before. */
  readonly afterMs: number;
  /** Picks one of the open connections, from 0 to 1. */
  readonly pick: number;
  /** How far a stream gets. */
  readonly bytes: number;
  readonly delayMs: number;
  /** How long black holes, delays and refusals last, unless the network is healed before. */
  readonly lastsMs: number;
  /** Whether the connections in a black hole are dead at its end, instead of delivering what was held. */
  readonly endsInReset: boolean;
}

const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  cut: 5,
  cutAll: 1,
  cutAfter: 5,
  truncate: 5,
  halfClose: 4,
  delay: 4,
  delayAll: 1,
  blackHole: 6,
  blackHoleAll: 1,
  refuse: 2,
};

/** All kinds. */
export const FAULT_KINDS: readonly FaultKind[] = Object.keys(WEIGHTS) as FaultKind[];

/** An endless plan. What is planned depends on nothing but `random`. */
export function* planFaults(random: () => number, meanPauseMs: number): Generator<PlannedFault, never> {
  const total = FAULT_KINDS.reduce((sum, kind) => sum + WEIGHTS[kind], 0);
  for (;;) {
    let at = random() * total;
    const kind = FAULT_KINDS.find((kind) => (at -= WEIGHTS[kind]) < 0)!;
    yield {
      kind,
      afterMs: Math.round(random() * 2 * meanPauseMs),
      pick: random(),
      // A number of bytes from the first ones of an answer to the middle of a list.
      bytes: Math.floor(2 ** (random() * 16)),
      delayMs: Math.round(10 + random() * 1_500),
      lastsMs: Math.round(1_000 + random() ** 2 * 29_000),
      endsInReset: random() < 0.5,
    };
  }
}

/** How often each fault came. */
export type FaultCounts = Record<FaultKind, number>;

/** Counts that are zero. */
export function newFaultCounts(): FaultCounts {
  return Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0])) as FaultCounts;
}

/** Carries out a plan until the signal is aborted; resolves when the network is well again. */
export async function runFaults(
  proxy: FaultProxy,
  plan: Generator<PlannedFault, never>,
  { counts, signal }: { readonly counts: FaultCounts; readonly signal: AbortSignal },
): Promise<void> {
  const lasting = new Set<Promise<void>>();
  while (!signal.aborted) {
    const fault = plan.next().value;
    await sleepUnlessAborted(fault.afterMs, { clock: realClock, signal });
    if (signal.aborted) break;
    const met = applyFault(proxy, fault);
    if (met === undefined) continue;
    counts[fault.kind]++;
    const ends = sleepUnlessAborted(fault.lastsMs, { clock: realClock, signal }).then(() =>
      endFault(proxy, fault, met)
    );
    lasting.add(ends);
    ends.then(() => lasting.delete(ends));
  }
  await Promise.all(lasting);
  proxy.heal();
  await proxy.accept();
}

/** The connections that it meets; `undefined` if there is none to meet. */
function applyFault(proxy: FaultProxy, fault: PlannedFault): ProxiedConnection[] | undefined {
  const { connections } = proxy;
  if (fault.kind === "refuse") {
    if (proxy.isRefusing) return undefined;
    proxy.refuse();
    return [];
  }
  if (connections.length === 0) return undefined;
  const isForAll = fault.kind.endsWith("All");
  const met = isForAll ? connections : [connections[Math.floor(fault.pick * connections.length)]];
  for (const connection of met) {
    switch (fault.kind) {
      case "cut":
      case "cutAll":
        connection.cut();
        break;
      case "cutAfter":
        connection.cutAfter(fault.bytes);
        break;
      case "truncate":
        connection.truncate(fault.bytes % 4_096);
        break;
      case "halfClose":
        connection.halfClose();
        break;
      case "delay":
      case "delayAll":
        connection.delay(fault.delayMs);
        break;
      case "blackHole":
      case "blackHoleAll":
        connection.blackHole();
    }
  }
  return met;
}

async function endFault(
  proxy: FaultProxy,
  fault: PlannedFault,
  met: readonly ProxiedConnection[],
): Promise<void> {
  switch (fault.kind) {
    case "refuse":
      await proxy.accept();
      break;
    case "delay":
    case "delayAll":
      for (const connection of met) connection.delay(0);
      break;
    case "blackHole":
    case "blackHoleAll":
      for (const connection of met) {
        if (fault.endsInReset) connection.cut();
        else connection.heal();
      }
  }
}
