/** Faults of metrics in the text of Prometheus. */

import type { SuiteMutation } from "../mutant.ts";

export const METRICS_FAULTS: readonly SuiteMutation[] = [
  {
    name: "metrics: a histogram with an odd name has all values in its first bucket",
    file: "src/metrics/prometheus.ts",
    find: "const buckets = this.#families.get(name)?.buckets",
    replace: "const buckets = this.#byName.get(name)?.buckets",
    test: "tests/hono/health/metrics_test.ts",
  },
  {
    name: "metrics: the name of a member of objects has no type",
    file: "src/metrics/prometheus.ts",
    find: "Object.hasOwn(FAMILIES, name) ? FAMILIES[name] : undefined",
    replace: "FAMILIES[name]",
    test: "tests/hono/health/metrics_test.ts",
  },
  {
    name: "metrics: labels may have any number of values",
    file: "src/metrics/prometheus.ts",
    find: "      if (family.series.size >= MOST_SERIES) return undefined;\n",
    replace: "",
    test: "tests/hono/health/metrics_test.ts",
  },
];
