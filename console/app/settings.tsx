// SPDX-License-Identifier: Apache-2.0
// Settings of a model service, which are changed at once and without a new revision.
import { useState } from "preact/hooks";
import { Check, Field, TextField, useSubmit } from "./fields";
import { exactBytes, quote } from "./format";
import { Copy, say } from "./parts";
import { manager } from "./server";
import { bounds, pathOf, type Rollout, type Scaling, seconds, type Service } from "./serving";
import { readTargets, targetsText } from "./targets";

/** As they are typed; 'rules' is JSON where the rules have more than targets. */
interface Wish {
  replicas: string;
  targets: string;
  rules: string;
  window: string;
  idle: string;
  shareMin: string;
  shareMax: string;
  cap: string;
  queue: string;
  queue_bytes: string;
  queue_timeout: string;
  request_timeout: string;
  drain_timeout: string;
  affinity: string;
  strategy: string;
  max_surge: string;
  max_unavailable: string;
  steps: string;
  step_interval: string;
  promote_delay: string;
  keep: string;
  when_full: string;
  auto_promote: boolean;
  tag: string;
  isPublic: boolean;
}

function rolloutWish(rollout: Rollout | null | undefined) {
  return {
    strategy: rollout?.strategy ?? "",
    max_surge: String(rollout?.max_surge ?? ""),
    max_unavailable: String(rollout?.max_unavailable ?? ""),
    steps: rollout?.steps?.join(" ") ?? "",
    step_interval: rollout?.step_interval === undefined ? "" : seconds(rollout.step_interval),
    promote_delay: rollout?.promote_delay === undefined ? "" : seconds(rollout.promote_delay),
    keep: rollout?.keep === undefined ? "" : seconds(rollout.keep),
    when_full: rollout?.when_full ?? "wait",
    auto_promote: rollout?.auto_promote ?? false,
  };
}

function wishOf(service: Service): Wish {
  const { limits, replicas, scaling } = service;
  const share = (scaling?.share ?? {}) as { min?: number; max?: number };
  const targets = targetsText(scaling);
  return {
    replicas: bounds(replicas).replace("–", "-") || String(replicas.min),
    targets: targets ?? "",
    rules: targets === null ? JSON.stringify(scaling?.rules, null, 1) : "",
    window: scaling?.window === undefined ? "" : seconds(scaling.window),
    idle: scaling?.idle === undefined ? "" : seconds(scaling.idle),
    shareMin: String(share.min ?? ""),
    shareMax: String(share.max ?? ""),
    cap: String(limits.cap),
    queue: String(limits.queue),
    queue_bytes: exactBytes(limits.queue_bytes),
    queue_timeout: seconds(limits.queue_timeout),
    request_timeout: seconds(limits.request_timeout),
    drain_timeout: seconds(limits.drain_timeout),
    affinity: limits.affinity ?? "",
    ...rolloutWish(service.rollout),
    tag: service.tag ?? "",
    isPublic: service.public,
  };
}

type RolloutKey = "max_surge" | "max_unavailable" | "steps" | "step_interval" | "promote_delay" | "keep";

const LIMITS = ["cap", "queue", "queue_bytes", "queue_timeout", "request_timeout", "drain_timeout", "affinity"] as const;
const SCALING = ["targets", "rules", "window", "idle", "shareMin", "shareMax"] as const;

/** "5m" as seconds: members of 'scaling' are numbers. A text that is none is for the server to refuse. */
function readSeconds(text: string): number | string {
  const [, digits, unit = "s"] = /^(\d+(?:\.\d+)?)\s*([smhd]?)$/.exec(text.trim()) ?? [];
  const factor = { s: 1, m: 60, h: 3600, d: 86400 }[unit || "s"] ?? 1;
  return digits === undefined ? text : Number(digits) * factor;
}

/** Members that the form does not show stay as they are. */
function scalingOf(wish: Wish, before: Scaling | null): Scaling | null {
  const { rules: _, window: __, idle: ___, share, ...rest } = before ?? {};
  const rules = wish.rules.trim() ? (JSON.parse(wish.rules) as Scaling["rules"]) : readTargets(wish.targets);
  const scaling: Scaling = { ...rest };
  if (rules?.length) scaling.rules = rules;
  if (wish.window.trim()) scaling.window = readSeconds(wish.window) as number;
  if (wish.idle.trim()) scaling.idle = readSeconds(wish.idle) as number;
  if (wish.shareMin.trim() || wish.shareMax.trim())
    scaling.share = {
      ...(share as object | undefined),
      ...(wish.shareMin.trim() ? { min: Number(wish.shareMin) } : {}),
      ...(wish.shareMax.trim() ? { max: Number(wish.shareMax) } : {}),
    };
  return Object.keys(scaling).length ? scaling : null;
}

function readAmount(text: string): number | string {
  return /^\d+$/.test(text.trim()) ? Number(text) : text.trim();
}

const ROLLOUT_OF: Record<Rollout["strategy"], readonly RolloutKey[]> = {
  rolling: ["max_surge", "max_unavailable"],
  canary: ["max_surge", "max_unavailable", "steps", "step_interval"],
  "blue-green": ["promote_delay", "keep"],
};

function readRollout(key: RolloutKey, text: string): unknown {
  if (key === "steps") return text.split(/[\s,]+/).filter(Boolean).map(Number);
  return key === "max_surge" || key === "max_unavailable" ? readAmount(text) : text.trim();
}

/** Members that have changed. With a strategy they are all the settings, so what others set comes along. */
function rolloutOf(wish: Wish, before: Rollout): Record<string, unknown> {
  const old = rolloutWish(before);
  const isOther = wish.strategy !== old.strategy;
  const body: Record<string, unknown> = isOther ? { strategy: wish.strategy, abort: before.abort } : {};
  for (const key of ROLLOUT_OF[wish.strategy as Rollout["strategy"]] ?? [])
    if (wish[key].trim() && (isOther || wish[key] !== old[key])) body[key] = readRollout(key, wish[key]);
  if (isOther || wish.when_full !== old.when_full) body.when_full = wish.when_full;
  if (wish.strategy === "blue-green" && (isOther || wish.auto_promote !== old.auto_promote))
    body.auto_promote = wish.auto_promote;
  return body;
}

function rolloutOptions(wish: Wish, before: Rollout): string[] {
  const body = rolloutOf(wish, before);
  const words: string[] = [];
  for (const key of ["strategy", "max_surge", "max_unavailable", "step_interval", "keep", "when_full"])
    if (body[key] !== undefined) words.push(`--${key.replace("_", "-")}`, String(body[key]));
  if (Array.isArray(body.steps)) words.push("--steps", body.steps.join(","));
  if (body.auto_promote === false) words.push("--promote-manually");
  else if (wish.auto_promote && (body.auto_promote || body.promote_delay !== undefined))
    words.push("--promote-after", wish.promote_delay.trim() || "0s");
  return words;
}

function bodyOf(wish: Wish, service: Service): Record<string, unknown> {
  const before = wishOf(service);
  const body: Record<string, unknown> = {};
  const limits = LIMITS.filter((key) => wish[key] !== before[key]);
  if (wish.replicas !== before.replicas) body.replicas = wish.replicas.trim();
  if (SCALING.some((key) => wish[key] !== before[key])) body.scaling = scalingOf(wish, service.scaling);
  if (limits.length)
    body.limits = Object.fromEntries(
      limits.map((key) => [key, key === "cap" || key === "queue" ? Number(wish[key] || 0) : wish[key].trim() || null]),
    );
  const rollout = service.rollout ? rolloutOf(wish, service.rollout) : {};
  if (Object.keys(rollout).length) body.rollout = rollout;
  if (wish.tag !== before.tag) body.tag = wish.tag;
  if (wish.isPublic !== before.isPublic) body.public = wish.isPublic;
  return body;
}

/** Rules that are JSON are given in a file. */
function commandOf(wish: Wish, service: Service): string {
  const before = wishOf(service);
  const words = ["aliquot", "service", "update"];
  if (wish.replicas !== before.replicas) words.push("--replicas", wish.replicas.trim());
  if (SCALING.some((key) => wish[key] !== before[key])) {
    if (wish.rules.trim()) {
      words.push("--scaling", "FILE");
    } else {
      for (const word of wish.targets.split(/[\s,]+/).filter(Boolean)) words.push("--target", word);
      if (wish.window.trim()) words.push("--window", wish.window.trim());
      if (wish.idle.trim()) words.push("--idle", wish.idle.trim());
      if (wish.shareMin.trim()) words.push("--share-min", wish.shareMin.trim());
      if (wish.shareMax.trim()) words.push("--share-max", wish.shareMax.trim());
    }
  }
  for (const key of LIMITS)
    if (wish[key] !== before[key]) words.push(`--${key.replace("_", "-")}`, wish[key].trim() || (key === "affinity" ? "none" : "0"));
  if (service.rollout) words.push(...rolloutOptions(wish, service.rollout));
  if (wish.tag !== before.tag) words.push("--tag", wish.tag);
  if (wish.isPublic !== before.isPublic) words.push("--public", wish.isPublic ? "yes" : "no");
  return [...words, service.name].map(quote).join(" ");
}

type TextKey = { [K in keyof Wish]: Wish[K] extends string ? K : never }[keyof Wish];

const LIMIT_FIELDS: [TextKey, string, string][] = [
  ["cap", "Cap", "requests under way in one replica; 0: any number"],
  ["queue", "Queue", "requests that wait in each proxy"],
  ["queue_bytes", "Queue bytes", "and their size, such as 64m"],
  ["queue_timeout", "Queue timeout", "how long one waits before it is answered 503"],
  ["request_timeout", "Request timeout", "how long a replica may send no byte"],
  ["drain_timeout", "Drain timeout", "for the last requests of a replica that ends"],
  ["affinity", "Affinity", "header:NAME or prompt: requests that are alike go to one replica; empty: none"],
];

function RolloutFields({ wish, set, field }: { wish: Wish; set: (part: Partial<Wish>) => void; field: (key: TextKey, title: string, hint: string, member: string) => preact.JSX.Element }) {
  const isRolling = wish.strategy !== "blue-green";
  const choice = (key: "strategy" | "when_full", title: string, hint: string, words: readonly string[]) => (
    <Field id={`setting-${key}`} title={title} hint={hint}>
      {(marks) => (
        <select {...marks} value={wish[key]} onChange={(event) => set({ [key]: event.currentTarget.value })}>
          {words.map((word) => (
            <option key={word}>{word}</option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <>
      {choice("strategy", "Strategy", "how a new revision replaces the old one", ["rolling", "blue-green", "canary"])}
      {isRolling && field("max_surge", "Surge", "further replicas meanwhile, a number or a percentage", "rollout.max_surge")}
      {isRolling && field("max_unavailable", "Unavailable", "replicas that may be missing meanwhile", "rollout.max_unavailable")}
      {wish.strategy === "canary" && field("steps", "Steps", "percentages such as 5 25 50", "rollout.steps")}
      {wish.strategy === "canary" && field("step_interval", "Step lasts", "such as 5m", "rollout.step_interval")}
      {!isRolling && (
        <Check id="setting-promote" value={wish.auto_promote} set={(auto_promote) => set({ auto_promote })}>
          Promote the new replicas once all are ready
        </Check>
      )}
      {!isRolling && wish.auto_promote && field("promote_delay", "Promote after", "such as 5m; empty: at once", "rollout.promote_delay")}
      {!isRolling && field("keep", "Keep", "the old replicas so long after that", "rollout.keep")}
      {choice("when_full", "If there is no room", "for a new replica: wait, end an old one first, or share its part", ["wait", "replace", "share"])}
    </>
  );
}

export function Settings({ service, after }: { service: Service; after: () => void }) {
  const [base, setBase] = useState(service); // that the form began from: others may change the service meanwhile
  const [wish, setWish] = useState<Wish>(() => wishOf(service));
  const [isOdd, setOdd] = useState(false); // the rules are not JSON
  const { isBusy, wrong, submit } = useSubmit();
  const change = (part: Partial<Wish>) => setWish({ ...wish, ...part });
  const hasRules = wishOf(base).rules !== "";
  const hasShare = base.share !== undefined && base.share !== null;

  async function act(): Promise<void> {
    const changed = await manager.patch<Service>(pathOf(base), bodyOf(wish, base));
    setBase(changed);
    setWish(wishOf(changed));
    say(`Service ${service.name} was changed.`);
    after();
  }

  const field = (key: TextKey, title: string, hint: string, member: string) => (
    <TextField
      key={key}
      id={`setting-${key}`}
      title={title}
      member={member}
      wrong={wrong}
      hint={hint}
      value={wish[key]}
      set={(text) => change({ [key]: text })}
    />
  );
  const isReadable = () => {
    try {
      JSON.parse(wish.rules || "[]");
      return true;
    } catch {
      return false;
    }
  };
  return (
    <form
      class="launch"
      aria-label="Settings"
      onSubmit={(event) => {
        event.preventDefault();
        setOdd(!isReadable());
        if (isReadable()) void submit(act);
      }}
    >
      {field("replicas", "Replicas", "a number, or bounds such as 0-8", "replicas")}
      {hasRules ? (
        <Field id="setting-rules" title="Rules" member="scaling" wrong={isOdd ? { field: "scaling", text: "this is not JSON" } : wrong} hint="as JSON, as aliquot-sim(1) describes them">
          {(marks) => (
            <textarea
              {...marks}
              class="code"
              rows={6}
              spellcheck={false}
              value={wish.rules}
              onInput={(event) => change({ rules: event.currentTarget.value })}
            />
          )}
        </Field>
      ) : (
        field("targets", "Target", "of each replica: in_flight=8 rate=20 latency=0.5 use=0.7; empty: the cap, or 8 in flight", "scaling.rules")
      )}
      {field("window", "Window", "fewer replicas when none of this time needed them; empty: 5m", "scaling.window")}
      {field("idle", "Idle", "without requests for so long the service sleeps, if its lower bound is 0; empty: 10m", "scaling.idle")}
      {hasShare && field("shareMin", "Smallest share", "of a GPU for each replica", "scaling.share")}
      {hasShare && field("shareMax", "Largest share", "a replica gets more before others are added", "scaling.share")}
      {LIMIT_FIELDS.map(([key, title, hint]) => field(key, title, hint, `limits.${key}`))}
      {base.rollout && <RolloutFields wish={wish} set={change} field={field} />}
      {field("tag", "Tag", "a note that lists show", "tag")}
      <Check id="setting-public" value={wish.isPublic} set={(isPublic) => change({ isPublic })}>
        Public: requests need no token
      </Check>
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy || (isReadable() && Object.keys(bodyOf(wish, base)).length === 0)}>
          Change
        </button>
        {isReadable() && <Copy command={commandOf(wish, base)} />}
      </div>
    </form>
  );
}
