/**
 * A Worker whose Durable Object keeps a copy of one resource.
 * @module
 */

import { type KubernetesObject, newCluster } from "@listwatch/cache";
import { newReflectorBackoff, realClock } from "@listwatch/cache/reflector";
import { ReflectorObject, type ReflectorSettings } from "@listwatch/cache/workers";

/** What the object caches, as JSON in the binding `OPTIONS`. */
export interface WorkerOptions {
  readonly server: string;
  readonly token?: string;
  readonly resource: `v1/${Lowercase<string>}`;
  readonly namespace?: string;
  /** Fields by which it has an index each. */
  readonly fields?: readonly string[];
}

interface Environment {
  readonly OPTIONS: string;
  readonly OBJECT: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

/** The object. */
export class CacheObject extends ReflectorObject<Environment> {
  protected override settings({ OPTIONS }: Environment): ReflectorSettings {
    const { server, token, resource, namespace }: WorkerOptions = JSON.parse(OPTIONS);
    const cluster = newCluster({ server, ...(token !== undefined && { token }) });
    const backoff = { durationMs: 100, factor: 1.5, capMs: 500 };
    return {
      source: cluster.resource<KubernetesObject>(resource, {
        keep: "everything",
        ...(namespace !== undefined && { namespace }),
      }),
      resource,
      informer: {
        // Short delays: a test restarts the upstream and waits for the reflector.
        reflector: { backoff: newReflectorBackoff({ clock: realClock, random: Math.random, backoff }) },
      },
      readApi: { allowSecrets: true, freshness: "as-is" },
    };
  }
}

export default {
  async fetch(request: Request, { OBJECT }: Environment): Promise<Response> {
    const answer = await OBJECT.get(OBJECT.idFromName("production")).fetch(request);
    const response = new Response(answer.body, answer);
    // Without this, miniflare compresses, for clients that accept it, and holds back the events of watches.
    if (!response.headers.has("Content-Encoding")) response.headers.set("Content-Encoding", "identity");
    return response;
  },
};
