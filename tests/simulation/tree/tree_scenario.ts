/**
 * The scenario of a tree of caches, made from a seed alone, as readable data.
 * @module
 */

import { SELECTORS } from "../indices.ts";
import { SeededRandom } from "../seeded_random.ts";
import type { Breakage, LinkState } from "./link.ts";
import type { DiskFate } from "./disk.ts";
import type { NodeConfig } from "./node.ts";
import { RESOURCE } from "./origin.ts";
import type { TreeReaderConfig } from "./reader.ts";

/** One action. */
export type TreeAction =
  | { readonly do: "put"; readonly key: string; readonly app: string; readonly value: number }
  | { readonly do: "delete"; readonly key: string }
  | { readonly do: "tick"; readonly count: number }
  | { readonly do: "bookmark" }
  | { readonly do: "compact" }
  | { readonly do: "freeze"; readonly server: number; readonly ms: number }
  | { readonly do: "lag"; readonly server: number; readonly ms: number }
  | { readonly do: "restart"; readonly server: number; readonly downMs: number }
  | { readonly do: "restore"; readonly back: number; readonly restarts: boolean; readonly filters: boolean }
  | {
    readonly do: "kill";
    readonly node: number;
    readonly how: Breakage;
    readonly downMs: number;
    /** The node that is reflected from then on. */
    readonly upstream: number;
    readonly disk: DiskFate;
  }
  | {
    readonly do: "stop";
    readonly node: number;
    readonly downMs: number;
    readonly upstream: number;
    readonly disk: DiskFate;
  }
  | { readonly do: "cut"; readonly link: number; readonly how: Breakage }
  | { readonly do: "heal"; readonly link: number }
  | { readonly do: "block"; readonly link: number; readonly state: LinkState; readonly ms: number }
  | {
    readonly do: "slow";
    readonly link: number;
    readonly latencyMs: readonly [number, number];
    readonly ms: number;
  }
  | { readonly do: "split"; readonly region: number; readonly state: LinkState; readonly ms: number };

/** A step and its time, in milliseconds from the start. */
export interface TreeStep {
  readonly atMs: number;
  readonly action: TreeAction;
}

/** The scenario of a tree. */
export interface TreeScenario {
  readonly seed: number;
  readonly faults: readonly TreeFault[];
  readonly firstRevision: number;
  readonly servers: number;
  readonly windowRevisions: number;
  readonly listsFromCache: boolean;
  readonly nodes: readonly NodeConfig[];
  readonly readers: readonly TreeReaderConfig[];
  readonly steps: readonly TreeStep[];
  /** When faults stop, in milliseconds from the start. */
  readonly calmMs: number;
}

/** The faults that a tree may have. */
export const TREE_FAULTS = [
  "kill",
  "stop",
  "cut",
  "block",
  "slow",
  "split",
  "compact",
  "lag",
  "restart",
  "restore",
  "outage",
] as const;

/** One of {@linkcode TREE_FAULTS}. */
export type TreeFault = (typeof TREE_FAULTS)[number];

const NAMESPACES = ["a", "b"];
const APPS = ["web", "db", "api"];

/** Makes the scenario of a seed. */
export function newTreeScenario(seed: number): TreeScenario {
  const random = new SeededRandom(seed ^ 0x7ee7ee);
  const faults = TREE_FAULTS.filter((fault) => random.chance(RARE.includes(fault) ? 0.08 : 0.3));
  const nodes = newNodes(random);
  const readers = Array.from({ length: random.pick([1, 2, 2, 3]) }, (_, n) => newReader(random, n));
  const servers = random.pick([1, 2]);
  const steps = newSteps(random, { faults, nodes, readers, servers });
  const last = steps.at(-1)?.atMs ?? 0;
  const brief = briefLives(new SeededRandom(seed ^ BRIEF_SALT), { servers, lastMs: last });
  return {
    seed,
    faults,
    firstRevision: random.pick([5, 95, 990, 99_990]),
    servers,
    windowRevisions: random.pick([4, 15, 100]),
    listsFromCache: random.chance(0.85),
    nodes,
    readers,
    steps: brief.concat(steps).sort((a, b) => a.atMs - b.atMs),
    calmMs: Math.max(last, 0) + random.int(0, 2_000),
  };
}

// Rare faults: they are long, or leave little that can be judged.
const RARE: readonly TreeFault[] = ["restore", "outage"];

function newNodes(random: SeededRandom): NodeConfig[] {
  const nodes: NodeConfig[] = [];
  const add = (level: number, upstreams: readonly number[]) => {
    const upstream = random.pick(upstreams);
    const above = nodes[upstream];
    const isNarrow = above !== undefined && random.chance(0.15);
    nodes.push({
      name: `${level === 1 ? "object" : "relay"}-${nodes.length}`,
      region: level === 1 ? 0 : level === 2 || random.chance(0.3) ? random.int(0, 2) : above.region,
      upstream,
      scope: above !== undefined && above.scope.namespace !== ""
        ? above.scope
        : { resource: RESOURCE, namespace: isNarrow ? "a" : "", app: "" },
      freshness: random.pick(["consistent", "consistent", "stale-if-error", "as-is"] as const),
      useWatchList: random.chance(0.6),
      pageSize: random.pick([0, 0, 2, 500]),
      storage: random.pick(["objects", "short texts", "plain"] as const),
      eventWindow: random.pick([3, 20, 4_096, 4_096]),
      saves: random.pick(["none", "later", "in the turn"] as const),
      seed: random.int(0, 2 ** 31),
    });
    return nodes.length - 1;
  };
  const first = Array.from({ length: random.pick([1, 1, 2]) }, () => add(1, [-1]));
  const second = Array.from({ length: random.pick([1, 1, 2]) }, () => add(2, first));
  for (let count = random.pick([0, 0, 1]); count > 0; count--) add(3, second);
  return nodes;
}

function newReader(random: SeededRandom, n: number): TreeReaderConfig {
  return {
    name: `reader-${n}`,
    region: random.int(0, 2),
    namespace: random.chance(0.25) ? "a" : "",
    selector: random.chance(0.4) ? random.int(0, SELECTORS.length - 1) : -1,
    follows: random.chance(0.7),
    hopMs: random.pick([700, 4_000, 12_000]),
    limit: random.pick([1, 2, 7]),
    isStrict: random.chance(0.5),
    readMs: random.pick([0, 0, 0, 50, 1_500]),
    seed: random.int(0, 2 ** 31),
  };
}

// None of the trees that have found something has it: they stay as they were.
const BRIEF_SALT = 0xb20c3;

/** Objects that are created and deleted while a server does not follow: no list shows them. */
function briefLives(
  random: SeededRandom,
  { servers, lastMs }: { readonly servers: number; readonly lastMs: number },
): TreeStep[] {
  if (!random.chance(0.2)) return [];
  return Array.from({ length: random.int(1, 4) }, (_, i): TreeStep[] => {
    const atMs = random.int(0, Math.max(lastMs, 1));
    const key = `${random.pick(NAMESPACES)}/n${random.int(5, 6)}`;
    const server = random.int(0, servers - 1);
    const ms = random.pick([500, 3_000, 8_000]);
    return [
      { atMs, action: { do: "freeze", server, ms } },
      { atMs, action: { do: "put", key, app: random.pick(APPS), value: 500 + i } },
      { atMs: atMs + random.int(0, ms), action: { do: "delete", key } },
    ];
  }).flat();
}

/** Nodes that a node may reflect in place of its own upstream. */
function upstreamsOf(nodes: readonly NodeConfig[], node: number): number[] {
  const { upstream, scope } = nodes[node];
  if (upstream < 0) return [-1];
  const isFirst = (index: number) => nodes[index].upstream < 0;
  const others = nodes.flatMap((other, index) => {
    const contains = other.scope.namespace === "" || other.scope.namespace === scope.namespace;
    return index < node && isFirst(index) === isFirst(upstream) && contains ? [index] : [];
  });
  return [upstream, ...others];
}

interface Making {
  readonly faults: readonly TreeFault[];
  readonly nodes: readonly NodeConfig[];
  readonly readers: readonly TreeReaderConfig[];
  readonly servers: number;
}

function newSteps(random: SeededRandom, making: Making): TreeStep[] {
  const steps: TreeStep[] = [];
  let atMs = 0;
  let value = 0;
  const write = (): TreeAction => {
    const key = `${random.pick(NAMESPACES)}/n${random.int(0, 4)}`;
    return random.chance(0.7)
      ? { do: "put", key, app: random.pick(APPS), value: value++ }
      : { do: "delete", key };
  };
  const makers = faultSteps(random, making, write);
  for (let i = random.int(0, 8); i > 0; i--) steps.push({ atMs: -1, action: write() });
  for (let i = random.int(10, 24); i > 0; i--) {
    atMs += random.pick([1, 20, 300, 1_000, 3_000]);
    if (random.chance(0.02)) atMs += random.int(20, 60) * 1_000;
    const roll = random.next();
    if (roll < 0.55 || makers.length === 0) {
      for (let n = random.pick([1, 1, 1, 2, 5]); n > 0; n--) steps.push({ atMs, action: write() });
    } else if (roll < 0.6) {
      steps.push({ atMs, action: { do: "tick", count: random.int(1, 20) } });
    } else if (roll < 0.63) {
      steps.push({ atMs, action: { do: "bookmark" } });
    } else {
      const startMs = atMs;
      const { steps: made, lastsMs = 0 } = random.pick(makers)();
      for (const { atMs: afterMs, action } of made) steps.push({ atMs: startMs + afterMs, action });
      atMs += lastsMs;
    }
  }
  return steps.sort((a, b) => a.atMs - b.atMs);
}

interface Made {
  readonly steps: readonly TreeStep[];
  /** For how long nothing else happens. */
  readonly lastsMs?: number;
}

/** For each fault of this tree, the steps that cause it. */
function faultSteps(
  random: SeededRandom,
  { faults, nodes, readers, servers }: Making,
  write: () => TreeAction,
): (() => Made)[] {
  const makers: (() => Made)[] = [];
  const node = () => random.int(0, nodes.length - 1);
  const link = () => random.int(0, nodes.length + readers.length - 1);
  const now = (...actions: TreeAction[]): Made => ({ steps: actions.map((action) => ({ atMs: 0, action })) });
  const breakage = () => random.pick(["reset", "reset", "silent"] as const);
  const state = () => random.pick(["refused", "refused", "silent"] as const);
  const fate = () => random.pick(["kept", "kept", "kept", "lost", "older"] as const);
  const server = () => random.int(0, servers - 1);
  const writes = (ms: number): TreeStep[] =>
    Array.from({ length: random.int(0, 3) }, () => ({ atMs: random.int(1, ms), action: write() }));
  const has = (fault: TreeFault) => faults.includes(fault);
  if (has("kill")) {
    makers.push(() => {
      const index = node();
      const downMs = random.pick([1, 200, 2_000, 20_000]);
      const upstream = random.pick(upstreamsOf(nodes, index));
      const action: TreeAction = { do: "kill", node: index, how: breakage(), downMs, upstream, disk: fate() };
      return { steps: [{ atMs: 0, action }, ...writes(downMs)] };
    });
  }
  if (has("stop")) {
    makers.push(() => {
      const index = node();
      const downMs = random.pick([200, 2_000, 20_000]);
      const upstream = random.pick(upstreamsOf(nodes, index));
      const action: TreeAction = { do: "stop", node: index, downMs, upstream, disk: fate() };
      return { steps: [{ atMs: 0, action }, ...writes(downMs)] };
    });
  }
  if (has("cut")) {
    makers.push(() => now({ do: "cut", link: link(), how: "reset" }));
    makers.push(() => {
      const index = link();
      return {
        steps: [
          { atMs: 0, action: { do: "cut", link: index, how: "silent" } },
          { atMs: random.int(100, 60_000), action: { do: "heal", link: index } },
        ],
      };
    });
  }
  if (has("block")) {
    makers.push(() => {
      const index = link();
      const ms = random.pick([500, 5_000, 30_000]);
      return {
        steps: [
          { atMs: 0, action: { do: "block", link: index, state: state(), ms } },
          { atMs: 0, action: { do: "cut", link: index, how: breakage() } },
          ...writes(ms),
        ],
      };
    });
  }
  if (has("slow")) {
    makers.push(() => {
      const latencyMs = random.pick([[50, 500], [500, 2_500]] as const);
      return now({ do: "slow", link: link(), latencyMs, ms: random.pick([2_000, 20_000]) });
    });
  }
  if (has("split")) {
    makers.push(() => {
      const ms = random.pick([1_000, 20_000, 60_000]);
      const action: TreeAction = { do: "split", region: random.int(1, 2), state: state(), ms };
      return { steps: [{ atMs: 0, action }, ...writes(ms)] };
    });
  }
  if (has("compact")) {
    makers.push(() => {
      const first = random.int(0, nodes.filter(({ upstream }) => upstream < 0).length - 1);
      return {
        steps: [
          { atMs: 0, action: { do: "cut", link: first, how: "reset" } },
          ...Array.from({ length: random.int(1, 4) }, () => ({ atMs: 0, action: write() })),
          { atMs: 0, action: { do: "compact" } },
        ],
      };
    });
  }
  if (has("lag")) {
    makers.push(() => now({ do: "lag", server: server(), ms: random.pick([5, 100, 2_000]) }));
    makers.push(() => now({ do: "freeze", server: server(), ms: random.int(1_000, 15_000) }));
  }
  if (has("restart")) {
    makers.push(() => now({ do: "restart", server: server(), downMs: random.pick([1, 500, 5_000]) }));
  }
  if (has("restore")) {
    let isRestored = false;
    makers.push(() => {
      if (isRestored) return now({ do: "bookmark" });
      isRestored = true;
      const lost = random.pick([3, 30]);
      const restarts = random.chance(0.5);
      return {
        steps: [
          { atMs: 0, action: { do: "tick", count: lost } },
          ...writes(1_000),
          {
            atMs: 2_000,
            action: { do: "restore", back: random.int(1, lost + 5), restarts, filters: random.chance(0.5) },
          },
        ],
      };
    });
  }
  if (has("outage")) {
    let isOver = false;
    makers.push(() => {
      if (isOver) return now({ do: "bookmark" });
      isOver = true;
      const ms = random.int(10, 60) * 60_000;
      const index = node();
      const action: TreeAction = { do: "block", link: index, state: state(), ms };
      return {
        steps: [
          { atMs: 0, action },
          { atMs: 0, action: { do: "cut", link: index, how: breakage() } },
          ...writes(ms),
        ],
        lastsMs: ms,
      };
    });
  }
  return makers;
}
