/** Simulated worlds of the Widget controller, in as many workers as there are cores. */

import { simulateController, SimulationError } from "@listwatch/cache/testing";
import { CORRECT } from "../../tests/testing/controllers/controllers.ts";
import { WIDGET_RESOURCE } from "../../tests/widgets.ts";

/** Consecutive seeds. */
interface Seeds {
  readonly from: number;
  readonly count: number;
}

/** How the worlds of some seeds ended. */
export interface ControllerWorlds {
  readonly worlds: number;
  /** How many writes the controllers sent, in the worlds that ended well. */
  readonly writes: number;
  /** The stories of the others. */
  readonly failures: readonly string[];
}

// The seeds of a worker at a time: so few that the workers end at about the same time.
const SEEDS_AT_ONCE = 25;

/** Simulates the worlds of these seeds; with `failFast` up to the first that fails. */
export async function simulateControllers(
  { from, count, failFast = false }: Seeds & { readonly failFast?: boolean },
): Promise<ControllerWorlds> {
  const left: Seeds[] = [];
  for (let done = 0; done < count; done += SEEDS_AT_ONCE) {
    left.push({ from: from + done, count: Math.min(SEEDS_AT_ONCE, count - done) });
  }
  const sum = { worlds: 0, writes: 0, failures: [] as string[] };
  const work = async (): Promise<void> => {
    const worker = new Worker(import.meta.url, { type: "module", name: WORKER });
    try {
      for (let seeds = left.shift(); seeds !== undefined; seeds = left.shift()) {
        // deno-lint-ignore no-await-in-loop -- a worker has one task at a time
        const { worlds, writes, failures } = await ask(worker, seeds);
        sum.worlds += worlds;
        sum.writes += writes;
        sum.failures.push(...failures);
        if (failFast && sum.failures.length > 0) left.length = 0;
      }
    } finally {
      worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: navigator.hardwareConcurrency }, work));
  return sum;
}

function ask(worker: Worker, seeds: Seeds): Promise<ControllerWorlds> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<ControllerWorlds>) => resolve(data);
    worker.onerror = (event) => reject(event.error ?? new Error(event.message));
    worker.postMessage(seeds);
  });
}

const WORKER = "controller worlds";

async function worldsOf({ from, count }: Seeds): Promise<ControllerWorlds> {
  const [{ define, expected }] = CORRECT;
  const sum = { worlds: count, writes: 0, failures: [] as string[] };
  const end = from + count;
  for (let seed = from; seed < end;) {
    try {
      const options = { ...expected, customResources: [WIDGET_RESOURCE], from: seed, worlds: end - seed };
      // deno-lint-ignore no-await-in-loop -- a world has the process for itself
      sum.writes += (await simulateController(define, options)).writes;
      break;
    } catch (error) {
      if (!(error instanceof SimulationError)) throw error;
      sum.failures.push(error.message);
      seed = error.seed + 1;
    }
  }
  return sum;
}

interface WorkerScope {
  readonly name: string;
  onmessage: ((event: MessageEvent<Seeds>) => void) | null;
  postMessage(message: ControllerWorlds): void;
}

if ("WorkerGlobalScope" in globalThis && globalThis.name === WORKER) {
  const scope = globalThis as unknown as WorkerScope;
  scope.onmessage = async ({ data }) => scope.postMessage(await worldsOf(data));
}
