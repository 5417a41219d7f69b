/** The page benchmarks/RESULTS.md and its pictures, made of cells of benchmarks/TABLES.md. */

import { barChart, numberOf, type Panel } from "./bar_chart.ts";

/** A table: its head, and its rows by their first cell. */
interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A section of the tables: its title, the command, the commit, and its tables. */
interface Section {
  readonly title: string;
  readonly command: string;
  readonly measured: string;
  readonly tables: readonly Table[];
}

const PEERS = [
  ["this library, Node", "@listwatch/cache, Node, no managedFields"],
  ["this library, Deno", "@listwatch/cache, Deno, no managedFields"],
  ["this library, Bun", "@listwatch/cache, Bun, no managedFields"],
  ["client-node, Node", "@kubernetes/client-node, Node"],
  ["client-go", "client-go, JSON, typed"],
  ["kube-rs", "kube-rs, typed"],
] as const;

/** The texts of the page and of its pictures, by their paths. */
export function resultsFiles(tables: string): Record<string, string> {
  const sections = readSections(tables);
  return {
    "benchmarks/RESULTS.md": page(sections),
    "docs/pictures/peers.svg": peersPicture(sections),
    "docs/pictures/fanout.svg": fanoutPicture(sections),
    "docs/pictures/growth.svg": growthPicture(sections),
  };
}

function page(sections: ReadonlyMap<string, Section>): string {
  const pods = tableOf(sections, "comparison-20k", "peak RSS, MB");
  const at = (row: string, column: string) => cell(pods, row, column);
  const [node, theirs, go, rust] = [PEERS[0][1], PEERS[3][1], PEERS[4][1], PEERS[5][1]];
  const short = `${node}, short texts`;
  const watchers = tableOf(sections, "fanout", "1,000 events/CPU second");
  const lists = tableOf(sections, "fanout", "requests/s");
  const lines = [
    `20,000 pods are there after ${at(node, "sync, s")} s on Node (client-node ${at(theirs, "sync, s")} s, ` +
    `client-go ${at(go, "sync, s")} s, kube-rs ${at(rust, "sync, s")} s).`,
    `${at(node, "events/s")} events a second (client-node ${at(theirs, "events/s")}, client-go ` +
    `${at(go, "events/s")}, kube-rs ${at(rust, "events/s")}).`,
    `${at(node, "peak RSS, MB")} MB of peak memory (client-node ${at(theirs, "peak RSS, MB")} MB), and ` +
    `${at(node, "heap/object, KB")} KB of heap per pod; as short texts ${at(short, "heap/object, KB")} KB.`,
    `The event loop is blocked for ${at(node, "longest task, ms")} ms at most (client-node ` +
    `${at(theirs, "longest task, ms")} ms).`,
    `A served cache sends ${
      cell(watchers, "@listwatch/cache, Node, burst", "events/s")
    } events a second to 1,000 ` +
    `watchers (kube-apiserver ${cell(watchers, "kube-apiserver, burst", "events/s")}) and answers ` +
    `${cell(lists, "@listwatch/cache, Node, JSON, gzip", "requests/s")} lists of 1,000 pods a second ` +
    `(kube-apiserver ${cell(lists, "kube-apiserver, JSON, gzip", "requests/s")}).`,
  ];
  const missed = misses(sections);
  const commands = [...sections.values()].map(({ title, command, measured }) =>
    `| [${title}](TABLES.md#${anchor(title)}) | ${command} | ${measured} |`
  );
  return `# Results

${lines.map((line) => `- ${line}`).join("\n")}

![Beside peers: time to sync, events per second, memory](../docs/pictures/peers.svg)

This library leaves out \`metadata.managedFields\` here, as it does by default; TABLES.md also has it with all fields.

![A served cache beside kube-apiserver: events, idle watchers, lists](../docs/pictures/fanout.svg)

![Growth with the number of objects: time and memory for each](../docs/pictures/growth.svg)

[TABLES.md](TABLES.md) has all figures, and [docs/benchmarks.md](../docs/benchmarks.md) says how each is measured.
This page and its pictures are made of those tables: \`deno task readme\`.

## What is missed

Goals that the last runs did not reach:

| In | What | Figure and goal |
| --- | --- | --- |
${missed.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}

## The commands

| Tables | Command | Measured |
| --- | --- | --- |
${commands.join("\n")}
`;
}

/** Cells with a goal that was not reached: the section, the row and column, the cell. */
function misses(sections: ReadonlyMap<string, Section>): string[][] {
  return [...sections.values()].flatMap(({ title, tables }) =>
    tables.flatMap(({ head, rows }) =>
      rows.flatMap(([label, ...cells]) =>
        cells.flatMap((text, i) =>
          /\bmissed\b/.test(text) || /\([≤≥] [\d.]+\)$/.test(text)
            ? [[title, `${label}: ${head[i + 1]}`, text.replace(" missed", "")]]
            : []
        )
      )
    )
  );
}

function peersPicture(sections: ReadonlyMap<string, Section>): string {
  const table = tableOf(sections, "comparison-20k", "peak RSS, MB");
  const panel = (title: string, note: string, column: string): Panel => ({
    title,
    note,
    values: PEERS.map(([, row]) => cell(table, row, column)),
  });
  return barChart("20,000 pods, then 50,000 events", PEERS.map(([label], i) => ({ label, ours: i < 3 })), [
    panel("time to sync, s", "shorter is better", "sync, s"),
    panel("events per second", "longer is better", "events/s"),
    panel("peak memory, MB", "shorter is better", "peak RSS, MB"),
  ]);
}

function fanoutPicture(sections: ReadonlyMap<string, Section>): string {
  const rows = ["@listwatch/cache, Node", "@listwatch/cache, Deno", "kube-apiserver"];
  const panel = (title: string, note: string, column: string, suffix: string): Panel => {
    const table = tableOf(sections, "fanout", column);
    return { title, note, values: rows.map((row) => cell(table, row + suffix, column)) };
  };
  const labels = ["this library, Node", "this library, Deno", "kube-apiserver"];
  return barChart(
    "A served cache beside kube-apiserver",
    labels.map((label, i) => ({ label, ours: i < 2 })),
    [
      panel("events/s to 1,000 watchers, burst", "longer is better", "events/s", ", burst"),
      panel("memory of an idle watcher, KB", "shorter is better", "KB each", ""),
      panel("lists of 1,000 pods a second, gzip", "longer is better", "requests/s", ", JSON, gzip"),
    ],
  );
}

function growthPicture(sections: ReadonlyMap<string, Section>): string {
  const { head, rows } = tableOf(sections, "growth", "sync, us/object");
  const panel = (title: string, note: string, column: string): Panel => ({
    title,
    note,
    values: rows.map((row) => row[head.indexOf(column)]),
  });
  return barChart(
    "Growth with the number of pods",
    rows.map(([size]) => ({ label: `${size} pods`, ours: true })),
    [
      panel("list, us for each pod", "shorter is better", "sync, us/object"),
      panel("event, us", "shorter is better", "us/event"),
      panel("heap, KB for each pod", "shorter is better", "heap/object, KB"),
      panel("peak memory, MB", "of the process", "peak RSS, MB"),
    ],
  );
}

function readSections(text: string): Map<string, Section> {
  const parts = text.matchAll(/<!-- begin (\S+) -->([\s\S]*?)<!-- end \1 -->/g);
  return new Map(Array.from(parts, ([, name, body]) => {
    const [, title] = /^## (.*)$/m.exec(body)!;
    const [, command] = /^- Command:\s+(`[^`]*`)/m.exec(body)!;
    const measured = /^- Measured (\S+) at commit (\w+)/m.exec(body);
    const tables = Array.from(body.matchAll(/(?:^\|.*\n)+/gm), ([table]) => {
      const [head, , ...rows] = table.trimEnd().split("\n").map(cellsOf);
      return { head, rows };
    });
    const when = measured === null ? "with each build" : `${measured[1]}, ${measured[2]}`;
    return [name, { title, command: command.replaceAll(/\s+/g, " "), measured: when, tables }];
  }));
}

/** The first table of a section that has a column. */
function tableOf(sections: ReadonlyMap<string, Section>, name: string, column: string): Table {
  const table = sections.get(name)?.tables.find(({ head }) => head.includes(column));
  if (table === undefined) {
    throw new Error(`benchmarks/TABLES.md has no ${JSON.stringify(column)} in ${name}: run deno task bench`);
  }
  return table;
}

function cell({ head, rows }: Table, row: string, column: string): string {
  const found = rows.find(([label]) => label === row)?.[head.indexOf(column)];
  if (found === undefined || Number.isNaN(numberOf(found))) {
    throw new Error(`benchmarks/TABLES.md has no ${JSON.stringify(column)} of ${row}: run deno task bench`);
  }
  return found;
}

function cellsOf(line: string): string[] {
  return line.split("|").slice(1, -1).map((text) => text.trim());
}

function anchor(title: string): string {
  return title.toLowerCase().replaceAll(/[^\w -]/g, "").replaceAll(" ", "-");
}
