/**
 * Serves the app in workerd. One Durable Object has the informers: what
 * one of its requests starts, the others may use.
 * @module
 */

import { type HostedApp, type HostOptions, newHostedApp } from "./app.ts";

/** The bindings of the worker. */
interface Environment {
  readonly OPTIONS: string;
  readonly CACHE: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

/** The object that holds the informers. */
export class CacheObject {
  readonly #environment: Environment;
  #app: HostedApp | undefined;

  constructor(_state: unknown, environment: Environment) {
    this.#environment = environment;
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
      options,
      new AbortController().signal,
    );
  }
}

export default {
  async fetch(request: Request, { CACHE }: Environment): Promise<Response> {
    const answer = await CACHE.get(CACHE.idFromName("cache")).fetch(request);
    const response = new Response(answer.body, answer);
    // Without this, miniflare compresses, for clients that accept it, and holds back the events of watches;
    // it ignores no-transform.
    if (!response.headers.has("Content-Encoding")) response.headers.set("Content-Encoding", "identity");
    return response;
  },
};
