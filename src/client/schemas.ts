/** The schemas, and zod with them: 80 modules, which are loaded with the first request. */

import type { KubernetesSchemas } from "../schema/checks.ts";
import { inRealTime } from "../util/clock.ts";

let loading: Promise<KubernetesSchemas> | undefined;

export function loadSchemas(): Promise<KubernetesSchemas> {
  return loading ??= inRealTime(import("../schema/kubernetes_schemas.ts")).catch((error) => {
    loading = undefined;
    throw error;
  });
}
