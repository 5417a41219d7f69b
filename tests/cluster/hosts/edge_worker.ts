/**
 * A reader in a Worker in front of one Durable Object for each resource.
 * @module
 */

import { newCluster } from "@listwatch/cache";
import { bearerTokens, type ReadApi, readApi } from "@listwatch/cache/hono";
import { formatResource } from "@listwatch/cache/client";
import { type HostedApp, type HostOptions, newHostedApp } from "./app.ts";

/** The bindings of the worker. */
interface Environment {
  readonly OPTIONS: string;
  readonly CACHE: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

/** The object that holds a resource. */
export class CacheObject {
  readonly #environment: Environment;
  readonly #name: string;
  #app: HostedApp | undefined;

  constructor(state: { id: { name: string } }, environment: Environment) {
    this.#environment = environment;
    this.#name = state.id.name;
  }

  async fetch(request: Request): Promise<Response> {
    this.#app ??= this.#start();
    await this.#app.synced();
    return this.#app.fetch(request);
  }

  #start(): HostedApp {
    const options: HostOptions = JSON.parse(this.#environment.OPTIONS);
    const { server, token } = options;
    return newHostedApp(
      { server: server!, ...(token !== undefined && { token }) },
      { ...options, resources: options.resources.filter((each) => formatResource(each) === this.#name) },
      new AbortController().signal,
    );
  }
}

let api: ReadApi | undefined;

function newReader({ OPTIONS, CACHE }: Environment): ReadApi {
  const { resources, version, server, token, readerToken } = JSON.parse(OPTIONS) as HostOptions;
  const cluster = newCluster({ server: server!, ...(token !== undefined && { token }) });
  return readApi({
    resources: resources.map((resource) => ({
      resource,
      fetch: (request) => CACHE.get(CACHE.idFromName(formatResource(resource))).fetch(request),
    })),
    ...(readerToken !== undefined &&
      { authenticate: bearerTokens([{ token: readerToken, user: { name: "reader" } }]) }),
    allowAnonymous: true,
    allowSecrets: true,
    ...(version && { version }),
    openApi: (path, { headers, signal }) => cluster.open(path, { headers, signal }),
  });
}

export default {
  async fetch(request: Request, environment: Environment): Promise<Response> {
    api ??= newReader(environment);
    const answer = await api.fetch(request);
    // Else miniflare compresses, for clients that accept it, and holds back the events of watches; it ignores no-transform.
    if (answer.headers.has("Content-Encoding")) return answer;
    const response = new Response(answer.body, answer);
    response.headers.set("Content-Encoding", "identity");
    return response;
  },
};
