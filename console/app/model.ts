// SPDX-License-Identifier: Apache-2.0
// What the manager's live feed says, as docs/rest.md has it.
import type { Slots } from "./format";

/** [now, of so much or null] */
export type Measured = Record<string, [number, number | null]>;

export interface Session {
  id: string;
  number: string; // of its parts of cards
  name: string;
  type: string;
  status: string;
  result: string;
  exit_code: number | null;
  reason: string | null;
  priority: number;
  image: string | null;
  user: string | null;
  group: string | null;
  resource_group: string | null;
  cluster_size: number;
  resources: Slots;
  agents: string[];
  created_at: string;
  status_changed: string | null;
  starts_at: string | null;
  idle_ends_at?: string | null; // set once a warning was sent
  array?: { id: string; index: number } | null; // that it is an element of
  use?: Measured;
  pull?: Pull | null;
}

/** Sessions that differ in an index; its elements are sessions once they are made. */
export interface SessionArray {
  id: string;
  name: string;
  label: string; // "name[0-99%8]"
  status: string;
  result: string;
  size: number;
  limit: number | null;
  waiting: number;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  made: number;
  image: string | null;
  user: string | null;
  group: string | null;
  resource_group: string | null;
  access_key: string;
  created_at: string;
  terminated_at: string | null;
}

export interface Run {
  id: string;
  name: string; // "digits.7"
  pipeline: string;
  version: number;
  state: "running" | "succeeded" | "failed" | "cancelled";
  is_cancelled: boolean;
  parameters: Record<string, string> | null;
  task_count: number;
  succeeded: number;
  failed: number;
  running: number;
  user_email: string | null;
  created_at: string;
  ended_at: string | null;
}

export type TaskState = "waiting" | "running" | "succeeded" | "failed" | "skipped" | "cancelled";

export interface Task {
  name: string;
  state: TaskState;
  attempt: number;
  attempt_max: number;
  session_id: string | null;
  session_status: string | null; // as it was when the tasks were read
  reason: string | null;
  started_at: string | null;
  ended_at: string | null;
  outputs?: Record<string, unknown> | null;
}

/** A task, or several that are alike. */
export interface Box {
  name: string;
  column: number;
  row: number;
  tasks: number;
  nodes: [number, number][]; // [first, count] of the run's tasks
  needs: number[];
}

export interface Graph {
  columns: number;
  rows: number;
  boxes: Box[];
}

export interface Parameter {
  name: string;
  type: "string" | "integer" | "number" | "boolean";
  default: string | null; // null = it has to be given
  description: string | null;
}

/** What is drawn of a pipeline's file; null if the manager's version cannot read it. */
export interface Drawn {
  text: string;
  graph: Graph | null;
  declared: Parameter[] | null;
  matrix: Record<string, Record<string, string>> | null;
}

export interface Pipeline {
  id: string;
  name: string;
  version: number;
  saved_at: string;
  user_email?: string;
  next_at?: string | null;
}

/** An image that a node is fetching. */
export interface Pull {
  state: string;
  done_bytes: number;
  total_bytes: number; // 0 = not known yet
}

export interface Part {
  of: string;
  kernel: string;
  amount: string;
}

export interface Card {
  id: string;
  slot: string;
  amount: string;
  quantum?: string;
  model?: string;
  memory?: number;
  status?: string;
  status_text?: string;
  parts: Part[];
}

export interface Node {
  id: string;
  status: string;
  connected: boolean;
  schedulable: boolean;
  drain_reason: string | null;
  resource_group: string;
  offered: Slots;
  held: Slots | null;
  cards: Card[];
  use: Measured;
  card_use: Record<string, Measured>;
  part_use: Record<string, Measured>;
}

export interface Waiting {
  id: string;
  position: number | null;
  queue_length: number;
  start: string;
  starts_by: string | null;
  waits_for?: { id: string; name: string | null; condition: string }[];
  reason: string | null;
  text: string | null;
}

export interface Who {
  user: string;
  access_key: string;
  domain: string;
  is_admin: boolean;
}

export const ENDED = ["TERMINATED", "CANCELLED", "ERROR"];

export function hasEnded(session: Session): boolean {
  return ENDED.includes(session.status);
}

export function hasRunEnded(run: Run): boolean {
  return run.state !== "running";
}

/** A user has ended it, so its exit code says how that was done and nothing of its program. */
export function isEndedByUser({ reason }: Session): boolean {
  return reason === "user-requested" || reason === "force-terminated";
}

const SIGNALS: Record<number, string> = {
  1: "SIGHUP",
  2: "SIGINT",
  6: "SIGABRT",
  9: "SIGKILL",
  11: "SIGSEGV",
  15: "SIGTERM",
};

/** "129 (SIGHUP)": shells add a signal's number to 128. */
export function exitText(code: number): string {
  const signal = code > 128 && code <= 192 ? (SIGNALS[code - 128] ?? `signal ${code - 128}`) : "";
  return signal ? `${code} (${signal})` : String(code);
}

export type Shape = "open" | "quarter" | "full" | "half" | "square" | "failed" | "dash";

/** It has its place and does not run yet. */
export function isStarting(session: Session): boolean {
  return ["SCHEDULED", "PREPARING", "PULLING", "PREPARED", "CREATING"].includes(session.status);
}

/** "fetching 45 %" */
export function pullText({ state, done_bytes, total_bytes }: Pull): string {
  return total_bytes ? `${state} ${Math.floor((100 * done_bytes) / total_bytes)} %` : state;
}

/** A state as a word and a shape; colour only says it once more. */
export function stateOf(session: Session): { word: string; shape: Shape } {
  if (session.pull && isStarting(session)) return { word: pullText(session.pull), shape: "quarter" };
  switch (session.status) {
    case "PENDING":
    case "DEPRIORITIZING":
    case "RESCHEDULING":
      return { word: "waiting", shape: "open" };
    case "RUNNING":
      return { word: "running", shape: "full" };
    case "RUNNING_DEGRADED":
      return { word: "degraded", shape: "half" };
    case "RESTARTING":
      return { word: "restarting", shape: "quarter" };
    case "PREEMPTED":
    case "TERMINATING":
      return { word: "ending", shape: "half" };
    case "ERROR":
      return { word: "error", shape: "failed" };
    case "CANCELLED":
      return { word: "cancelled", shape: "dash" };
    case "TERMINATED":
      if (session.result === "FAILURE" && !isEndedByUser(session))
        return { word: session.exit_code ? `failed (${session.exit_code})` : "failed", shape: "failed" };
      return { word: "ended", shape: "square" };
    case "PULLING":
      return { word: "fetching", shape: "quarter" };
    default:
      return { word: "starting", shape: "quarter" };
  }
}

/** Of a run or a task of a pipeline. */
export function shapeOf(state: TaskState): Shape {
  const shapes: Record<TaskState, Shape> = {
    waiting: "open",
    running: "full",
    succeeded: "square",
    failed: "failed",
    skipped: "dash",
    cancelled: "dash",
  };
  return shapes[state] ?? "open";
}

/** A task with a session is running; what its session is doing says more. */
export function stateOfTask(task: Task, session: Session | undefined): { word: string; shape: Shape } {
  if (task.state === "running" && session && !hasEnded(session)) {
    const { word, shape } = stateOf(session);
    return { word: word === "waiting" ? "queued" : word, shape };
  }
  return { word: task.state, shape: shapeOf(task.state) };
}

export function stateOfRun(run: Run): { word: string; shape: Shape } {
  if (run.state === "running" && run.is_cancelled) return { word: "ending", shape: "half" };
  return { word: run.state, shape: shapeOf(run.state) };
}

export function stateOfArray(array: SessionArray): { word: string; shape: Shape } {
  switch (array.status) {
    case "PENDING":
      return { word: "waiting", shape: "open" };
    case "RUNNING":
      return { word: "running", shape: "full" };
    case "TERMINATING":
      return { word: "ending", shape: "half" };
    case "CANCELLED":
      return { word: "cancelled", shape: "dash" };
    default:
      return array.failed ? { word: "failed", shape: "failed" } : { word: "ended", shape: "square" };
  }
}
