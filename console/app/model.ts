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
  use?: Measured;
  pull?: Pull | null;
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
