// SPDX-License-Identifier: Apache-2.0
// The live feed: one WebSocket of this tab, and what it says as signals.
import { signal } from "@preact/signals-core";
import { compare } from "./format";
import type { Node, Run, Session, SessionArray, Task, Waiting, Who } from "./model";
import { hasEnded } from "./model";
import { isLoggedIn, liveAddress, manager, onExpired } from "./server";

const ENDED_KEPT = 200;
// The manager sends something every five seconds: two such messages may be late.
const SILENT_MSEC = 12000;
const ENDED_FIELDS =
  "id,name,type,status,result,exit_code,reason,priority,image,user,group,resource_group,cluster_size," +
  "resources,agents,created_at,status_changed,starts_at,array";
const TOPICS = ["map", "sessions", "queue", "arrays", "runs"] as const;
const AGAIN_MSEC = 300; // several that end together are asked for at once

interface Message {
  type: "hello" | "snapshot" | "change" | "alive" | "error";
  topic?: (typeof TOPICS)[number] | "run";
  field?: string;
  set?: Record<string, object>;
  gone?: string[];
  more?: boolean;
  message?: string;
}

export const who = signal<Who | null>(null);
export const nodes = signal<ReadonlyMap<string, Node>>(new Map());
export const sessions = signal<ReadonlyMap<string, Session>>(new Map());
export const waiting = signal<ReadonlyMap<string, Waiting>>(new Map());
/** Those that have ended, as far as they were asked for or seen to end. */
export const ended = signal<ReadonlyMap<string, Session>>(new Map());
/** Arrays and runs that live; those that have ended, the latest. */
export const arrays = signal<ReadonlyMap<string, SessionArray>>(new Map());
export const endedArrays = signal<ReadonlyMap<string, SessionArray>>(new Map());
export const runs = signal<ReadonlyMap<string, Run>>(new Map());
export const endedRuns = signal<ReadonlyMap<string, Run>>(new Map());
/** The tasks of the run that is looked at, by name; why there are none. */
export const tasks = signal<ReadonlyMap<string, Task>>(new Map());
export const runError = signal("");
export const everyone = signal(false);
/** Has each topic come whole once? */
export const isLoaded = signal(false);
/** Since when there is no connection; null = there is one, or has not been yet. */
export const lostAt = signal<number | null>(null);

const topics = { map: nodes, sessions, queue: waiting, arrays, runs, run: tasks };
let followed = ""; // the run that is looked at
let reload: number | undefined;
let socket: WebSocket | undefined;
let again: number | undefined;
let silence: number | undefined;
let delay = 0;

function keepEnded(rows: Iterable<Session>): void {
  const fresh = new Map(ended.value);
  for (const row of rows) {
    fresh.delete(row.id);
    fresh.set(row.id, row);
  }
  const order = [...fresh.values()].sort((a, b) => compare(a.status_changed ?? "", b.status_changed ?? ""));
  ended.value = new Map(order.slice(-ENDED_KEPT).map((row) => [row.id, row]));
}

export function keepSession(row: Session): void {
  if (hasEnded(row)) keepEnded([row]);
}

async function loadRows<T extends { id: string }>(
  path: string,
  to: { value: ReadonlyMap<string, T> },
  isOver: (row: T) => boolean,
): Promise<void> {
  try {
    const all = everyone.value ? "&all=true" : "";
    const { items } = await manager.get<{ items: T[] }>(`${path}${all}`);
    to.value = new Map(items.filter(isOver).map((row) => [row.id, row]));
  } catch {
    // the list of those that have ended is shorter then
  }
}

function loadEndedArrays(): void {
  const path = "/aliquot/v1/arrays?status=TERMINATED,CANCELLED,ERROR&limit=100";
  void loadRows(path, endedArrays, (row) => row.terminated_at !== null);
}

function loadEndedRuns(): void {
  void loadRows("/aliquot/v1/pipeline-runs?limit=100", endedRuns, (row) => row.ended_at !== null);
}

async function loadEnded(): Promise<void> {
  loadEndedArrays();
  loadEndedRuns();
  const query = new URLSearchParams({
    status: "TERMINATED,CANCELLED,ERROR",
    limit: String(ENDED_KEPT),
    order: "-status_changed",
    fields: ENDED_FIELDS,
    ...(everyone.value ? { all: "true" } : {}),
  });
  try {
    keepEnded((await manager.get<{ items: Session[] }>(`/aliquot/v1/sessions?${query}`)).items);
  } catch {
    // the list of those that have ended is shorter then
  }
}

function take(message: Message): void {
  const topic = message.topic && (topics[message.topic] as { value: ReadonlyMap<string, object> });
  if (!topic) return;
  const rows = new Map(message.type === "snapshot" ? [] : topic.value);
  for (const [id, fields] of Object.entries(message.set ?? {}))
    rows.set(id, { ...rows.get(id), ...fields, id });
  for (const id of message.gone ?? []) rows.delete(id);
  if (message.topic === "sessions") {
    const changed = Object.keys(message.set ?? {}).map((id) => rows.get(id) as Session);
    const over = changed.filter(hasEnded);
    for (const row of over) rows.delete(row.id);
    if (over.length) keepEnded(over);
  }
  topic.value = rows;
  if ((message.topic === "arrays" || message.topic === "runs") && message.gone?.length) {
    window.clearTimeout(reload);
    reload = window.setTimeout(() => {
      loadEndedArrays();
      loadEndedRuns();
    }, AGAIN_MSEC);
  }
  if (message.topic === "queue" && !message.more) isLoaded.value = true;
}

function subscribe(): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const run = followed ? { run: followed } : {};
  const topics = followed ? [...TOPICS, "run"] : TOPICS;
  socket.send(JSON.stringify({ subscribe: topics, all: everyone.value, ...run }));
}

/** The tasks of this run, by its id, are in 'tasks' as they change; "" = of none. */
export function followRun(id: string): void {
  if (followed === id) return;
  followed = id;
  tasks.value = new Map();
  runError.value = "";
  subscribe();
}

function hear(text: string): void {
  const message = JSON.parse(text) as Message & Who;
  if (message.type === "hello") {
    const isFirst = !who.value;
    who.value = message;
    if (isFirst) everyone.value = message.is_admin;
    lostAt.value = null;
    delay = 0;
    subscribe();
    void loadEnded();
  } else if (message.type === "error") {
    if (message.field === "run") runError.value = message.message ?? "";
  } else {
    take(message);
  }
}

async function onClosed(): Promise<void> {
  socket = undefined;
  window.clearTimeout(silence);
  lostAt.value ??= Date.now();
  // Who is not logged in any more is not let in again, and is told so.
  const authenticated = await isLoggedIn().catch(() => true);
  if (!authenticated) {
    onExpired.call();
    return;
  }
  delay = Math.min(delay ? delay * 2 : 500, 15000);
  again = window.setTimeout(follow, delay * (0.75 + Math.random() / 2));
}

// A manager that has stopped closes nothing: its connection stays open, and a new one is never accepted.
function watch(watched: WebSocket): void {
  window.clearTimeout(silence);
  silence = window.setTimeout(() => {
    if (socket !== watched) return;
    lostAt.value ??= Date.now() - SILENT_MSEC;
    void onClosed();
    watched.close();
  }, SILENT_MSEC);
}

export function follow(): void {
  if (socket) return;
  window.clearTimeout(again);
  const fresh = new WebSocket(liveAddress());
  socket = fresh;
  watch(fresh);
  fresh.onmessage = (event) => {
    if (socket !== fresh) return;
    watch(fresh);
    hear(event.data as string);
  };
  fresh.onclose = () => {
    if (socket === fresh) void onClosed();
  };
}

export function showEveryone(all: boolean): void {
  everyone.value = all;
  for (const topic of [ended, endedArrays, endedRuns]) topic.value = new Map();
  subscribe();
  void loadEnded();
}

export function forget(): void {
  const old = socket;
  socket = undefined;
  window.clearTimeout(again);
  window.clearTimeout(silence);
  old?.close();
  who.value = null;
  lostAt.value = null;
  isLoaded.value = false;
  everyone.value = false;
  followed = "";
  for (const topic of [nodes, sessions, waiting, ended, arrays, endedArrays, runs, endedRuns, tasks])
    topic.value = new Map();
}
