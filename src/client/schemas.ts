/**
 * The schemas, and zod with them, loaded with the first request: zod is 80 modules, a third of the time that
 * an import of the library would take.
 *
 * @module
 */

import type { KubernetesSchemas } from "../schema/checks.ts";

let loading: Promise<KubernetesSchemas> | undefined;

/**
 * Loads the schemas once. After a failure, as of a network that serves modules, the next call tries again.
 */
export function loadSchemas(): Promise<KubernetesSchemas> {
  return loading ??= import("../schema/kubernetes_schemas.ts").catch((error) => {
    loading = undefined;
    throw error;
  });
}
