/**
 * A scenario as text.
 * @module
 */

import type { Action, Scenario } from "./scenario.ts";

/** An action as text. */
export function describeAction(action: Action): string {
  switch (action.do) {
    case "put":
      return `writer puts ${action.resource} ${action.key} (value ${action.value}, app ${action.app}, ${action.node}${
        action.flaw === undefined ? "" : `, flawed: ${action.flaw}`
      })`;
    case "delete":
      return `writer deletes ${action.resource} ${action.key}`;
    case "tick":
      return `${action.count} writes to other resources`;
    case "bookmark":
      return "servers send bookmarks";
    case "compact":
      return `etcd is compacted, the last ${action.keep} revisions stay`;
    case "forget":
      return `server ${action.server} drops the events of its cache`;
    case "lag":
      return `server ${action.server} lags ${action.ms} ms`;
    case "freeze":
      return `server ${action.server} ${action.frozen ? "stops following etcd" : "follows etcd again"}`;
    case "restart":
      return `server ${action.server} restarts ${
        action.graceful ? "cleanly" : "by a crash"
      }: down for ${action.downMs} ms, then answers 429 for ${action.startingMs} ms`;
    case "network":
      return `network: ${JSON.stringify(action.state)}`;
    case "refuse":
      return action.with === undefined
        ? `${action.verb} requests get through again`
        : `${action.verb} requests meet "${action.with}" with probability ${action.chance}`;
    case "settings":
      return `servers: ${JSON.stringify(action.settings)}`;
    case "injure":
      return `open watches: ${action.with}, with probability ${action.chance}`;
    case "restore":
      return `${
        action.replaces ? "another cluster responds" : `etcd is restored to ${action.back} revisions ago`
      }${action.restarts ? ", and servers restart" : ""}; watches from later ones are ${
        action.filters ? "accepted, and sent nothing up to them" : "sent everything"
      }`;
    case "heal":
      return "silent connections come back to life";
    case "failWatches":
      return `open watches end with an ERROR event ${action.code} ${action.reason}, with probability ${action.chance}`;
    case "addHandler":
      return `informer ${action.program} gets a handler: ${JSON.stringify(action.handler)}`;
    case "setClock":
      return `the wall clock is set ${action.byMs < 0 ? "back" : "forward"} by ${Math.abs(action.byMs)} ms`;
    case "suspend":
      return `the programs are suspended for ${action.ms} ms, the monotonic clock ${
        action.stops ? "too" : "continues"
      }`;
    case "removeHandler":
      return `informer ${action.program} loses its first handler`;
    case "call": {
      const { how, ahead, key, forMs } = action.call;
      const wanted = how === "synced"
        ? how
        : `${how}${how === "get" ? ` ${key}` : ""} at ${ahead < 0 ? ahead : `+${ahead}`}`;
      return `a caller waits for informer ${action.program}: ${wanted}${
        forMs === undefined ? "" : `, for ${forMs} ms`
      }`;
    }
    case "judge":
      return `informers that quarantine objects are ${action.mood} from now on`;
  }
}

/** The whole scenario: the world, then its actions with their times. */
export function describeScenario(scenario: Scenario): string {
  const lines = [
    `seed ${scenario.seed}, faults: ${scenario.faults.join(", ") || "none"}`,
    `${scenario.servers} server(s), first revision ${scenario.firstRevision}, ${
      JSON.stringify(scenario.settings)
    }`,
    `chunks: ${scenario.chunking}${scenario.byteStream ? ", byte stream" : ""}${
      scenario.flawsStay ? ", flawed objects stay" : ""
    }${scenario.chatterMs > 0 ? `, a write each ${scenario.chatterMs} ms` : ""}, network for good: ${
      JSON.stringify(scenario.calmNetwork)
    }`,
  ];
  scenario.programs.forEach((program, index) => {
    const { handlers, readers, consistentReader, ...rest } = program;
    lines.push(`informer ${index}: ${JSON.stringify(rest)}`);
    readers.forEach((reader, n) => lines.push(`  reader ${n}: ${JSON.stringify(reader)}`));
    if (consistentReader !== undefined) {
      lines.push(`  consistent reader: ${JSON.stringify(consistentReader)}`);
    }
    handlers.forEach((handler, n) => lines.push(`  handler ${n}: ${JSON.stringify(handler)}`));
  });
  scenario.restarting.forEach((program, n) => {
    lines.push(`restarting ${scenario.programs.length + n}: ${JSON.stringify(program)}`);
  });
  for (const { atMs, action } of scenario.steps) {
    lines.push(`${atMs < 0 ? "   before" : clockText(atMs)}  ${describeAction(action)}`);
  }
  lines.push(`${clockText(scenario.calmMs)}  faults stop`);
  return lines.join("\n");
}

/** A time from the start, in seconds. */
export function clockText(ms: number): string {
  return `${(ms / 1_000).toFixed(3)}s`.padStart(9);
}
