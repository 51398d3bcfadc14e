// SPDX-License-Identifier: Apache-2.0
// Model services as the manager describes them, in words and numbers.
import { parseAmount } from "./amount";
import { compare, number, plain, slot, slots } from "./format";
import type { Slots } from "./format";
import type { Shape } from "./model";

export const SERVICES = "/aliquot/v1/model-services";
export const SERVICE_MSEC = 2000; // between two readings of a service

export type Status = "ready" | "scaling" | "sleeping" | "degraded" | "failing" | "ending" | "ended";

export interface Counts {
  wanted: number;
  min: number;
  max: number;
  ready: number;
  starting: number;
  unhealthy: number;
  draining: number;
}

/** Of the last minute; null = nothing was answered. */
export interface Recent {
  per_second: number | null;
  tokens_per_second?: number | null;
  error_ratio: number | null;
  mean_ms: number | null;
  p50_ms?: number | null;
  p99_ms?: number | null;
  p50_first_byte_ms?: number | null;
  p99_first_byte_ms?: number | null;
}

/** Sums since the service was made, but for the first two. */
export interface Figures {
  in_flight: number;
  queued: number;
  requests: number;
  ok: number;
  client_errors: number;
  server_errors: number;
  failures?: number; // requests that no replica answered
  refused: number;
  broken: number;
  mean_first_byte_ms: number | null;
  recent?: Recent;
}

export interface Limits {
  cap: number;
  queue: number;
  queue_bytes: number;
  queue_timeout: number;
  request_timeout: number;
  drain_timeout: number;
  affinity: string | null;
}

export interface Rule {
  signal: string;
  target?: number;
  [more: string]: unknown;
}

export interface Scaling {
  rules?: Rule[];
  window?: number;
  idle?: number;
  [more: string]: unknown;
}

export interface Revision {
  number: number;
  is_goal: boolean;
  note: string | null;
  created_by: string | null;
  created_at: string;
  image: string;
  model_name: string | null;
  model_target: string | null;
  definition: string | null;
  runtime: string;
  command: string | null;
  port: number;
  health: { path: string | null; status: number; interval: number; timeout: number; retries: number };
  ready_timeout: number;
  environ: Record<string, string>;
  resources: Slots;
  shmem: string | null;
  bootstrap: string | null;
  architecture: string | null;
  cluster_size: number;
  cluster_mode: string;
  mounts: string[];
  priority: number;
}

export interface Replica {
  session: string;
  session_name: string;
  revision: number;
  number: number;
  status: string;
  health: "starting" | "ready" | "unhealthy";
  health_text: string | null;
  ready_at: string | null;
  draining: boolean;
  ratio: number;
  share?: number | null;
  share_problem?: string | null; // why it has not the share that it should have
  agent: string | null;
  in_flight: number;
  requests: number;
  failures: number;
  ejected: boolean;
}

export interface Side {
  replicas: number;
  ready: number;
}

export interface RolloutState {
  phase: "none" | "running" | "ready" | "aborting" | "done" | "aborted";
  from: number;
  to: number;
  step: number | null; // of a canary, from 1 to 'steps', the last of which is all requests
  steps: number | null;
  percent: number | null; // of requests, to the new revision; null = no replica is ready
  since: string | null;
  next_at?: string | null; // time alone takes it further then
  reason: string | null;
  old: Side;
  new: Side;
}

export interface Rollout {
  strategy: "rolling" | "blue-green" | "canary";
  max_surge?: number | string;
  max_unavailable?: number | string;
  steps?: number[];
  step_interval?: number;
  auto_promote?: boolean;
  promote_delay?: number;
  keep?: number;
  when_full?: "wait" | "replace" | "share";
  abort?: Record<string, number>;
  state?: RolloutState | null;
}

export interface Service {
  id: string;
  name: string;
  url: string | null;
  urls: string[];
  version: number;
  owner: string | null;
  access_key: string;
  project: string | null;
  domain: string;
  resource_group: string | null;
  tag: string | null;
  public: boolean;
  status: Status;
  problem: string | null;
  retry_at: string | null;
  replicas: Counts;
  limits: Limits;
  scaling: Scaling | null;
  scaling_reason: string | null;
  share?: { wanted: number; min?: number | null; max?: number | null } | null;
  rollout?: Rollout | null;
  tokens: number;
  figures: Figures;
  revision_figures?: { revision: number; requests: number; recent: Recent }[];
  created_at: string;
  ended_at: string | null;
  revision: Revision | null;
  replica_list?: Replica[];
}

export interface Token {
  id: string;
  label: string | null;
  expires_at: string | null;
  paths: string[];
  rate: number;
  budget: number;
  used: number;
  requests: number;
  created_by: string | null;
  created_at: string;
  used_at: string | null;
}

export function pathOf(service: Pick<Service, "id">): string {
  return `${SERVICES}/${encodeURIComponent(service.id)}`;
}

export function isOver({ status }: Service): boolean {
  return status === "ending" || status === "ended";
}

/** The name, which commands take; an id where another service may have the name since. */
export function nameOf(service: Service): string {
  return service.status === "ended" ? service.id : service.name;
}

const SHAPES: Record<Status, Shape> = {
  ready: "full",
  scaling: "quarter",
  sleeping: "dash",
  degraded: "half",
  failing: "failed",
  ending: "half",
  ended: "square",
};

export function stateOfService({ status }: Service): { word: string; shape: Shape } {
  return { word: status, shape: SHAPES[status] ?? "open" };
}

export function stateOfReplica(replica: Replica): { word: string; shape: Shape } {
  if (replica.draining) return { word: "draining", shape: "half" };
  if (replica.status === "PENDING") return { word: "waiting", shape: "open" };
  const shapes: Record<Replica["health"], Shape> = { starting: "quarter", ready: "full", unhealthy: "failed" };
  return { word: replica.health, shape: shapes[replica.health] ?? "open" };
}

export function bounds({ min, max }: Counts): string {
  return min === max ? "" : `${min}–${max}`;
}

export function seconds(value: number): string {
  for (const [unit, size] of [
    ["d", 86400],
    ["h", 3600],
    ["m", 60],
  ] as const)
    if (value && value % size === 0) return `${value / size}${unit}`;
  return `${number(value)}s`;
}

// ---- amounts ----

/** Resources as they were asked for, such as "1g", as exact numbers. */
export function exact(resources: Slots | undefined): Slots {
  return Object.fromEntries(
    Object.entries(resources ?? {}).map(([name, text]) => [name, String(parseAmount(name, text) ?? text)]),
  );
}

function isAccelerator(name: string): boolean {
  return name !== "cpu" && name !== "mem";
}

/** The part of a GPU that each replica has: what is wanted now, else what the revision says. */
export function shareText(service: Service): string {
  const asked = Object.entries(exact(service.revision?.resources)).filter(
    ([name, amount]) => isAccelerator(name) && Number(amount) !== 0,
  );
  const [first] = asked;
  if (!first) return "";
  if (asked.length === 1 && service.share) return slot(first[0], String(service.share.wanted));
  return slots(Object.fromEntries(asked));
}

// ---- what was counted lately ----

const KEPT_MSEC = 300_000;
const GAP_MSEC = 30_000; // nothing is known between two readings that are further apart
const SMOOTH_MSEC = 10_000;

interface Sample {
  at: number;
  requests: number;
  errors: number;
  inFlight: number;
  queued: number;
  answered: number;
  firstByteSum: number;
}

export interface Point {
  at: number;
  rate: number;
  errors: number;
  inFlight: number;
  queued: number;
  firstByte: number | null; // ms; null = nothing was answered
  isAfterGap: boolean;
}

const histories = new Map<string, Sample[]>();
const noted = new WeakSet<Service>(); // an answer is drawn more than once

function sampleOf({ figures: f }: Service, at: number): Sample {
  const answered = f.ok + f.client_errors + f.server_errors;
  return {
    at,
    requests: f.requests,
    errors: f.server_errors + (f.failures ?? 0) + f.refused + f.broken,
    inFlight: f.in_flight,
    queued: f.queued,
    answered,
    firstByteSum: (f.mean_first_byte_ms ?? 0) * answered,
  };
}

/** Keep the figures of these services for the last minutes. Sums that are smaller than before are those
 * of a manager that was killed, as it had stored them.
 */
export function noteFigures(services: readonly Service[], at = Date.now()): void {
  for (const service of services) {
    if (noted.has(service)) continue;
    noted.add(service);
    const fresh = sampleOf(service, at);
    const old = histories.get(service.id) ?? [];
    const last = old[old.length - 1];
    if (last && at - last.at < SERVICE_MSEC / 4) continue;
    const kept = last && fresh.requests < last.requests ? [] : old.filter((each) => at - each.at <= KEPT_MSEC);
    histories.set(service.id, [...kept, fresh]);
  }
  for (const [id, samples] of histories)
    if (at - (samples[samples.length - 1]?.at ?? 0) > KEPT_MSEC) histories.delete(id);
}

export function pointsOf(service: Service): Point[] {
  const samples = histories.get(service.id) ?? [];
  return samples.slice(1).map((now, i) => {
    const before = samples[i] ?? now;
    const seconds = Math.max(0.001, (now.at - before.at) / 1000);
    const answered = now.answered - before.answered;
    return {
      at: now.at,
      rate: (now.requests - before.requests) / seconds,
      errors: Math.max(0, now.errors - before.errors) / seconds,
      inFlight: now.inFlight,
      queued: now.queued,
      firstByte: answered > 0 ? Math.max(0, (now.firstByteSum - before.firstByteSum) / answered) : null,
      isAfterGap: now.at - before.at > GAP_MSEC,
    };
  });
}

/** Requests and errors a second over the last ten seconds, at first over the manager's last minute; null
 * = not known yet.
 */
export function rateOf(service: Service): { requests: number; errors: number } | null {
  const samples = histories.get(service.id) ?? [];
  const last = samples[samples.length - 1];
  const first = last && samples.find(({ at }) => last.at - at <= SMOOTH_MSEC);
  const recent = service.figures.recent;
  if (!last || !first || first === last) {
    if (recent?.per_second == null) return null;
    return { requests: recent.per_second, errors: recent.per_second * (recent.error_ratio ?? 0) };
  }
  const seconds = (last.at - first.at) / 1000;
  return {
    requests: (last.requests - first.requests) / seconds,
    errors: Math.max(0, last.errors - first.errors) / seconds,
  };
}

/** "2.5/s, 1 % errors, 99 % within 120 ms" */
export function recentText({ per_second, error_ratio, p99_ms, mean_ms }: Recent): string {
  const words = [`${number(per_second ?? 0)}/s`];
  if (error_ratio !== null) words.push(`${number(100 * error_ratio)} % errors`);
  if (p99_ms != null) words.push(`99 % within ${number(p99_ms)} ms`);
  else if (mean_ms !== null) words.push(`${number(mean_ms)} ms on average`);
  return words.join(", ");
}

export function forgetFigures(): void {
  histories.clear();
}

// ---- differences of revisions ----

const MEMBERS: [string, (revision: Revision) => unknown][] = [
  ["image", ({ image }) => image],
  ["model", ({ model_name }) => model_name],
  ["model folder's place", ({ model_target }) => model_target],
  ["definition", ({ definition }) => definition],
  ["runtime", ({ runtime }) => runtime],
  ["command", ({ command }) => command],
  ["port", ({ port }) => port],
  ["health path", ({ health }) => health.path],
  ["health status", ({ health }) => health.status],
  ["health interval", ({ health }) => seconds(health.interval)],
  ["health timeout", ({ health }) => seconds(health.timeout)],
  ["health retries", ({ health }) => health.retries],
  ["ready timeout", ({ ready_timeout }) => seconds(ready_timeout)],
  ["shared memory", ({ shmem }) => shmem],
  ["bootstrap script", ({ bootstrap }) => bootstrap],
  ["architecture", ({ architecture }) => architecture],
  ["kernels", ({ cluster_size }) => cluster_size],
  ["cluster mode", ({ cluster_mode, cluster_size }) => (cluster_size > 1 ? cluster_mode : null)],
  ["priority", ({ priority }) => priority],
];

function change(what: string, before: unknown, after: unknown): string {
  const isSet = (value: unknown) => value !== null && value !== undefined && value !== "";
  if (!isSet(before)) return plain(`${what}: ${String(after)}, was not set`);
  if (!isSet(after)) return plain(`${what}: not set, was ${String(before)}`);
  return plain(`${what}: ${String(before)} → ${String(after)}`);
}

function entries(what: string, before: Record<string, string>, after: Record<string, string>): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(compare);
  return names.filter((name) => before[name] !== after[name]).map((name) => change(what + name, before[name], after[name]));
}

/** A sentence for each member in which 'after' is another than 'before'. */
export function differences(before: Revision, after: Revision): string[] {
  const asSet = (texts: string[]) => Object.fromEntries(texts.map((text) => [text, "mounted"]));
  return [
    ...MEMBERS.filter(([, of]) => of(before) !== of(after)).map(([what, of]) => change(what, of(before), of(after))),
    ...entries("", exact(before.resources), exact(after.resources)),
    ...entries("variable ", before.environ, after.environ),
    ...entries("folder ", asSet(before.mounts), asSet(after.mounts)),
  ];
}
