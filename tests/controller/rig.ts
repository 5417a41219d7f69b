/** A controller of Widgets, and a manager that runs it against an in-memory API server. */

import { type Cluster, type KubernetesObject, newCluster } from "@listwatch/cache";
import {
  type ControllerDefinition,
  defineController,
  Manager,
  type ManagerOptions,
  ownedBy,
} from "@listwatch/cache/controller";
import type { FetchFunction } from "@listwatch/cache/client";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

export interface Widget extends KubernetesObject {
  readonly spec?: { readonly color?: string };
  readonly status?: { readonly ready?: boolean; readonly color?: string };
}

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

export function widget(name: string, color: string, meta: KubernetesObject["metadata"] = {}): Widget {
  return { metadata: { namespace: "shop", name, ...meta }, spec: { color } };
}

export const configMapName = ({ metadata }: Widget): string => `widget-${metadata?.name}`;

/** Makes a ConfigMap for each Widget. */
export function widgetController(cluster: Cluster): ControllerDefinition {
  return defineController({
    name: "widgets",
    for: cluster.resource<Widget>(WIDGETS),
    owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps") },
    workers: 4,
    when: "generationOrMetadata",
    async reconcile(object, { configMaps }) {
      const color = object.spec?.color ?? "none";
      await configMaps.apply({
        metadata: { name: configMapName(object), ...ownedBy(object) },
        data: { color },
      });
      return { status: { ready: true, color } };
    },
  });
}

export interface Rig extends AsyncDisposable {
  readonly server: InMemoryApiServer;
  readonly cluster: Cluster;
  readonly clock: FakeClock;
  readonly manager: Manager;
  readonly lines: string[];
  /** How the manager's run ended. */
  readonly ended: Promise<unknown>;
  /** Moves the time until the condition holds. */
  until(isSo: () => boolean, withinMs?: number): Promise<void>;
  /** The requests that write, as `PUT /path`. */
  writes(): string[];
}

/** Watches of a server whose events can be held back, as by a slow API server. */
export class SlowWatches {
  readonly #server: InMemoryApiServer;
  readonly #match: (path: string) => boolean;
  #waiting: (() => void)[] | undefined;

  constructor(server: InMemoryApiServer, match: (path: string) => boolean) {
    this.#server = server;
    this.#match = match;
  }

  readonly fetch: FetchFunction = async (url, init) => {
    const response = await this.#server.fetch(url, init);
    const { pathname, searchParams } = new URL(url);
    if (!searchParams.has("watch") || !this.#match(pathname) || response.body === null) return response;
    const held = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: async (chunk, controller) => {
        if (this.#waiting !== undefined) await new Promise<void>((go) => this.#waiting!.push(go));
        controller.enqueue(chunk);
      },
    });
    response.body.pipeTo(held.writable).catch(() => {});
    return new Response(held.readable, response);
  };

  /** Holds back all events from now on. */
  hold(): void {
    this.#waiting ??= [];
  }

  /** Everything arrives. */
  release(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const go of waiting) go();
  }
}

/** Starts a manager. */
export function startRig(
  define: (cluster: Cluster) => ControllerDefinition | readonly ControllerDefinition[],
  options: Partial<ManagerOptions> = {},
  shared: {
    readonly server?: InMemoryApiServer;
    readonly clock?: FakeClock;
    readonly fetch?: (server: InMemoryApiServer) => FetchFunction;
  } = {},
): Rig {
  const clock = shared.clock ?? new FakeClock(Date.UTC(2026, 0, 1));
  const server = shared.server ?? new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
  const fetch = shared.fetch?.(server) ?? server.fetch;
  const cluster = newCluster({ server: "http://in-memory", fetch, clock });
  const lines: string[] = [];
  const log = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { debug: () => {}, info: log("info"), warn: log("warn"), error: log("error") };
  const manager = new Manager(cluster, {
    controllers: [define(cluster)].flat(),
    clock,
    random: () => 0.5,
    logger,
    ...options,
  });
  const ended = manager.run().then(() => "ended", (error: unknown) => error);
  return {
    server,
    cluster,
    clock,
    manager,
    lines,
    ended,
    async until(isSo, withinMs = 60_000) {
      for (let ms = 0; ms < withinMs && !isSo(); ms += 5) await clock.advance(5);
      assert.ok(isSo(), `not within ${withinMs} ms: ${isSo}\n${lines.join("\n")}`);
    },
    writes: () =>
      server.requests.filter(({ method }) => method !== "GET").map(({ method, path }) => `${method} ${path}`),
    async [Symbol.asyncDispose]() {
      const stopped = manager.stop();
      await clock.advance(30_000);
      await stopped;
      if (shared.server === undefined) server.close();
    },
  };
}
