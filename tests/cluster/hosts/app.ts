/**
 * The app that every host serves.
 * @module
 */

import { type KubernetesObject, newCluster, type RestConfig, SharedIndexInformer } from "@listwatch/cache";
import { type ApiResource, readApi, type VersionInfo } from "@listwatch/cache/hono";
import { newReflectorBackoff, realClock } from "@listwatch/cache/reflector";

/** The argument of a host, as JSON. */
export interface HostOptions {
  /** The API server: a kubeconfig, or where a host has no files, its URL and a token. */
  readonly kubeconfig?: string;
  readonly server?: string;
  readonly token?: string;
  /** What readers must present. */
  readonly readerToken?: string;
  /** What is cached and served. */
  readonly resources: readonly ApiResource[];
  readonly version?: VersionInfo;
  /** The port to listen on; 0 for any. */
  readonly port: number;
}

/** The served app. */
export interface HostedApp {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Resolves when every resource has its first list. */
  synced(): Promise<void>;
}

/** Makes the informers, starts them, and serves them by the read API until the signal is aborted. */
export function newHostedApp(
  config: RestConfig,
  { resources, version }: HostOptions,
  signal: AbortSignal,
): HostedApp {
  const cluster = newCluster(config);
  // Short delays: a test restarts the upstream and waits for the reflectors.
  const backoff = { durationMs: 200, factor: 1.5, capMs: 1_000 };
  const served = resources.map((resource) => ({
    resource,
    informer: new SharedIndexInformer(cluster.resource<KubernetesObject>(resource, { keep: "everything" }), {
      reflector: { backoff: newReflectorBackoff({ clock: realClock, random: Math.random, backoff }) },
    }),
  }));
  for (const { informer } of served) informer.start(signal);
  const app = readApi({
    resources: served,
    allowAnonymous: true,
    allowSecrets: true,
    signal,
    ...(version && { version }),
    openApi: (path, { headers, signal }) => cluster.open(path, { headers, signal }),
  });
  return {
    fetch: (request) => app.fetch(request),
    synced: () => Promise.all(served.map(({ informer }) => informer.synced())).then(() => {}),
  };
}
