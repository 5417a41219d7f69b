/**
 * Lists of a served cache on Node, with and without kept bodies.
 *
 * @module
 */

import { join } from "node:path";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { ListServerArguments } from "../contestants/list_server.ts";
import { buildClient } from "../fanout/main.ts";
import type { ListResult } from "../fanout/report.ts";
import { runClient, startChildServer } from "./child_server.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { startServer } from "./rounds.ts";
import { digits, median } from "./statistics.ts";
import { markdownTable } from "./table.ts";

const CONTESTANTS: readonly Omit<ListServerArguments, "server">[] = [
  { maxReaderBytes: 6e6 },
  { maxReaderBytes: 1e9 },
];
const PATH = "/api/v1/pods";
/** What a table of pods shows. */
const FIELDS = "metadata.name,status.phase,spec.nodeName";
const FORMS = {
  json: {},
  gzip: { gzip: true },
  notModified: { conditional: true },
  fields: { path: `${PATH}?fields=${FIELDS}` },
} as const;
type Form = keyof typeof FORMS;

const CONNECTIONS = 8;
const SECONDS = 2;

/** Measures it, and returns the tables as Markdown. */
export async function measureLists(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const client = await buildClient(programs.bundles);
  const parts = [
    `Requests/s of \`readApi\` on Node, with ${CONNECTIONS} connections of a client in Go on the same machine:`,
  ];
  for (const objects of options.sizes) {
    await using upstream = await startServer(tools, { ...options, objects, events: 1 });
    const results = CONTESTANTS.map(
      () => ({ json: [], gzip: [], notModified: [], fields: [] } as Record<Form, ListResult[]>),
    );
    for (let round = 1; round <= options.rounds; round++) {
      for (const [i, contestant] of CONTESTANTS.entries()) {
        log(`round ${round} of ${options.rounds}: ${count(objects)} pods, ${nameOf(contestant)}`);
        const given: ListServerArguments = { ...contestant, server: upstream.url };
        await using server = await startChildServer<ListServer>(
          [tools.node, join(programs.bundles, "list_server.mjs"), JSON.stringify(given)],
        );
        for (const [form, flags] of Object.entries(FORMS)) {
          results[i][form as Form].push(await ask(client, server.ready, flags));
        }
      }
    }
    const figure = (i: number, form: Form) =>
      median(results[i][form].map(({ requestsPerSecond }) => requestsPerSecond))!;
    const [body] = results[0].json;
    const [compressed] = results[0].gzip;
    const [shown] = results[0].fields;
    const times = CONTESTANTS.map((contestant, i) =>
      `${digits(figure(i, "fields") / figure(i, "json"))} times the requests/s (${nameOf(contestant)})`
    );
    parts.push(
      `${count(objects)} pods: ${digits(body.bodyBytes / 1e6)} MB, ${
        digits(compressed.bodyBytes / 1e6)
      } MB with gzip:`,
      markdownTable(
        ["", "JSON", "MB/s", "gzip", "304", "three fields"],
        CONTESTANTS.map((contestant, i) => [
          nameOf(contestant),
          digits(figure(i, "json")),
          digits(figure(i, "json") * body.bodyBytes / 1e6),
          digits(figure(i, "gzip")),
          digits(figure(i, "notModified")),
          digits(figure(i, "fields")),
        ]),
      ),
      `Three fields (\`${FIELDS}\`): ${digits(shown.bodyBytes / 1e6)} MB, ` +
        `${digits(body.bodyBytes / shown.bodyBytes)} times smaller; ${times.join(", ")}.`,
    );
  }
  return parts.join("\n\n");
}

function nameOf({ maxReaderBytes }: Omit<ListServerArguments, "server">): string {
  return maxReaderBytes < 1e9 ? "no kept body" : "kept body";
}

interface ListServer {
  readonly url: string;
  readonly pid: number;
}

function ask(
  client: string,
  { url, pid }: ListServer,
  flags: Readonly<Record<string, boolean | string>>,
): Promise<ListResult> {
  const given = { server: url, pid, path: PATH, connections: CONNECTIONS, seconds: SECONDS };
  return runClient(client, "list", { ...given, ...flags });
}
