import type { KubernetesObject } from "../../meta/object.ts";
import { realClock } from "../../util/clock.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { newPlan, type Plan } from "./plan.ts";
import type { DefineControllers } from "./process.ts";
import {
  type Act,
  type Chance,
  type Outcome,
  runWorld,
  type SimulationOptions,
  type WorldOptions,
} from "./simulated_world.ts";

/** The report of a simulation without failures. */
export interface SimulationReport {
  readonly worlds: number;
  readonly from: number;
  /** How many writes the controllers sent in all. */
  readonly writes: number;
}

/**
 * A world in which something was wrong. Its message is the story of the shortest such world that was found.
 */
export class SimulationError extends Error {
  override readonly name: string = "SimulationError";
  /** The failed check, such as `never "two of one name"`. */
  readonly what: string;
  /** The seed of the world: `from` repeats it. */
  readonly seed: number;
  /** The story of the world, a line for each step. */
  readonly story: readonly string[];

  constructor(what: string, message: string, seed: number, story: readonly string[]) {
    super(
      `${what}: ${message}\nThe shortest story of it:\n${story.join("\n")}\n` +
        `Again: simulateController(..., { from: ${seed}, worlds: 1 })`,
    );
    this.what = what;
    this.seed = seed;
    this.story = story;
  }
}

// A long story does not help the reader, and neither does a search of minutes for a shorter one.
const MOST_RUNS_TO_SHRINK = 200;

/**
 * Runs controllers in worlds that their seeds decide, and looks whether what should hold does. In a world
 * users change objects, often several at once, while the program is killed in the middle of a reconcile and
 * started again, is frozen, has a second copy (one leads at a time); while answers are lost, writes meet
 * conflicts, refusals and delays, watches break, come late or from a compacted history, and a restarted
 * program lists from an API server that is behind. Then everything works again, and `eventually` is to hold
 * once nothing is left to do.
 *
 * A world is the same whenever its seed is, request by request, if the controllers ask no other clock than
 * that of the reconcile, and draw no random numbers. Of one that fails, the error has the shortest story that
 * was found.
 * @param define Makes the controllers; called for each start of the program. What it keeps outside of them
 * would survive a crash: what is to survive one is in `memory`.
 * @throws {SimulationError} Something was wrong in a world.
 * @throws {Error} The controllers wrote nothing in any world, so that nothing was tested.
 * @throws {TypeError} There is nothing to do, or nothing to look at.
 *
 * @example
 * ```ts
 * import { type KubernetesObject } from "@listwatch/cache";
 * import { defineController, ownedBy } from "@listwatch/cache/controller";
 * import { simulateController, usersOf } from "@listwatch/cache/testing";
 *
 * const SHOPS = "example.com/v1/shops";
 * const report = await simulateController((cluster) =>
 *   defineController({
 *     name: "shops",
 *     for: cluster.resource(SHOPS),
 *     owns: { configMaps: cluster.resource<KubernetesObject>("v1/configmaps") },
 *     async reconcile(shop, { configMaps }) {
 *       await configMaps.apply({ metadata: { name: `shop-${shop.metadata?.name}`, ...ownedBy(shop) } });
 *     },
 *   }), {
 *   customResources: [{ group: "example.com", version: "v1", resource: "shops", kind: "Shop", namespaced: true }],
 *   worlds: 20,
 *   from: 1,
 *   act: usersOf(SHOPS, (name) => ({ metadata: { name } })),
 *   eventually: {
 *     "each shop has its ConfigMap": (server) =>
 *       server.list(SHOPS).items.length === server.list("v1/configmaps").items.length,
 *   },
 * });
 * console.log(report.worlds); // 20
 * ```
 */
export async function simulateController(
  define: DefineControllers,
  options: SimulationOptions,
): Promise<SimulationReport> {
  const { act, eventually = {}, never = {}, start = () => {}, customResources = [], manager = {} } = options;
  const { worlds = 200, from = 1 + Math.floor(realClock.now()) % 2 ** 30 } = options;
  requireNumbers("simulate", { worlds, from }, { least: 1 });
  const acts = Object.keys(act);
  if (acts.length === 0) throw new TypeError("Cannot simulate: `act` has nothing that users do");
  if (Object.keys(eventually).length + Object.keys(never).length === 0) {
    throw new TypeError("Cannot simulate: give `eventually` or `never`, or nothing is looked at");
  }
  const world: WorldOptions = { define, customResources, manager, start, act, eventually, never };
  let writes = 0;
  for (let seed = from; seed < from + worlds; seed++) {
    const plan = newPlan(seed, acts);
    const outcome = await runWorld(plan, world);
    writes += outcome.writes;
    if (outcome.violation === undefined) continue;
    const { violation, story } = await shortest(plan, outcome, world);
    throw new SimulationError(violation!.what, violation!.message, seed, story);
  }
  if (writes === 0) {
    throw new Error(`The controllers wrote nothing in ${worlds} worlds: nothing was tested; look at \`act\``);
  }
  return { worlds, from, writes };
}

/**
 * The acts of users on the objects of one resource: create, change, delete, under a few names so that names
 * come again.
 * @param make Makes an object of a name; a change takes all of it but the metadata, as a merge patch.
 * @param names The names; three by default.
 */
export function usersOf<T extends KubernetesObject>(
  resource: string,
  make: (name: string, chance: Chance) => T,
  names: readonly string[] = ["a", "b", "c"],
): Readonly<Record<string, Act>> {
  return {
    [`create one of ${resource}`]: (server, chance) => {
      server.create(resource, make(chance.pick(names) ?? "", chance));
    },
    [`change one of ${resource}`]: (server, chance) => {
      const present = chance.pick(server.list(resource).items);
      if (present === undefined) return;
      const { metadata: _, ...changed } = make(present.metadata?.name ?? "", chance);
      server.patch(resource, present, changed);
    },
    [`delete one of ${resource}`]: (server, chance) => {
      const present = chance.pick(server.list(resource).items);
      if (present !== undefined) server.delete(resource, present);
    },
  };
}

/** Leaves out whatever is not needed for the same violation. */
async function shortest(plan: Plan, outcome: Outcome, world: WorldOptions): Promise<Outcome> {
  let best = { plan, outcome };
  let runs = 0;
  const isSame = async (candidate: Plan): Promise<boolean> => {
    if (runs++ >= MOST_RUNS_TO_SHRINK) return false;
    const other = await runWorld(candidate, world);
    if (other.violation?.what !== outcome.violation!.what) return false;
    best = { plan: candidate, outcome: other };
    return true;
  };
  if (plan.copies === 2) await isSame({ ...plan, copies: 1 });
  for (let size = Math.ceil(plan.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.plan.steps.length;) {
      const steps = best.plan.steps.toSpliced(at, size);
      if (!await isSame({ ...best.plan, steps })) at += size;
    }
  }
  return best.outcome;
}
