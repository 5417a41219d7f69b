/**
 * The informer and the store of gardener's dashboard (`packages/kube-client/lib/cache`), over this package's
 * informer: objects by uid, `find` with lodash's shorthands. `docs/from_gardener.md` has the differences.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { Informer } from "@listwatch/cache/compat/gardener";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const shoots = new Informer(cluster.resource("core.gardener.cloud/v1beta1/shoots"));
 * const getShoot = (namespace: string, name: string) => shoots.store.find({ metadata: { namespace, name } });
 * ```
 *
 * @module
 */

export { type GardenerInformerOptions, Informer, InformerStore, type Predicate } from "./informer.ts";
