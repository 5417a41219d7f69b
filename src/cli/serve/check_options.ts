/** Refuses options of `serve` that are wrong or contradict each other. */

import { allowNamespaces } from "../../hono/request/allow_namespaces.ts";
import { checkCors } from "../../hono/request/cors.ts";
import { FRESHNESSES, isFreshness } from "../../hono/read_api_options.ts";
import { errorMessage } from "../../util/errors.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { Projection } from "../../text/field_tree.ts";
import { quote, UsageError } from "../errors.ts";
import { isLoopback } from "../readers/host_guard.ts";
import { checkToken } from "../readers/reader_token.ts";
import { type ServeOptions, STORAGE_NAMES } from "./serve_options.ts";

/**
 * Checks what can be checked without files and without the cluster.
 *
 * @throws {UsageError} An option is wrong, two contradict each other, or everyone on the network could read.
 */
export function checkServeOptions(options: ServeOptions): void {
  for (
    const name of [
      "allowAnonymous",
      "allowSecrets",
      "clusterRbac",
      "metrics",
      "passThrough",
      "passThroughWrites",
    ] as const
  ) {
    const value: unknown = options[name];
    if (value !== undefined && typeof value !== "boolean") {
      throw new UsageError(`${name} must be true or false`);
    }
  }
  if ((options.tlsCert === undefined) !== (options.tlsKey === undefined)) {
    throw new UsageError(
      "A certificate needs its key, and a key its certificate: --tls-cert FILE --tls-key FILE",
    );
  }
  if (options.clusterRbac && (options.source?.kind ?? "embedded") === "embedded") {
    throw new UsageError("--cluster-rbac needs a real cluster: add --kubeconfig or --context");
  }
  const { snapshot } = options;
  if (snapshot !== undefined) {
    if (typeof snapshot !== "string" || snapshot === "") {
      throw new UsageError("snapshot must be the path of a folder");
    }
    if ((options.source?.kind ?? "embedded") === "embedded") {
      throw new UsageError("--snapshot needs a real cluster: add --kubeconfig or --context");
    }
  }
  const { keepAliveMs, shutdownGraceMs } = options;
  orUsageError(() => requireNumbers("serve", { keepAliveMs, shutdownGraceMs }));
  const { maxLagMs, maxWatches, maxWatchesPerClient } = options;
  orUsageError(() =>
    requireNumbers("serve", { maxWatches, maxWatchesPerClient }, { least: 1, mayBeInfinite: true })
  );
  orUsageError(() => requireNumbers("serve", { maxLagMs }, { mayBeInfinite: true }));
  checkCorsOrigins(options);
  const { freshness } = options;
  if (freshness !== undefined && !isFreshness(freshness)) {
    throw new UsageError(`freshness must be ${FRESHNESSES.join(", ")}, not ${quote(String(freshness))}`);
  }
  const { storage } = options;
  if (storage !== undefined && !STORAGE_NAMES.includes(storage)) {
    throw new UsageError(`storage must be ${STORAGE_NAMES.join(", ")}, not ${quote(String(storage))}`);
  }
  checkPassThrough(options);
  checkReaders(options);
  orUsageError(() => new Projection({ drop: options.drop ?? [] }));
}

function checkCorsOrigins({ corsOrigins, token, tokenFile, clusterRbac }: ServeOptions): void {
  if (corsOrigins === undefined) return;
  if (!corsOrigins.includes("*")) return orUsageError(() => checkCors({ origins: corsOrigins }));
  if (corsOrigins.length > 1) {
    throw new UsageError("--cors-origin '*' allows every origin: remove the others");
  }
  if (token !== undefined || tokenFile !== undefined || clusterRbac) return;
  throw new UsageError(
    "--cors-origin '*' needs --token-file, --token or --cluster-rbac: " +
      "otherwise every page that a browser shows could read the whole cache",
  );
}

function checkPassThrough(options: ServeOptions): void {
  const { passThrough, passThroughWrites, token, tokenFile } = options;
  if (passThroughWrites && !passThrough) throw new UsageError("--pass-through-writes needs --pass-through");
  if (!passThrough) return;
  if ((options.source?.kind ?? "embedded") === "embedded") {
    throw new UsageError("--pass-through needs a real cluster: add --kubeconfig or --context");
  }
  if (token !== undefined || tokenFile !== undefined) {
    throw new UsageError(
      "--pass-through needs readers that present tokens of the cluster: use --cluster-rbac instead of a token of the cache",
    );
  }
}

function checkReaders(options: ServeOptions): void {
  const { host = "127.0.0.1", token, tokenFile, allowAnonymous, clusterRbac } = options;
  const { readerNamespaces, readerResources } = options;
  const needsToken = token !== undefined || tokenFile !== undefined;
  if (token !== undefined && tokenFile !== undefined) {
    throw new UsageError("--token and --token-file contradict each other: remove one of them");
  }
  if (needsToken && allowAnonymous) {
    throw new UsageError("A token and --allow-anonymous contradict each other: remove one of them");
  }
  if (clusterRbac && (needsToken || allowAnonymous)) {
    throw new UsageError(
      "With --cluster-rbac, readers present tokens of the cluster: remove --token, --token-file and --allow-anonymous",
    );
  }
  if (token !== undefined) checkToken(token);
  if (!isLoopback(host) && !needsToken && !clusterRbac && !allowAnonymous) {
    throw new UsageError(
      `Cannot listen on ${host}: every client that reaches it could read the whole cache; ` +
        "set a token with --token-file, use --cluster-rbac, or pass --allow-anonymous",
    );
  }
  if (readerResources !== undefined && readerNamespaces === undefined) {
    throw new UsageError("--reader-resources needs --reader-namespaces");
  }
  if (readerNamespaces !== undefined) orUsageError(() => allowNamespaces(readerNamespaces));
}

function orUsageError(check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new UsageError(errorMessage(error));
  }
}
