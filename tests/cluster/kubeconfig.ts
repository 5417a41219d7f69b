/**
 * From a kubeconfig file to settings of the client.
 * @module
 */

import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { RestConfig } from "@listwatch/cache";
import { parse } from "yaml";

interface Kubeconfig {
  "current-context"?: string;
  contexts?: { name: string; context: { cluster: string; user: string } }[];
  clusters?: { name: string; cluster: Record<string, string> }[];
  users?: { name: string; user: Record<string, string> }[];
}

/** Settings of the client, and what ends its connections. */
export interface LoadedKubeconfig {
  readonly path: string;
  readonly config: RestConfig;
  /** The same server, without credentials. */
  readonly anonymous: RestConfig;
  close(): void;
}

/**
 * Reads the current context of a kubeconfig: an authority, and a token or a client certificate, in the file or in
 * files it names.
 */
export async function loadKubeconfig(path: string): Promise<LoadedKubeconfig> {
  const kubeconfig = parse(await readFile(path, "utf8")) as Kubeconfig;
  const name = kubeconfig["current-context"];
  const context = kubeconfig.contexts?.find((one) => one.name === name)?.context;
  if (context === undefined) throw new Error(`${path} has no context ${JSON.stringify(name ?? "")}`);
  const cluster = kubeconfig.clusters?.find((one) => one.name === context.cluster)?.cluster ?? {};
  const user = kubeconfig.users?.find((one) => one.name === context.user)?.user ?? {};
  const fileOrData = async (from: Record<string, string>, field: string): Promise<string | undefined> => {
    const data = from[`${field}-data`];
    if (data !== undefined) return new TextDecoder().decode(Uint8Array.fromBase64(data));
    const file = from[field];
    return file === undefined ? undefined : await readFile(resolve(dirname(path), file), "utf8");
  };
  const ca = await fileOrData(cluster, "certificate-authority");
  const cert = await fileOrData(user, "client-certificate");
  const key = await fileOrData(user, "client-key");
  const token = user.tokenFile === undefined ? user.token : await readFile(user.tokenFile, "utf8");
  const trusting = ca === undefined ? {} : { caCerts: [ca] };
  const anonymous = Deno.createHttpClient(trusting);
  const client = cert === undefined || key === undefined
    ? anonymous
    : Deno.createHttpClient({ ...trusting, cert, key });
  return {
    path,
    config: {
      server: cluster.server,
      fetch: (url, init) => fetch(url, { ...init, client } as RequestInit),
      ...(token !== undefined && { token }),
    },
    anonymous: {
      server: cluster.server,
      fetch: (url, init) => fetch(url, { ...init, client: anonymous } as RequestInit),
    },
    close() {
      anonymous.close();
      if (client !== anonymous) client.close();
    },
  };
}
