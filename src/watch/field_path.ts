/**
 * Types of the paths that `keep` and `drop` name.
 * @module
 */

import type { Advice } from "../util/advice.ts";

/**
 * Checks a path of `keep` or `drop` against the type of the objects: `Path` itself where it is right; otherwise what
 * could be written in its place, which the compiler's error then shows.
 *
 * What is below a field of type `unknown`, or below a field with any keys, is not checked; neither is a path that is
 * known only at run time.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { FieldPath } from "@listwatch/cache/client";
 * type Pod = KubernetesObject & { spec?: { nodeName?: string; volumes?: { name: string }[] } };
 * const path: FieldPath<Pod, "spec.volumes[].name"> = "spec.volumes[].name";
 * // @ts-expect-error -- a Pod has no spec.node
 * const typo: FieldPath<Pod, "spec.node"> = "spec.node";
 * console.log(path, typo);
 * ```
 *
 * @category Decoding
 */
export type FieldPath<T, Path extends string> = PathBelow<T, Path, "">;

/**
 * Checks every path of `keep` or `drop`; see {@linkcode FieldPath}.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { FieldPaths } from "@listwatch/cache/client";
 * type Pod = KubernetesObject & { spec?: { nodeName?: string } };
 * const paths: FieldPaths<Pod, ["spec.nodeName", "metadata.labels"]> = ["spec.nodeName", "metadata.labels"];
 * console.log(paths.length); // 2
 * ```
 *
 * @category Decoding
 */
export type FieldPaths<T, Paths extends readonly string[]> = {
  readonly [I in keyof Paths]: FieldPath<T, Paths[I]>;
};

/** `Start` is the part of the whole path before `Path`, with its dot. */
type PathBelow<T, Path extends string, Start extends string> = string extends Path ? Path
  : true extends HasAnyKey<T> ? `${Start}${Path}`
  : Path extends `${infer Head}.${infer Rest}` ? PathThrough<T, Head, Rest, Start>
  : Path extends `${infer Key}["${string}` ? KeyOr<T, Key, Start, `${Start}${Path}`>
  : KeyOr<T, Path, Start, `${Start}${Path}`>;

/** A dot may be inside of a quoted key: `annotations["example` is the head of `annotations["example.com/notes"]`. */
type PathThrough<T, Head extends string, Rest extends string, Start extends string> = Head extends
  `${infer Key}["${string}` ? KeyOr<T, Key, Start, `${Start}${Head}.${Rest}`>
  : Head extends `${infer Key}[]`
    ? KeyOr<T, Key, Start, PathBelow<ElementOf<ValueOf<T, Key>>, Rest, `${Start}${Head}.`>>
  : KeyOr<T, Head, Start, PathBelow<ValueOf<T, Head>, Rest, `${Start}${Head}.`>>;

/** `Then` where `T` has the key; otherwise the paths to the keys that it has. */
type KeyOr<T, Key extends string, Start extends string, Then> = [Key] extends [KeyOf<T>] ? Then
  : [KeyOf<T>] extends [never] ? Advice<`${Start} has no fields; write [] for the elements of an array`>
  : `${Start}${KeyOf<T>}`;

type KeyOf<T> = T extends readonly unknown[] ? never : T extends object ? Extract<keyof T, string> : never;

type ValueOf<T, Key extends string> = T extends object ? Key extends keyof T ? NonNullable<T[Key]> : never
  : never;

type ElementOf<T> = T extends readonly (infer Element)[] ? NonNullable<Element> : never;

/** `true` for `unknown`, `any`, and objects with an index signature or without a known key. */
type HasAnyKey<T> = unknown extends T ? true
  : T extends readonly unknown[] ? false
  : T extends object ? (string extends keyof T ? true : [keyof T] extends [never] ? true : false)
  : false;
