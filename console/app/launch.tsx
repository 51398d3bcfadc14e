// SPDX-License-Identifier: Apache-2.0
// A new session: what it runs in, how much it gets, and whether it starts at once.
import { useEffect, useMemo, useState } from "preact/hooks";
import { bytes, number, plain, quote, slotName } from "./format";
import { nodes } from "./live";
import type { Node } from "./model";
import { Copy, failure, say, State, use } from "./parts";
import { amend, go, place } from "./place";
import { manager, Refusal } from "./server";
import { formatAmount, parseAmount, stopsOf, stopAt } from "./amount";

const GIB = 2 ** 30;
const COUNT_MAX = 100;

interface Form {
  image: string;
  name: string;
  type: "interactive" | "batch";
  command: string;
  group: string;
  amounts: Record<string, string>; // as they are typed
  count: number;
}

interface Choices {
  images: string[];
  groups: string[];
  presets: { name: string; resource_slots: Record<string, string> }[];
}

interface Trial {
  isGood: boolean;
  field: string;
  text: string;
}

// ---- what there is to choose from ----

async function readChoices(): Promise<Choices> {
  const [images, aliases, check] = await Promise.all([
    manager.get<{ items: { names: string[] }[] }>("/aliquot/v1/images"),
    manager.get<{ items: { alias: string }[] }>("/aliquot/v1/image-aliases"),
    manager.post<{ scaling_groups: Record<string, object>; presets: Choices["presets"] }>(
      "/resource/check-presets",
      {},
    ),
  ]);
  const names = [...aliases.items.map((item) => item.alias), ...images.items.flatMap((item) => item.names)];
  return { images: [...new Set(names)], groups: Object.keys(check.scaling_groups), presets: check.presets };
}

interface Range {
  most: number; // that one node has
  free: number; // that is free on one node
  quantum: number;
}

/** Slots of the group's nodes. */
function slotsOf(all: Iterable<Node>, group: string): Record<string, Range> {
  const slots: Record<string, Range> = {
    cpu: { most: 1, free: 0, quantum: 1 },
    mem: { most: GIB, free: 0, quantum: 1 },
  };
  for (const node of all) {
    if (group && node.resource_group !== group) continue;
    for (const [slot, amount] of Object.entries(node.offered)) {
      const quantum = Number(node.cards.find((card) => card.slot === slot)?.quantum ?? 1);
      const free = Number(amount) - Number(node.held?.[slot] ?? 0);
      const before = slots[slot];
      slots[slot] = {
        most: Math.max(before?.most ?? 0, Number(amount)),
        free: Math.max(before?.free ?? 0, free),
        quantum,
      };
    }
  }
  return slots;
}

// ---- the form in the address, so that it can be sent to somebody ----

function readForm(query: URLSearchParams): Form {
  const amounts: Record<string, string> = { cpu: "1", mem: "1g" };
  for (const [key, value] of query) if (key.startsWith("r.")) amounts[key.slice(2)] = value;
  return {
    image: query.get("image") ?? "",
    name: query.get("name") ?? "",
    type: query.get("type") === "batch" ? "batch" : "interactive",
    command: query.get("command") ?? "",
    group: query.get("group") ?? "",
    amounts,
    count: Math.max(1, Math.min(COUNT_MAX, Number(query.get("count")) || 1)),
  };
}

function writeForm(form: Form): URLSearchParams {
  const query = new URLSearchParams();
  for (const key of ["image", "name", "command", "group"] as const) if (form[key]) query.set(key, form[key]);
  if (form.type === "batch") query.set("type", "batch");
  if (form.count > 1) query.set("count", String(form.count));
  for (const [slot, amount] of Object.entries(form.amounts)) if (amount) query.set(`r.${slot}`, amount);
  return query;
}

// ---- requests ----

function resources(form: Form): Record<string, string> {
  return Object.fromEntries(
    Object.entries(form.amounts).filter(([, amount]) => amount && Number(amount) !== 0),
  );
}

function body(form: Form, name: string): object {
  return {
    name,
    image: form.image,
    type: form.type,
    enqueueOnly: true,
    ...(form.type === "batch" ? { startupCommand: form.command } : {}),
    config: { resources: resources(form), ...(form.group ? { scaling_group: form.group } : {}) },
  };
}

function command(form: Form): string {
  const words = ["aliquot", "session", "create"];
  if (form.name) words.push("-t", form.name);
  words.push("--image", form.image || "IMAGE");
  for (const [slot, amount] of Object.entries(resources(form))) words.push("-r", `${slot}=${amount}`);
  if (form.group) words.push("--resource-group", form.group);
  if (form.count > 1) words.push("-n", String(form.count));
  if (form.type === "batch") words.push("--", "sh", "-c", form.command);
  return words.map(quote).join(" ");
}

function freshName(): string {
  return `s-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36).padStart(7, "0")}`;
}

async function tryOut(form: Form, signal: AbortSignal): Promise<Trial> {
  try {
    const path = "/aliquot/v1/sessions/_/dry-run";
    const said = await manager.post<{ text: string; explanation: { kind: string } }>(
      path,
      body(form, form.name || freshName()),
      signal,
    );
    return { isGood: said.explanation.kind === "placed", field: "", text: said.text };
  } catch (error) {
    if (error instanceof Refusal)
      return { isGood: false, field: error.field || "image", text: error.message };
    throw error;
  }
}

async function launch(form: Form): Promise<string[]> {
  const base = form.name || freshName();
  const all = Array.from({ length: form.count }, (_, i) =>
    body(form, form.count > 1 ? `${base}-${i + 1}` : base),
  );
  const made = await manager.post<{ items: { sessionId: string }[] }>("/aliquot/v1/sessions", all);
  return made.items.map((item) => item.sessionId);
}

// ---- the screen ----

function Amount({
  slot,
  range,
  text,
  set,
}: {
  slot: string;
  range: Range;
  text: string;
  set: (text: string) => void;
}) {
  const { most, free, quantum } = range;
  const stops = useMemo(() => stopsOf(slot, most, quantum), [slot, most, quantum]);
  const value = parseAmount(slot, text);
  const id = `amount-${slot}`;
  return (
    <div class="amount">
      <label for={id}>{slotName(slot)}</label>
      <input
        type="range"
        min={0}
        max={stops.length - 1}
        value={stopAt(stops, value ?? 0)}
        aria-label={`${slotName(slot)}, by slider`}
        aria-valuetext={text}
        onInput={(event) => set(formatAmount(slot, stops[Number(event.currentTarget.value)] ?? 0))}
      />
      <input
        id={id}
        value={text}
        size={7}
        inputMode={slot === "mem" ? "text" : "decimal"}
        aria-invalid={value === null}
        onInput={(event) => set(event.currentTarget.value.trim())}
      />
      <span class="dim" title="The most that one node has free, and that one node has">
        {amountText(slot, free)} free of {amountText(slot, most)}
      </span>
    </div>
  );
}

function amountText(slot: string, value: number): string {
  return slot === "mem" ? bytes(value) : number(value);
}

function Answer({ trial, isReady }: { trial: Trial | null; isReady: boolean }) {
  if (!isReady) return <p class="answer dim">Choose an image to see when it would start.</p>;
  if (!trial) return <p class="answer dim">Asking the scheduler…</p>;
  if (trial.field)
    return (
      <p class="answer bad">
        <State word="refused" shape="failed" /> {plain(trial.text)}
      </p>
    );
  return (
    <p class="answer">
      {trial.isGood ? <State word="starts at once" shape="full" /> : <State word="would wait" shape="open" />}
      {!trial.isGood && <span> {plain(trial.text)}</span>}
    </p>
  );
}

/** Asked again a moment after the last change of the form, or of what is free. */
function useTrial(form: Form, isReady: boolean): Trial | null {
  const [trial, setTrial] = useState<Trial | null>(null);
  const free = [...use(nodes).values()].map((node) => JSON.stringify(node.held)).join();
  const asked = JSON.stringify([form, free]);
  useEffect(() => {
    if (!isReady) return;
    const gone = new AbortController();
    const timer = window.setTimeout(() => {
      tryOut(form, gone.signal).then(setTrial, () => undefined);
    }, 300);
    return () => {
      window.clearTimeout(timer);
      gone.abort();
    };
  }, [asked, isReady]);
  return trial;
}

export function LaunchScreen() {
  const form = readForm(use(place).query);
  const [choices, setChoices] = useState<Choices>({ images: [], groups: [], presets: [] });
  const [isBusy, setBusy] = useState(false);
  const isReady = form.image !== "" && (form.type !== "batch" || form.command !== "");
  const trial = useTrial(form, isReady);
  const change = (part: Partial<Form>) => amend(writeForm({ ...readForm(place.value.query), ...part }));
  const slots = slotsOf(
    use(nodes).values(),
    form.group || (choices.groups.length === 1 ? (choices.groups[0] ?? "") : ""),
  );

  useEffect(() => {
    readChoices().then(setChoices, (error) => say(failure(error), true));
  }, []);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    try {
      const ids = await launch(form);
      say(form.count > 1 ? `${form.count} sessions were made.` : "The session was made.");
      go("sessions", form.count > 1 ? "" : ids[0]);
    } catch (error) {
      say(failure(error), true);
    }
    setBusy(false);
  }

  return (
    <form class="launch" aria-label="Launch" onSubmit={(event) => void submit(event)}>
      <h2>Launch</h2>
      <div class="field">
        <label for="image">Image</label>
        <input
          id="image"
          list="images"
          value={form.image}
          required
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => change({ image: event.currentTarget.value.trim() })}
        />
        <datalist id="images">
          {choices.images.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      {choices.images.length > 0 && (
        <div class="field">
          <span />
          <div class="chips">
            {choices.images.slice(0, 8).map((name) => (
              <button
                key={name}
                type="button"
                aria-pressed={form.image === name}
                onClick={() => change({ image: name })}
              >
                {plain(name).replace(/^.*\/(?=[^/]+$)/, "")}
              </button>
            ))}
          </div>
        </div>
      )}
      <div class="field">
        <span>Runs</span>
        <div class="choice" role="group" aria-label="Runs">
          <button
            type="button"
            aria-pressed={form.type === "interactive"}
            onClick={() => change({ type: "interactive" })}
          >
            until it is ended
          </button>
          <button
            type="button"
            aria-pressed={form.type === "batch"}
            onClick={() => change({ type: "batch" })}
          >
            a command
          </button>
        </div>
      </div>
      {form.type === "batch" && (
        <div class="field">
          <label for="command">Command</label>
          <input
            id="command"
            class="code"
            value={form.command}
            required
            spellcheck={false}
            onInput={(event) => change({ command: event.currentTarget.value })}
          />
        </div>
      )}
      {choices.groups.length > 1 && (
        <div class="field">
          <label for="group">Resource group</label>
          <select
            id="group"
            value={form.group}
            onChange={(event) => change({ group: event.currentTarget.value })}
          >
            <option value="">any that may be used</option>
            {choices.groups.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
      )}
      {choices.presets.length > 0 && (
        <div class="field">
          <span>Presets</span>
          <div class="chips">
            {choices.presets.map((preset) => (
              <button
                key={preset.name}
                type="button"
                onClick={() =>
                  change({
                    amounts: Object.fromEntries(
                      Object.entries(preset.resource_slots).map(([slot, amount]) => [
                        slot,
                        formatAmount(slot, Number(amount)),
                      ]),
                    ),
                  })
                }
              >
                {plain(preset.name)}
              </button>
            ))}
          </div>
        </div>
      )}
      <fieldset>
        <legend>Gets</legend>
        {Object.entries(slots).map(([slot, range]) => (
          <Amount
            key={slot}
            slot={slot}
            range={range}
            text={form.amounts[slot] ?? "0"}
            set={(text) => change({ amounts: { ...form.amounts, [slot]: text } })}
          />
        ))}
      </fieldset>
      <div class="field">
        <label for="name">Name</label>
        <input
          id="name"
          value={form.name}
          placeholder="made if empty"
          pattern="[A-Za-z0-9_][A-Za-z0-9_.\-]*[A-Za-z0-9_]"
          autocomplete="off"
          onInput={(event) => change({ name: event.currentTarget.value.trim() })}
        />
      </div>
      <div class="field">
        <label for="count">How many</label>
        <input
          id="count"
          type="number"
          min={1}
          max={COUNT_MAX}
          value={form.count}
          onInput={(event) => change({ count: Number(event.currentTarget.value) || 1 })}
        />
      </div>
      <div aria-live="polite">
        <Answer trial={trial} isReady={isReady} />
      </div>
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy || !isReady}>
          Launch
        </button>
        <Copy command={command(form)} />
      </div>
    </form>
  );
}
