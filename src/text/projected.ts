/**
 * The type of an object without dropped fields.
 * @module
 */

/**
 * A type without the fields at these paths: what a client with `drop` hands out. To read such a field is a compile error.
 * A key in brackets (`metadata.annotations["example.com/notes"]`) leaves the type as it is, and so do paths that are
 * known at run time only.
 *
 * @category Decoding
 */
export type Dropped<T, Path extends string> = [Path] extends [never] ? T : string extends Path ? T : {
  [K in keyof T as K extends Path ? never : K]: Elsewhere<T[K], Below<K, Path>, "drop">;
};

/**
 * A type with nothing but the fields at these paths, its type and its metadata: what a client with `keep` hands out. To
 * read another field is a compile error.
 *
 * @category Decoding
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

/** What comes after a key in the paths that begin with it. */
type Below<K, Path extends string> = K extends string
  ? Path extends `${K}.${infer Rest}` ? Rest : Path extends `${K}[].${infer Rest}` ? `[].${Rest}` : never
  : never;

type WithoutEach<Path extends string> = Path extends `[].${infer Rest}` ? Rest : never;

/** The first keys of paths. */
type Beginning<Path extends string> = Path extends `${infer Head}.${string}`
  ? Head extends `${infer Key}[${string}` ? Key : Head
  : Path extends `${infer Key}[${string}` ? Key
  : never;

/**
 * What is left of a type, by the `keep` and the `drop` of a client.
 *
 * @category Decoding
 */
export type Projected<
  T,
  Keep extends readonly string[] | "everything" | undefined,
  Drop extends readonly string[],
> = Dropped<
  Keep extends readonly string[] ? Kept<T, Keep[number]> : T,
  Drop[number]
>;
