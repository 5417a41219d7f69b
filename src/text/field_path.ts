/** Paths of fields, such as `spec.containers[].image`. */

import type { KubernetesObject } from "../meta/object.ts";

/**
 * Checks a path of `keep` or `drop` against the type of the objects: `Path` itself where it is right;
 * otherwise what could be written in its place, which the compiler's error then shows.
 *
 * What is below a field of type `unknown`, or below a field with any keys, is not checked; neither is a path
 * that is known only at run time.
 */
export type FieldPath<T, Path extends string> = PathBelow<T, Path, "">;

/** Checks every path of `keep` or `drop`; see {@linkcode FieldPath}. */
export type FieldPaths<T, Paths extends readonly string[]> = {
  readonly [I in keyof Paths]: FieldPath<T, Paths[I]>;
};

/**
 * Checks the path of a `fieldIndex` as `FieldPath` does; it may also end in `[]`, which means the elements of
 * an array. If a type has no fields besides those of `KubernetesObject`, only paths below `metadata` are
 * checked.
 */
export type IndexedPath<T, Path extends string> = string extends Path ? Path
  : IsUntyped<T, Path> extends true ? Path
  : Path extends `${infer Field}[]`
    ? FieldPath<T, Field> extends infer Right extends string ? `${Right}[]` : never
  : FieldPath<T, Path>;

/** Whether the type is that of objects of any kind, whose fields besides the metadata are not known. */
type IsUntyped<T, Path extends string> = [Exclude<KeyOf<T>, keyof KubernetesObject>] extends [never]
  ? (Path extends `metadata${string}` ? false : true)
  : false;

/** A step of a path: the name of a field, or {@linkcode EACH}. */
export type FieldPathSegment = string | typeof EACH;

/** Every element of an array: `[]` in a path. */
export const EACH: unique symbol = Symbol("[]");

/** Reads `spec.containers[].env`, `metadata.annotations["a.b/c"]`. */
export function parseFieldPath(
  path: string,
  options: { readonly mayEndInElements?: boolean } = {},
): FieldPathSegment[] {
  const segments: FieldPathSegment[] = [];
  const pattern = /\.?([A-Za-z_$][\w$-]*)|\[\]|\[("(?:[^"\\]|\\.)*")\]/y;
  while (pattern.lastIndex < path.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(path);
    const isFirst = segments.length === 0;
    if (match === null || match[1] !== undefined && isFirst === (path[at] === ".")) throw badPath(path, at);
    const isLast = pattern.lastIndex === path.length;
    if (match[1] !== undefined) segments.push(match[1]);
    else if (match[2] !== undefined) segments.push(JSON.parse(match[2]));
    else if (isFirst || isLast && options.mayEndInElements !== true) throw badPath(path, at);
    else segments.push(EACH);
  }
  if (segments.length === 0) throw badPath(path, 0);
  return segments;
}

function badPath(path: string, at: number): TypeError {
  return new TypeError(
    `Cannot read the path ${JSON.stringify(path)} at character ${at + 1}: ` +
      'paths are written as spec.volumes, spec.containers[].env, metadata.annotations["example.com/notes"]',
  );
}

/** `Start` is the part of the whole path before `Path`, with its dot. */
type PathBelow<T, Path extends string, Start extends string> = string extends Path ? Path
  : true extends HasAnyKey<T> ? `${Start}${Path}`
  : Path extends `${infer Head}.${infer Rest}` ? PathThrough<T, Head, Rest, Start>
  : Path extends `${infer Key}["${string}` ? KeyOr<T, Key, Start, `${Start}${Path}`>
  : KeyOr<T, Path, Start, `${Start}${Path}`>;

/**
 * A dot may be inside of a quoted key: `annotations["example` is the head of
 * `annotations["example.com/notes"]`.
 */
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

/**
 * A type without the fields at these paths: what a client with `drop` hands out. To read such a field is a
 * compile error. A key in brackets (`metadata.annotations["example.com/notes"]`) leaves the type as it is,
 * and so do paths that are known at run time only.
 */
export type Dropped<T, Path extends string> = [Path] extends [never] ? T : string extends Path ? T : {
  [K in keyof T as K extends Path ? never : K]: Elsewhere<T[K], Below<K, Path>, "drop">;
};

/**
 * A type with nothing but the fields at these paths, its type and its metadata: what a client with `keep`
 * hands out. To read another field is a compile error.
 */
export type Kept<T, Path extends string> = string extends Path ? T
  : KeptFields<T, Path | "apiVersion" | "kind" | "metadata">;

type KeptFields<T, Path extends string> = {
  [K in keyof T as K extends Path | Beginning<Path> ? K : never]: K extends Path ? T[K]
    : Elsewhere<T[K], Below<K, Path>, "keep">;
};

/** A value, less what the paths below it say; the elements of an array, if they lead there. */
type Elsewhere<V, Path extends string, Verb extends "drop" | "keep"> = [Path] extends [never] ? V
  : V extends readonly (infer Element)[] ? readonly Changed<Element, WithoutEach<Path>, Verb>[]
  : V extends object ? Changed<V, Path, Verb>
  : V;

type Changed<V, Path extends string, Verb extends "drop" | "keep"> = Verb extends "drop" ? Dropped<V, Path>
  : KeptFields<V, Path>;

/** The rest of the paths that begin with a key. */
type Below<K, Path extends string> = K extends string
  ? Path extends `${K}.${infer Rest}` ? Rest : Path extends `${K}[].${infer Rest}` ? `[].${Rest}` : never
  : never;

type WithoutEach<Path extends string> = Path extends `[].${infer Rest}` ? Rest : never;

/** The first keys of paths. */
type Beginning<Path extends string> = Path extends `${infer Head}.${string}`
  ? Head extends `${infer Key}[${string}` ? Key : Head
  : Path extends `${infer Key}[${string}` ? Key
  : never;

/** The rest of a type, by the `keep` and the `drop` of a client. */
export type Projected<
  T,
  Keep extends readonly string[] | "everything" | undefined,
  Drop extends readonly string[],
> = Dropped<
  Keep extends readonly string[] ? Kept<T, Keep[number]> : T,
  Drop[number]
>;

/**
 * A type that no value has: the compiler's error shows the text where a value is given.
 *
 * `string & Advice<"name an index in indexers">` refuses every string in this way.
 */
export interface Advice<Text extends string> {
  /** Exists for the type checker only. */
  readonly "~advice": Text;
}
