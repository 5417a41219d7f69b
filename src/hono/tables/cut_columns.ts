import type { KubernetesObject } from "../../meta/object.ts";
import { EACH, parseFieldPath } from "../../text/field_path.ts";
import { type FieldNode, newFieldNode, type Projection } from "../../text/field_tree.ts";
import type { Printer } from "./columns.ts";

const CUT = "<cut>";

/** The end of a cut column's description. */
const CUT_NOTE = " The cache leaves out the fields that it is made of.";

/** Whether the column's fields were cut out, by its definition in a Table. */
export function isCutColumn({ description }: { readonly description: string }): boolean {
  return description.endsWith(CUT_NOTE);
}

export interface HeldPrinter extends Printer {
  readonly cut: readonly string[];
}

/**
 * The same printer, but columns made of fields that a projection cuts out say so, in each row and in their
 * description. Names are shown in any case.
 */
export function heldPrinter(printer: Printer, projections: readonly Projection[]): HeldPrinter {
  const trees = projections.map(treeOf);
  const isCut = printer.columns.map(({ format }, i) =>
    format !== "name" && trees.some((root) => isColumnCut(printer, i, root))
  );
  if (!isCut.includes(true)) return { ...printer, cut: [] };
  return {
    ...printer,
    cut: printer.columns.flatMap(({ name }, i) => isCut[i] ? name : []),
    columns: printer.columns.map((column, i) => {
      if (!isCut[i]) return column;
      return { ...column, type: "string", format: "", description: column.description + CUT_NOTE };
    }),
    cells: (object, nowMs) => printer.cells(object, nowMs).map((cell, i) => isCut[i] ? CUT : cell),
  };
}

function isColumnCut({ reads, each }: Printer, column: number, root: FieldNode): boolean {
  const paths = reads?.[column];
  if (paths !== undefined) return paths.some((path) => isPathCut(path, root));
  let isRead = false;
  try {
    each?.[column]?.(probe(root, () => isRead = true) as KubernetesObject, 0);
  } catch {
    // The printer may have read fields before it failed.
  }
  return isRead;
}

/** Whether a projection cuts out the field at a path. */
export function cutsPath(projection: Projection, path: string): boolean {
  return isPathCut(path, treeOf(projection));
}

function treeOf(projection: Projection): FieldNode {
  const root = newFieldNode();
  projection.addTo(root);
  return root;
}

function isPathCut(path: string, root: FieldNode): boolean {
  let node: FieldNode | undefined = root;
  for (const segment of parseFieldPath(path, { mayEndInElements: true })) {
    const child: FieldNode | undefined = segment === EACH ? node.each : fieldOf(node, segment);
    if (child === undefined) return segment !== EACH && node.cutsOthers;
    if (child.isCut) return true;
    node = child;
  }
  return false;
}

function fieldOf(node: FieldNode, name: string): FieldNode | undefined {
  return node.nodes[node.names.indexOf(name)];
}

/**
 * An object that has what leads to a field that is cut out, and nothing else; `onRead` is called when a field
 * is read that is cut out.
 */
function probe(node: FieldNode, onRead: () => void): object {
  const valueOf = (name: string | symbol): unknown => {
    if (typeof name === "symbol") return undefined;
    const child = fieldOf(node, name);
    if (child === undefined ? node.cutsOthers : child.isCut) {
      onRead();
      return undefined;
    }
    if (child?.each !== undefined) return [probe(child.each, onRead)];
    return child === undefined || child.names.length === 0 ? undefined : probe(child, onRead);
  };
  return new Proxy({}, {
    get: (_, name) => valueOf(name),
    ownKeys: () => {
      if (node.cutsOthers || node.nodes.some(({ isCut }) => isCut)) onRead();
      return [];
    },
    getOwnPropertyDescriptor: (_, name) => {
      const value = valueOf(name);
      return value === undefined
        ? undefined
        : { value, writable: true, enumerable: true, configurable: true };
    },
  });
}
