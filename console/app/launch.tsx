// SPDX-License-Identifier: Apache-2.0
// A new session: what it runs in, how much it gets, and whether it starts at once.
import { useEffect, useState } from "preact/hooks";
import { formatAmount } from "./amount";
import { plain, reason } from "./format";
import { Folders } from "./folders";
import type { Choices, Form, Trial } from "./form";
import {
  command,
  COUNT_MAX,
  launch,
  readChoices,
  readForm,
  SIZE_MAX,
  slotsOf,
  tryOut,
  writeForm,
} from "./form";
import { nodes } from "./live";
import { Copy, failure, say, State, use } from "./parts";
import { amend, go, place } from "./place";
import { Resources } from "./resources";

function Answer({ trial, form }: { trial: Trial | null; form: Form }) {
  if (!form.image) return <p class="answer dim">Choose an image to see when it would start.</p>;
  if (!isComplete(form)) return <p class="answer dim">Enter a command to see when it would start.</p>;
  if (!trial) return <p class="answer dim">Asking the scheduler…</p>;
  if (trial.field)
    return (
      <p class="answer bad">
        <State word={trial.word} shape="failed" /> {plain(trial.text)}
      </p>
    );
  return (
    <p class="answer">
      <State word={trial.word} shape={trial.isGood ? "full" : "open"} />
      {!trial.isGood && <span> {reason(trial.text)}</span>}
    </p>
  );
}

const SOON = 300; // ms after the last change of the form, or of what is free
const LATER = 5000; // of what holds it up not all is seen here

function isComplete(form: Form): boolean {
  return form.image !== "" && (form.type !== "batch" || form.command !== "");
}

function useTrial(form: Form, isReady: boolean): Trial | null {
  const [trial, setTrial] = useState<Trial | null>(null);
  const free = [...use(nodes).values()].map((node) => JSON.stringify(node.held)).join();
  const asked = JSON.stringify([form, free]);
  useEffect(() => {
    if (!isReady) return;
    const gone = new AbortController();
    let timer = 0;
    const askIn = (delay: number) => {
      timer = window.setTimeout(() => {
        tryOut(form, gone.signal).then(
          (said) => {
            setTrial(said);
            if (!said.isGood && !said.field) askIn(LATER);
          },
          () => undefined,
        );
      }, delay);
    };
    askIn(SOON);
    return () => {
      window.clearTimeout(timer);
      gone.abort();
    };
  }, [asked, isReady]);
  return trial;
}

export function LaunchScreen() {
  const form = readForm(use(place).query);
  const [choices, setChoices] = useState<Choices>({ images: [], groups: [], folders: [], reservations: [], presets: [] });
  const [isBusy, setBusy] = useState(false);
  const isReady = isComplete(form);
  // No trial while the session is being created: an earlier answer would be shown below it.
  const trial = useTrial(form, isReady && !isBusy);
  const change = (part: Partial<Form>) => amend(writeForm({ ...readForm(place.value.query), ...part }));
  const slots = slotsOf(
    use(nodes).values(),
    form.group || (choices.groups.length === 1 ? (choices.groups[0] ?? "") : ""),
  );

  useEffect(() => {
    let timer = 0;
    let isGone = false;
    const read = () =>
      readChoices().then(
        (found) => !isGone && setChoices(found),
        (error) => {
          if (isGone) return;
          say(failure(error), true);
          timer = window.setTimeout(read, LATER);
        },
      );
    void read();
    return () => {
      isGone = true;
      window.clearTimeout(timer);
    };
  }, []);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    try {
      const ids = await launch(form);
      say(form.count > 1 ? `${form.count} sessions were created.` : "The session was created.");
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
          placeholder="such as python:3.12"
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
        <span>Type</span>
        <div class="choice" role="group" aria-label="Type">
          <button
            type="button"
            aria-pressed={form.type === "interactive"}
            onClick={() => change({ type: "interactive" })}
          >
            interactive
          </button>
          <button
            type="button"
            aria-pressed={form.type === "batch"}
            onClick={() => change({ type: "batch" })}
          >
            batch
          </button>
          <span class="dim">
            {form.type === "batch" ? "runs one command, then ends" : "runs until you end it"}
          </span>
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
            <option value="">any</option>
            {choices.groups.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
      )}
      {(choices.reservations.length > 0 || form.reservation) && (
        <div class="field">
          <label for="reservation">Reservation</label>
          <select
            id="reservation"
            value={form.reservation}
            aria-invalid={trial?.field === "reservation"}
            onChange={(event) => change({ reservation: event.currentTarget.value })}
          >
            <option value="">none</option>
            {[...new Set([...choices.reservations, form.reservation])].filter(Boolean).map((name) => (
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
      <Resources slots={slots} amounts={form.amounts} set={(amounts) => change({ amounts })} />
      <Folders
        mounts={form.mounts}
        names={choices.folders}
        set={(mounts) => change({ mounts })}
        onMade={(name) => {
          setChoices({ ...choices, folders: [...choices.folders, name].sort() });
          change({ mounts: [...form.mounts, name] });
        }}
      />
      <div class="field">
        <label for="name">Name</label>
        <input
          id="name"
          value={form.name}
          placeholder="optional"
          aria-invalid={trial?.field === "name"}
          autocomplete="off"
          onInput={(event) => change({ name: event.currentTarget.value.trim() })}
        />
      </div>
      <div class="field">
        <label for="size">Kernels</label>
        <input
          id="size"
          type="number"
          min={1}
          max={SIZE_MAX}
          value={form.size}
          onInput={(event) => change({ size: Number(event.currentTarget.value) || 1 })}
        />
      </div>
      {form.size > 1 && (
        <div class="field">
          <span>Nodes</span>
          <div class="choice" role="group" aria-label="Nodes">
            {(["multi-node", "single-node"] as const).map((mode) => (
              <button
                key={mode}
                type="button"
                aria-pressed={form.mode === mode}
                onClick={() => change({ mode })}
              >
                {mode === "multi-node" ? "any" : "one"}
              </button>
            ))}
            <span class="dim">
              {form.mode === "multi-node" ? "each kernel where it fits" : "all kernels on one node"}
            </span>
          </div>
        </div>
      )}
      <div class="field">
        <label for="count">Count</label>
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
        <Answer trial={trial} form={form} />
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
