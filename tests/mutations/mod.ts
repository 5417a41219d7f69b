/**
 * Deliberate faults that no simulated world can have, or hardly ever: the test file that is named with each
 * must notice it. They are in files by the rooms of the source.
 * @module
 */

import type { SuiteMutation } from "../mutant.ts";
import { CLI_FAULTS } from "./cli.ts";
import { CLIENT_FAULTS } from "./client.ts";
import { COMPAT_FAULTS } from "./compat.ts";
import { CONTROLLER_FAULTS } from "./controller.ts";
import { HONO_FAULTS } from "./hono.ts";
import { HONO_CONTENT_FAULTS } from "./hono_content.ts";
import { HONO_REQUEST_FAULTS } from "./hono_request.ts";
import { HONO_SEND_FAULTS } from "./hono_send.ts";
import { HONO_TABLES_FAULTS } from "./hono_tables.ts";
import { HONO_UPSTREAM_FAULTS } from "./hono_upstream.ts";
import { INFORMER_FAULTS } from "./informer.ts";
import { META_FAULTS } from "./meta.ts";
import { METRICS_FAULTS } from "./metrics.ts";
import { NODE_FAULTS } from "./node.ts";
import { PROTOCOL_FAULTS } from "./protocol.ts";
import { QUEUE_FAULTS } from "./queue.ts";
import { REFLECTOR_FAULTS } from "./reflector.ts";
import { SCHEMA_FAULTS } from "./schema.ts";
import { SCREENS_FAULTS } from "./screens.ts";
import { SNAPSHOTS_FAULTS } from "./snapshots.ts";
import { STORE_FAULTS } from "./store.ts";
import { TESTING_FAULTS } from "./testing.ts";
import { TEXT_FAULTS } from "./text.ts";
import { UTIL_FAULTS } from "./util.ts";
import { WATCH_FAULTS } from "./watch.ts";
import { WORKERS_FAULTS } from "./workers.ts";
import { WORKQUEUE_FAULTS } from "./workqueue.ts";

/** The faults, in the order of the rooms. */
export const SUITE_MUTATIONS: readonly SuiteMutation[] = [
  ...UTIL_FAULTS,
  ...META_FAULTS,
  ...METRICS_FAULTS,
  ...WORKQUEUE_FAULTS,
  ...TEXT_FAULTS,
  ...WATCH_FAULTS,
  ...SCHEMA_FAULTS,
  ...PROTOCOL_FAULTS,
  ...CLIENT_FAULTS,
  ...STORE_FAULTS,
  ...QUEUE_FAULTS,
  ...REFLECTOR_FAULTS,
  ...INFORMER_FAULTS,
  ...SNAPSHOTS_FAULTS,
  ...HONO_REQUEST_FAULTS,
  ...HONO_CONTENT_FAULTS,
  ...HONO_SEND_FAULTS,
  ...HONO_TABLES_FAULTS,
  ...HONO_UPSTREAM_FAULTS,
  ...HONO_FAULTS,
  ...SCREENS_FAULTS,
  ...CONTROLLER_FAULTS,
  ...COMPAT_FAULTS,
  ...WORKERS_FAULTS,
  ...NODE_FAULTS,
  ...CLI_FAULTS,
  ...TESTING_FAULTS,
];
