/**
 * One page of the metrics of several processes.
 * @module
 */

/** Measurements of one process, in the text format of Prometheus as `PrometheusMetrics` writes it. */
export interface MetricsPart {
  /** The value of the label `worker`; absent for those of the parent. */
  readonly worker?: number;
  readonly text: string;
}

/** Joins pages: each name keeps one help text and type, and the measurements of a worker get its label. */
export function joinMetrics(parts: readonly MetricsPart[]): string {
  const families = new Map<string, { readonly head: string; samples: string }>();
  for (const { worker, text } of parts) {
    let family = { head: "", samples: "" };
    for (const block of text.split(/^(?=# HELP )/m)) {
      const [help, type, ...samples] = block.split("\n");
      if (type === undefined) continue;
      const name = help.split(" ")[2];
      family = families.get(name) ?? { head: `${help}\n${type}\n`, samples: "" };
      families.set(name, family);
      for (const sample of samples) if (sample !== "") family.samples += `${labelled(sample, worker)}\n`;
    }
  }
  return Array.from(families.values(), ({ head, samples }) => head + samples).join("");
}

function labelled(sample: string, worker: number | undefined): string {
  if (worker === undefined) return sample;
  const label = `worker="${worker}"`;
  return sample.replace(
    /^([^{ ]+)(\{?)/,
    (_, name: string, brace: string) => brace === "" ? `${name}{${label}}` : `${name}{${label},`,
  );
}
