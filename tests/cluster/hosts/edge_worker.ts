/**
 * A reader in a Worker in front of one Durable Object for each resource.
 * @module
 */

import { newCluster } from "@listwatch/cache";
import { formatResource } from "@listwatch/cache/client";
import { bearerTokens, type ReadApi, readApi } from "@listwatch/cache/hono";
import { ReflectorObject, type ReflectorSettings, upgradeInWorkers } from "@listwatch/cache/workers";
import type { HostOptions } from "./app.ts";

/** The bindings of the worker. */
interface Environment {
  readonly OPTIONS: string;
  readonly CACHE: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

function clusterOf({ server, token }: HostOptions): ReturnType<typeof newCluster> {
  return newCluster({ server: server!, ...(token !== undefined && { token }) });
}

/** The object that holds the resource of its name. */
export class CacheObject extends ReflectorObject<Environment> {
  protected override settings({ OPTIONS }: Environment, name: string | undefined): ReflectorSettings {
    const options: HostOptions = JSON.parse(OPTIONS);
    const resource = options.resources.find((each) => formatResource(each) === name)!;
    return {
      source: clusterOf(options).resource(resource, { keep: "everything" }),
      resource,
      readApi: { allowSecrets: true },
    };
  }
}

let api: ReadApi | undefined;

function newReader({ OPTIONS, CACHE }: Environment): ReadApi {
  const options: HostOptions = JSON.parse(OPTIONS);
  const { resources, version, readerToken } = options;
  const cluster = clusterOf(options);
  return readApi({
    resources: resources.map((resource) => ({
      resource,
      fetch: (request) => CACHE.getByName(formatResource(resource)).fetch(request),
    })),
    ...(readerToken !== undefined &&
      { authenticate: bearerTokens([{ token: readerToken, user: { name: "reader" } }]) }),
    allowAnonymous: true,
    allowSecrets: true,
    ...(version && { version }),
    openApi: (path, { headers, signal }) => cluster.open(path, { headers, signal }),
    upgradeWebSocket: upgradeInWorkers,
  });
}

export default {
  async fetch(request: Request, environment: Environment): Promise<Response> {
    api ??= newReader(environment);
    const answer = await api.fetch(request);
    // Without this, miniflare compresses, for clients that accept it, and holds back the events of watches;
    // it ignores no-transform.
    if (answer.status === 101 || answer.headers.has("Content-Encoding")) return answer;
    const response = new Response(answer.body, answer);
    response.headers.set("Content-Encoding", "identity");
    return response;
  },
};
