/**
 * The tables, and the page that has them.
 * @module
 */

import { join } from "node:path";
import { markdownTable } from "../../benchmarks/lib/table.ts";
import { ROOT } from "../lib/gate.ts";
import type { Fault } from "./faults.ts";
import type { Outcome } from "./world.ts";

/** The path of the page. */
export const PAGE: string = join(ROOT, "docs", "faults.md");

const HEADER = ["client", "missed", "never were", "notice", "recover", "slowest", "requests", "memory"];

/** What happened in one fault. */
export function faultSection(fault: Fault, outcomes: readonly Outcome[]): string {
  const rows = outcomes.map((outcome) => {
    const { client, ended, missed, impossible, noticeMs, slowestMs, requests, memoryBytes } = outcome;
    const figures = ended !== undefined ? ["ended", "", "", "", ""] : [
      String(missed),
      String(impossible),
      seconds(noticeMs),
      recovery(fault, outcome),
      seconds(slowestMs),
    ];
    const sent = fault.isUnseen && requests === 0 ? "-" : String(requests);
    return [
      client,
      ...figures,
      sent,
      memoryBytes === undefined ? "-" : `${Math.round(memoryBytes / 2 ** 20)} MiB`,
    ];
  });
  return `### ${fault.title} (\`${fault.name}\`)\n\n${fault.about}\n\n${markdownTable(HEADER, rows)}`;
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? "-" : `${(ms / 1_000).toFixed(1)} s`;
}

function recovery({ limitMs }: Fault, { recoverMs, missed }: Outcome): string {
  if (recoverMs !== undefined) return seconds(recoverMs);
  return `${missed === 0 ? "only" : "not"} after ${limitMs / 1_000} s`;
}

/** A fault, and what it did to each client. */
export interface FaultResult {
  readonly fault: Fault;
  readonly outcomes: readonly Outcome[];
}

/** All faults in one table: the time to recover, and what was wrong. */
export function summary(results: readonly FaultResult[]): string {
  const header = ["fault", ...results[0].outcomes.map(({ client }) => client)];
  const rows = results.map(({ fault, outcomes }) => [
    fault.title,
    ...outcomes.map((outcome) => {
      const { ended, missed, impossible } = outcome;
      if (ended !== undefined) return "ended";
      const wrong = [missed > 0 && `${missed} missed`, impossible > 0 && `${impossible} never were`];
      const slowest = outcome.slowestMs === undefined ? "" : ` (${seconds(outcome.slowestMs)})`;
      return [recovery(fault, outcome) + slowest, ...wrong.filter((text) => text !== false)].join(", ");
    }),
  ]);
  return markdownTable(header, rows);
}

/** The page: `circumstances` are those of the run that the results come from. */
export function page(circumstances: string, results: readonly FaultResult[]): string {
  const sections = results.map(({ fault, outcomes }) => faultSection(fault, outcomes));
  return [
    HEAD + circumstances.trim(),
    `## Time to recover\n\nThe median, and the longest.\n\n${summary(results)}`,
    `## The faults\n\n${sections.join("\n\n")}\n`,
  ].join("\n\n");
}

const HEAD = `# What informers lose when the network or the API server fails

Written by \`deno task faults --all --rounds 3 --update\`, which takes 25 minutes; a smaller run is
\`deno task faults --only cut,listwatch-deno\`, and \`--help\` lists what can be chosen.

Each client is a program of a few lines with the default options of its library, that watches ConfigMaps of all
namespaces. All of them run at the same time, each over TLS behind its own proxy, in front of the same API server: the one
in memory of \`@listwatch/cache/testing\`, or a real kube-apiserver with \`--cluster\`. One writer creates, changes and
deletes objects in one namespace. After 30 writes every client has the same objects, and 8 s later the fault begins for all at once.
During a fault that lasts, the writer makes ten changes a second. At the end of the fault, or directly after a fault
of a moment, it makes 20 more and stops. When all clients have recovered, or their time is over, ten more changes show
whether their watches work: each client has a minute to receive them. Each fault has new processes and a new API
server.

| column | what it is |
| --- | --- |
| missed | objects of which the client does not have the last state at the end: changes that did not arrive |
| never were | notifications of a state that the object never had, of an older state after a newer one, or of the delete of an object that existed |
| notice | from the beginning of the fault to the first request that follows |
| recover | from the end of the fault until the copy equals the API server; with a fault of a moment, from that moment |
| slowest | the longest recovery of all rounds; the other times and the requests are medians, the other figures the worst |
| requests | that the client sent from the beginning of the fault until it had recovered |
| memory | the most resident memory of the process until the end |

Times are exact to a tenth of a second. They depend on delays that clients choose at random, and on where in its series of
delays a client is when the fault ends. A dash: it did not happen, or cannot be seen; where nothing listens, no attempt
can be counted.

The clients:

- this library on Deno (HTTP/2) and on Node (HTTP/1.1);
- the informer of \`@kubernetes/client-node\`, which its program starts again 5 s after an error, as in the examples of
  its documentation;
- the \`Watch\` of \`kubernetes-fluent-client\`. It has no store for programs, so its program keeps what it receives, by
  uid: after a gap, the delete of an object follows the add of the next one of its name;
- client-go's shared informer (HTTP/2, whose pings notice a connection that is dead);
- kube-rs' reflector with its default backoff, built without optimization.

The reflector of Gardener's dashboard is not among them: it is not published on npm.

`;
