/** The metrics of horizontal pod autoscalers. */

import { at, entryAt, firstOf, itemsAt, scalarText, textAt } from "./fields.ts";

/** The first two metrics of an autoscaler: present and target values. */
export function metricsText(autoscaler: unknown): string {
  const [specs, statuses] = at(autoscaler, "spec.metrics") === undefined
    ? metricsOfV1(autoscaler)
    : [itemsAt(autoscaler, "spec.metrics"), itemsAt(autoscaler, "status.currentMetrics")];
  const shown = specs.map((spec, i) => metric(spec, statuses[i]));
  return shown.length === 0 ? "<none>" : firstOf(shown, { most: 2, separator: ", " });
}

function metric(spec: unknown, status: unknown): string {
  const type = textAt(spec, "type");
  const field = sourceField(type);
  const wanted = at(spec, `${field}.target`);
  const present = at(status, `${field}.current`);
  const quantity = (value: unknown) => scalarText(value, "<nil>");
  const average = scalarText(at(wanted, "averageValue"), "");
  switch (type) {
    case "Pods":
      return `${present === undefined ? "<unknown>" : quantity(at(present, "averageValue"))}/${
        average || "<nil>"
      }`;
    case "External":
    case "Object": {
      if (average !== "") {
        return `${scalarText(at(present, "averageValue"), "<unknown>")}/${average} (avg)`;
      }
      const current = present === undefined ? "<unknown>" : quantity(at(present, "value"));
      return `${current}/${quantity(at(wanted, "value"))}`;
    }
    case "Resource":
    case "ContainerResource": {
      const name = textAt(spec, `${field}.name`);
      if (average !== "") {
        const current = present === undefined ? "<unknown>" : quantity(at(present, "averageValue"));
        return `${name}: ${current}/${average}`;
      }
      const percent = (of: unknown, absent: string) => {
        const value = at(of, "averageUtilization");
        return typeof value === "number" ? `${value}%` : absent;
      };
      return `${name}: ${percent(present, "<unknown>")}/${percent(wanted, "<auto>")}`;
    }
    default:
      return "<unknown type>";
  }
}

/**
 * Specs and statuses of autoscaling/v1 in the form of autoscaling/v2. That version has one metric in fields
 * of its own, and the others in annotations, see
 * https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/autoscaling/v1/conversion.go
 */
function metricsOfV1(autoscaler: unknown): [specs: unknown[], statuses: unknown[]] {
  const specs = annotated(autoscaler, "metrics").map((one) => inV2(one, "target"));
  const target = at(autoscaler, "spec.targetCPUUtilizationPercentage");
  if (typeof target === "number") specs.push(cpu("target", target));
  const statuses = annotated(autoscaler, "current-metrics").map((one) => inV2(one, "current"));
  const current = at(autoscaler, "status.currentCPUUtilizationPercentage");
  if (statuses.length === 0 && typeof current === "number") statuses.push(cpu("current", current));
  return [specs, statuses];
}

function annotated(autoscaler: unknown, name: string): unknown[] {
  try {
    const json = entryAt(autoscaler, "metadata.annotations", `autoscaling.alpha.kubernetes.io/${name}`);
    const found: unknown = JSON.parse(json ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function cpu(field: "target" | "current", averageUtilization: number): unknown {
  return { type: "Resource", resource: { name: "cpu", [field]: { averageUtilization } } };
}

function inV2(metric: unknown, field: "target" | "current"): unknown {
  const type = textAt(metric, "type");
  const source = sourceField(type);
  const value = (name: string) => at(metric, `${source}.${field}${name}`);
  const values = {
    averageValue: value("AverageValue") ?? at(metric, `${source}.averageValue`),
    averageUtilization: value("AverageUtilization"),
    value: value("Value"),
  };
  return { type, [source]: { name: at(metric, `${source}.name`), [field]: values } };
}

/** `ContainerResource` is in the field `containerResource`. */
function sourceField(type: string): string {
  return type.charAt(0).toLowerCase() + type.slice(1);
}
