/**
 * How long one turn of the event loop is, at most, in what an informer does with all of its
 * objects: one scenario in one process, on Node, where the collector's pauses are known. Runs the
 * library as it is, against the benchmark's server.
 *
 * @module
 */

import process from "node:process";
import { parseArgs } from "node:util";
import {
  type HandlerRegistration,
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import { type Measurement, MEASUREMENT_MARK } from "../lib/measurement.ts";
import { LoopProbe } from "./loop_probe.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
}

type Informer = SharedIndexInformer<Pod, string>;
type Options = SharedIndexInformerOptions<Pod, string>;

/** What is measured, from when on. */
interface Scenario {
  /** Options of the informer. */
  readonly options?: Options;
  /** How many quick handlers there are. */
  readonly handlers?: number;
  /** Whether the handlers take nothing until the end. */
  readonly stalls?: boolean;
  /** Whether the first list counts as well. */
  readonly fromStart?: boolean;
  /** What is done once the first list is stored; resolves when it is over. */
  readonly act?: (informer: Informer, world: World) => Promise<unknown>;
}

/** What a scenario can do. */
interface World {
  readonly objects: number;
  /** How many notifications the handlers took. */
  readonly notified: () => number;
  readonly post: (path: string) => Promise<unknown>;
  readonly until: (isSo: () => boolean) => Promise<void>;
  readonly release: () => void;
}

let isThrowing = false;
const byNode = (pod: Pod) => [pod.spec?.nodeName ?? ""];
const byOwner = (pod: Pod) => [pod.metadata?.name?.split("-")[0] ?? ""];

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "first-list": { fromStart: true },
  "events": {
    fromStart: true,
    handlers: 3,
    act: (_informer, { post }) => post("/control/burst"),
  },
  "events-stalled": {
    fromStart: true,
    handlers: 3,
    stalls: true,
    act: async (informer, { post, until, release }) => {
      await post("/control/burst");
      await until(() => informer.status().lagMs !== undefined && informer.status().phase === "watching");
      const { resourceVersion } = informer.status();
      await post("/control/relist");
      await until(() =>
        informer.status().resourceVersion !== resourceVersion || informer.status().phase === "watching"
      );
      await later(1_500);
      release();
    },
  },
  "resync": {
    // Handlers that have each encoded object decoded are busy for a while.
    options: { resyncPeriodMs: 15_000 },
    handlers: 3,
    act: async (_informer, { objects, notified, until }) => {
      await until(() => notified() > 3 * objects);
      await later(1_500);
    },
  },
  "transform": {
    fromStart: true,
    options: { transform: (pod) => ({ ...pod, metadata: { ...pod.metadata, annotations: {} } }) },
  },
  "throwing": {
    options: {
      indexers: {
        byNode: (pod) => {
          if (isThrowing && pod.metadata?.name?.endsWith("7")) {
            isThrowing = false;
            throw new Error("once");
          }
          return byNode(pod);
        },
      },
    },
    handlers: 3,
    act: async (informer, { post, until }) => {
      const { indexer } = informer;
      informer.observe(() => {});
      const before = indexer.lastStoreSyncResourceVersion();
      isThrowing = true;
      await post("/control/burst"); // so that objects have changed
      await post("/control/relist");
      await until(() => indexer.lastStoreSyncResourceVersion() !== before);
      await later(1_500);
    },
  },
  "add-indexers": { act: (informer) => Promise.resolve(informer.addIndexers({ byOwner })) },
  "add-indexers-in-turns": { act: (informer) => informer.addIndexersInTurns({ byOwner }) },
  "late-handler": {
    act: async (informer, { objects, until }) => {
      let adds = 0;
      informer.addEventHandler({ onAdd: () => void adds++ });
      await until(() => adds === objects);
    },
  },
};

async function measureScenario(
  name: string,
  storage: string,
  server: string,
  objects: number,
): Promise<Measurement> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`there are ${Object.keys(SCENARIOS).join(", ")}`);
  await (await fetch(`${server}/control/stats`)).json(); // loads the runtime's HTTP client
  const pods = newCluster({ server, logger: silentLogger }).resource<Pod>("v1/pods");
  const informer: Informer = new SharedIndexInformer<Pod, string>(pods, {
    indexers: { byNode },
    storage: storage === "short texts" ? shortTexts() : undefined,
    logger: silentLogger,
    ...scenario.options,
  });
  let notified = 0;
  let release = () => {};
  const gate = scenario.stalls ? new Promise<void>((resolve) => release = resolve) : undefined;
  const took = (): void | Promise<void> => {
    notified++;
    return gate;
  };
  const registrations: HandlerRegistration[] = [];
  for (let i = scenario.handlers ?? 1; i > 0; i--) {
    registrations.push(informer.addEventHandler({ onAdd: took, onUpdate: took, onDelete: took }));
  }
  const isIdle = () => registrations.every(({ backlog }) => backlog === 0);
  const probe = new LoopProbe();
  let startMs = performance.now();
  if (scenario.fromStart) probe.start();
  informer.start();
  await informer.synced();
  if (!scenario.fromStart) {
    await until(isIdle);
    await later(200);
    startMs = performance.now();
    probe.start();
    await later(5);
  }
  await scenario.act?.(informer, {
    objects,
    notified: () => notified,
    post: async (path) => await (await fetch(`${server}${path}`, { method: "POST" })).json(),
    until,
    release: () => release(),
  });
  if (scenario.fromStart) await until(isIdle);
  await later(5);
  const syncMs = performance.now() - startMs;
  return { syncMs, stored: informer.indexer.size, ...await probe.stop() };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await later(5);
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const { values } = parseArgs({
  args: process.argv.slice(2),
  strict: false,
  options: { server: { type: "string" }, objects: { type: "string" }, variant: { type: "string" } },
});
const [name, storage = "objects"] = String(values.variant).split("/");
const measured = await measureScenario(name, storage, String(values.server), Number(values.objects)).catch((
  error,
) => ({
  skipped: error instanceof Error ? error.message : String(error),
}));
process.stdout.write(`${MEASUREMENT_MARK}${JSON.stringify(measured)}\n`, () => process.exit(0));
