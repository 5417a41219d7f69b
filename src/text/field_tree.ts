/**
 * The fields to keep, as a tree of paths.
 * @module
 */

import { EACH, type FieldPathSegment, parseFieldPath } from "./field_path.ts";

/** What is known about a field: it goes, it stays, or it depends on what is in it. */
export type FieldNode = "drop" | Branch;

/** What is known about the fields of an object, or of every element of an array. */
export interface Branch {
  /** Fields by name. */
  readonly names: string[];
  readonly nodes: FieldNode[];
  /** What every element of an array is; absent for an object. */
  each?: Branch;
  /** Whether fields that have no node stay. */
  keepsOthers: boolean;
}

/** Of a field that stays whole. */
export const WHOLE: Branch = { names: [], nodes: [], keepsOthers: true };

/** What no object can be without: a cache needs it to distinguish objects and their versions. */
const NEEDED = [
  "apiVersion",
  "kind",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "metadata.resourceVersion",
];

/**
 * Makes the tree of the fields that stay.
 *
 * @throws {TypeError} A path cannot be read, or is of what no object can be without.
 */
export function fieldTree(keep: readonly string[] | undefined, drop: readonly string[]): Branch {
  const root: Branch = { names: [], nodes: [], keepsOthers: keep === undefined };
  if (keep !== undefined) {
    for (const path of ["apiVersion", "kind", "metadata", ...keep]) keepPath(root, parseFieldPath(path));
  }
  for (const path of drop) {
    const segments = parseFieldPath(path);
    for (const needed of NEEDED) {
      if (needed === path || needed.startsWith(`${path}.`)) {
        throw new TypeError(
          `Cannot drop ${JSON.stringify(path)}: a cache needs ${needed} to distinguish objects`,
        );
      }
    }
    dropPath(root, segments);
  }
  return root;
}

function keepPath(root: Branch, path: readonly FieldPathSegment[]): void {
  let branch = root;
  for (let i = 0; i < path.length; i++) {
    if (branch === WHOLE) return; // a shorter path keeps it already
    const segment = path[i];
    const isLast = i === path.length - 1;
    if (segment === EACH) {
      branch = branch.each ??= { names: [], nodes: [], keepsOthers: false };
      continue;
    }
    const at = branch.names.indexOf(segment);
    const found = branch.nodes[at];
    if (isLast) setNode(branch, segment, WHOLE);
    else if (found !== undefined) branch = found as Branch;
    else branch = setNode(branch, segment, { names: [], nodes: [], keepsOthers: false });
  }
}

function dropPath(root: Branch, path: readonly FieldPathSegment[]): void {
  let branch = root;
  for (let i = 0; i < path.length; i++) {
    const segment = path[i];
    const isLast = i === path.length - 1;
    if (segment === EACH) {
      branch = branch.each ??= { names: [], nodes: [], keepsOthers: true };
      continue;
    }
    const found = branch.nodes[branch.names.indexOf(segment)];
    if (found === "drop" || found === undefined && !branch.keepsOthers) return; // dropped already
    if (isLast) {
      setNode(branch, segment, "drop");
    } else if (found === undefined || found === WHOLE) {
      branch = setNode(branch, segment, { names: [], nodes: [], keepsOthers: true });
    } else {
      branch = found;
    }
  }
}

function setNode<N extends FieldNode>(branch: Branch, name: string, node: N): N {
  const at = branch.names.indexOf(name);
  if (at >= 0) {
    branch.nodes[at] = node;
  } else {
    branch.names.push(name);
    branch.nodes.push(node);
  }
  return node;
}
