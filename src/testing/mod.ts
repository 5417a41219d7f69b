/**
 * Tools for tests of code that lists and watches Kubernetes: an in-memory API server, faults, fakes and
 * builders.
 * @module
 */

export {
  InMemoryApiServer,
  type InMemoryList,
  type InMemoryListOptions,
  type ServerFetch,
} from "./in_memory_api_server.ts";
export type { CustomResource } from "./served_resources.ts";
export type { InitialEventsPolicy, InMemoryApiServerOptions } from "./server_settings.ts";
export {
  answerStatus,
  type AnswerStatusOptions,
  cutBody,
  type CutBodyOptions,
  delayRequest,
  hang,
  type InterceptOptions,
  type Interceptor,
  type InterceptorContext,
  type RecordedRequest,
  refuseConnection,
  splitBody,
  stallBody,
} from "./faults.ts";
export { FakeCustomStore, FakeExpirationPolicy, type FakeStoreFuncs } from "./fake_store.ts";
export {
  FakeControllerSource,
  type FakeControllerSourceOptions,
  type FakeSourceRequest,
  FakeWatcher,
} from "./fake_source.ts";
export {
  type BuilderMeta,
  type BuiltDataObject,
  type BuiltEvent,
  type BuiltObject,
  type BuiltSpecObject,
  configMap,
  customObject,
  type DataOptions,
  deployment,
  event,
  type EventOptions,
  namespace,
  node,
  type NodeOptions,
  pod,
  type PodOptions,
  replicaSet,
  secret,
  service,
  type ServiceOptions,
  type WorkloadOptions,
} from "./builders.ts";
export { seededRandom } from "./seeded_random.ts";
export { FakeClock } from "./fake_clock.ts";
export {
  ControllerWorld,
  type FailOptions,
  testController,
  type TestControllerOptions,
  type TestEvent,
  type TestWrite,
} from "./controllers/controller_world.ts";
export type { DefineControllers } from "./controllers/process.ts";
export {
  simulateController,
  SimulationError,
  type SimulationReport,
  usersOf,
} from "./controllers/controller_simulation.ts";
export type { Act, Chance, Check, SimulationOptions } from "./controllers/simulated_world.ts";
