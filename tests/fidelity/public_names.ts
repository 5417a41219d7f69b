/**
 * What the package exports, types included, as `deno doc` lists it.
 * @module
 */

import { runDeno } from "../../scripts/lib/process.ts";

interface Declaration {
  readonly kind: string;
  readonly def?: {
    readonly methods?: readonly Member[];
    readonly properties?: readonly Member[];
    readonly extends?: string | readonly { readonly repr?: string }[];
    readonly tsType?: unknown;
  };
}

interface Member {
  readonly name: string;
}

interface DocFile {
  readonly symbols?: readonly { readonly name: string; readonly declarations: readonly Declaration[] }[];
}

/** The exported names of an entry point, each with the names of its members. */
export async function publicNames(
  root: string,
  file: string,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { code, stdout, stderr } = await runDeno(["doc", "--json", file], { cwd: root });
  if (code !== 0) throw new Error(`deno doc ${file}: ${stderr}`);
  const { nodes } = JSON.parse(stdout) as { readonly nodes: Readonly<Record<string, DocFile>> };
  const declared = new Map<string, readonly Declaration[]>();
  for (const { symbols = [] } of Object.values(nodes)) {
    for (const { name, declarations } of symbols) declared.set(name, declarations);
  }
  const names = new Map<string, ReadonlySet<string>>();
  for (const name of declared.keys()) names.set(name, membersOf(name, declared));
  return names;
}

function membersOf(name: string, declared: ReadonlyMap<string, readonly Declaration[]>): Set<string> {
  const members = new Set<string>();
  for (const { kind, def } of declared.get(name) ?? []) {
    for (const { name } of [...(def?.methods ?? []), ...(def?.properties ?? [])]) members.add(name);
    // An alias of an object type, or of an intersection or union of some, has their members.
    if (kind === "typeAlias") collectNames(def?.tsType, members);
    const bases = typeof def?.extends === "string"
      ? [def.extends]
      : def?.extends?.map(({ repr }) => repr) ?? [];
    for (const base of bases) {
      if (base !== undefined) { for (const inherited of membersOf(base, declared)) members.add(inherited); }
    }
  }
  return members;
}

function collectNames(type: unknown, into: Set<string>): void {
  if (typeof type !== "object" || type === null) return;
  for (const [key, value] of Object.entries(type)) {
    if ((key === "properties" || key === "methods") && Array.isArray(value)) {
      for (const { name } of value as Member[]) into.add(name);
    } else collectNames(value, into);
  }
}
