// SPDX-License-Identifier: Apache-2.0
// The form that creates a model service, or deploys a new revision of one.
import { useEffect, useRef, useState } from "preact/hooks";
import { parseAmount } from "./amount";
import { Check, Field, freshKey, TextField, useSubmit } from "./fields";
import { type Choices, readChoices, slotsOf } from "./form";
import { plain, quote } from "./format";
import { nodes } from "./live";
import { Copy, failure, say, use } from "./parts";
import { go } from "./place";
import { Resources } from "./resources";
import { manager } from "./server";
import { pathOf, type Rollout, type Service, SERVICES } from "./serving";
import { readTargets } from "./targets";

const RUNTIMES = ["custom", "cmd", "vllm", "sglang", "huggingface-tgi", "nim", "modular-max"];
const STRATEGIES: Rollout["strategy"][] = ["rolling", "blue-green", "canary"];

interface Wish {
  name: string;
  image: string;
  model: string;
  runtime: string;
  command: string;
  port: string;
  health: string;
  environ: string; // NAME=VALUE, one a line
  amounts: Record<string, string>;
  replicas: string;
  target: string;
  isPublic: boolean;
  group: string;
  note: string;
  strategy: string; // "" = as it is set
}

const NEW: Wish = {
  name: "",
  image: "",
  model: "",
  runtime: "custom",
  command: "",
  port: "",
  health: "",
  environ: "",
  amounts: { cpu: "1", mem: "1g" },
  replicas: "1",
  target: "",
  isPublic: false,
  group: "",
  note: "",
  strategy: "",
};

function wishOf(of: Service | null): Wish {
  const revision = of?.revision;
  if (!revision) return NEW;
  return {
    ...NEW,
    name: of.name,
    image: revision.image,
    model: revision.model_name ?? "",
    runtime: revision.runtime,
    command: revision.command ?? "",
    port: String(revision.port || ""),
    health: revision.health.path ?? "",
    environ: Object.entries(revision.environ)
      .map(([name, value]) => `${name}=${value}`)
      .join("\n"),
    amounts: { ...revision.resources },
  };
}

/** A value goes on over lines that have no "NAME=" at their begin. */
function readVariables(text: string): Record<string, string> {
  const variables: [string, string][] = [];
  for (const line of text.split("\n")) {
    const [, name, value = ""] = /^\s*([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
    const last = variables[variables.length - 1];
    if (name) variables.push([name, value]);
    else if (last) last[1] += `\n${line}`;
    else if (line.trim()) variables.push([line.trim(), ""]);
  }
  return Object.fromEntries(variables.map(([name, value]) => [name, value.replace(/\n+$/, "")]));
}

function readResources(amounts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(amounts).filter(([slot, text]) => text && parseAmount(slot, text) !== 0),
  );
}

function isSame(a: unknown, b: unknown): boolean {
  const ordered = (value: object) => JSON.stringify(Object.entries(value).sort());
  return ordered(a as object) === ordered(b as object);
}

/** The members of a revision that differ from the one before; null = unset. */
function revisionOf(wish: Wish, before: Wish): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const key of ["image", "model", "runtime", "command", "note"] as const)
    if (wish[key] !== before[key]) body[key] = wish[key].trim() || null;
  if (wish.port !== before.port) body.port = wish.port.trim() ? Number(wish.port) : null;
  if (wish.health !== before.health) body.health = { path: wish.health.trim() || null };
  const [variables, variablesBefore] = [readVariables(wish.environ), readVariables(before.environ)];
  if (!isSame(variables, variablesBefore)) body.environ = variables;
  const [resources, resourcesBefore] = [readResources(wish.amounts), readResources(before.amounts)];
  if (!isSame(resources, resourcesBefore)) body.resources = resources;
  if (wish.strategy) body.rollout = { strategy: wish.strategy };
  return body;
}

function bodyOf(wish: Wish): Record<string, unknown> {
  const body = revisionOf(wish, { ...NEW, amounts: {} });
  return {
    ...body,
    name: wish.name.trim(),
    image: wish.image.trim(),
    replicas: wish.replicas.trim() || "1",
    ...(wish.target.trim() ? { scaling: { rules: readTargets(wish.target) } } : {}),
    ...(wish.isPublic ? { public: true } : {}),
    ...(wish.group ? { resource_group: wish.group } : {}),
  };
}

/** Of "deploy", which lays amounts and variables over those of the revision before. */
function optionsOf(wish: Wish, before: Wish): string[] {
  const body = revisionOf(wish, before);
  const words: string[] = [];
  for (const key of ["image", "model", "runtime"] as const) if (body[key]) words.push(`--${key}`, wish[key]);
  if (body.port) words.push("--port", wish.port);
  if (body.health && wish.health.trim()) words.push("--health", wish.health.trim());
  const [resources, old] = [readResources(wish.amounts), readResources(before.amounts)];
  for (const [slot, amount] of Object.entries(resources)) if (amount !== old[slot]) words.push("-r", `${slot}=${amount}`);
  for (const slot of Object.keys(old)) if (!resources[slot]) words.push("-r", `${slot}=0`);
  const [variables, oldVariables] = [readVariables(wish.environ), readVariables(before.environ)];
  const isOneGone = Object.keys(oldVariables).some((name) => !(name in variables));
  if (isOneGone) words.push("--unset", "env");
  for (const [name, value] of Object.entries(variables))
    if (isOneGone || value !== oldVariables[name]) words.push("-e", `${name}=${value}`);
  for (const [key, option] of [
    ["model", "model"],
    ["runtime", "runtime"],
    ["port", "port"],
    ["command", "command"],
  ] as const)
    if (before[key] && body[key] === null) words.push("--unset", option);
  if (before.health && body.health && !wish.health.trim()) words.push("--unset", "health");
  if (body.note) words.push("--note", wish.note);
  if (wish.strategy) words.push("--strategy", wish.strategy);
  return words;
}

function commandOf(wish: Wish, of: Service | null): string {
  const before = of ? wishOf(of) : { ...NEW, amounts: {} };
  const words = ["aliquot", "service", of ? "deploy" : "create", ...optionsOf(wish, before)];
  if (!of) {
    if (wish.replicas !== "1") words.push("--replicas", wish.replicas);
    for (const word of wish.target.split(/\s+/).filter(Boolean)) words.push("--target", word);
    if (wish.isPublic) words.push("--public");
    if (wish.group) words.push("--resource-group", wish.group);
  }
  words.push(of?.name ?? (wish.name || "NAME"));
  if (wish.command !== before.command && wish.command) words.push(wish.command);
  return words.map(quote).join(" ");
}

function useChoices(): Choices {
  const [choices, setChoices] = useState<Choices>({ images: [], groups: [], folders: [], reservations: [], presets: [] });
  useEffect(() => {
    let isGone = false;
    readChoices().then(
      (found) => !isGone && setChoices(found),
      (error) => !isGone && say(failure(error), true),
    );
    return () => {
      isGone = true;
    };
  }, []);
  return choices;
}

export function DeployForm({ of, after }: { of: Service | null; after: () => void }) {
  const [wish, setWish] = useState<Wish>(() => wishOf(of));
  const choices = useChoices();
  const { isBusy, wrong, submit } = useSubmit();
  const key = useRef(""); // one for each wish: a repeated request gets the first answer
  const change = (part: Partial<Wish>) => {
    key.current = "";
    setWish({ ...wish, ...part });
  };
  const group = of?.resource_group ?? (wish.group || (choices.groups.length === 1 ? (choices.groups[0] ?? "") : ""));
  const slots = slotsOf(use(nodes).values(), group);
  for (const slot of Object.keys(wish.amounts)) slots[slot] ??= { most: 1, free: 0, quantum: 1 };
  const isUnchanged = of !== null && Object.keys(revisionOf(wish, wishOf(of))).length === 0;

  async function act(): Promise<void> {
    if (of) {
      const { revision } = await manager.post<Service>(`${pathOf(of)}/revisions`, revisionOf(wish, wishOf(of)));
      say(`Revision ${revision?.number} of ${of.name} is being deployed.`);
      after();
      return;
    }
    key.current ||= freshKey();
    const { name } = await manager.post<Service>(SERVICES, bodyOf(wish), undefined, key.current);
    say(`Service ${name} was created.`);
    go("service", name);
  }

  return (
    <form
      class="launch"
      aria-label={of ? `Deploy ${of.name}` : "Create service"}
      onSubmit={(event) => {
        event.preventDefault();
        void submit(act);
      }}
    >
      <h2>{of ? "Deploy a new revision" : "Create service"}</h2>
      {of ? (
        <p class="dim">Replicas of the new revision replace the others. Fields that you leave stay as they are.</p>
      ) : (
        <TextField
          id="service-name"
          title="Name"
          member="name"
          wrong={wrong}
          hint="4 to 24 letters, digits and - _; part of the URL"
          value={wish.name}
          required
          set={(name) => change({ name })}
        />
      )}
      <TextField
        id="service-image"
        title="Image"
        member="image"
        wrong={wrong}
        value={wish.image}
        required
        list="service-images"
        kind="long"
        set={(image) => change({ image: image.trim() })}
      />
      <datalist id="service-images">
        {choices.images.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Field
        id="service-model"
        title="Model folder"
        member="model"
        wrong={wrong}
        hint="replicas find it read-only at /models"
      >
        {(marks) => (
          <select {...marks} value={wish.model} onChange={(event) => change({ model: event.currentTarget.value })}>
            <option value="">none, it is in the image</option>
            {[...new Set([...choices.folders, wish.model])].filter(Boolean).map((name) => (
              <option key={name} value={name}>
                {plain(name)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        id="service-runtime"
        title="Runtime"
        member="runtime"
        wrong={wrong}
        hint={wish.runtime === "custom" ? "command below, or model-definition.yaml of the folder" : ""}
      >
        {(marks) => (
          <select {...marks} value={wish.runtime} onChange={(event) => change({ runtime: event.currentTarget.value })}>
            {[...new Set([...RUNTIMES, wish.runtime])].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </Field>
      <TextField
        id="service-command"
        title="Command"
        member="command"
        wrong={wrong}
        hint="empty: as the definition, the runtime or the image says"
        kind="long code"
        value={wish.command}
        set={(command) => change({ command })}
      />
      <TextField
        id="service-port"
        title="Port"
        member="port"
        wrong={wrong}
        hint="the program listens on 0.0.0.0 or 127.0.0.1"
        value={wish.port}
        set={(port) => change({ port: port.trim() })}
      />
      <TextField
        id="service-health"
        title="Health path"
        member="health"
        wrong={wrong}
        hint="answers 200 when a replica is ready; empty: a connection will do"
        value={wish.health}
        set={(health) => change({ health })}
      />
      <Field id="service-environ" title="Variables" member="environ" wrong={wrong} hint="NAME=VALUE, one a line">
        {(marks) => (
          <textarea
            {...marks}
            class="code"
            rows={3}
            spellcheck={false}
            value={wish.environ}
            onInput={(event) => change({ environ: event.currentTarget.value })}
          />
        )}
      </Field>
      <Resources slots={slots} amounts={wish.amounts} set={(amounts) => change({ amounts })} />
      {wrong?.field.startsWith("resources") && <p class="bad">{plain(wrong.text)}</p>}
      {of ? (
        <>
          <TextField
            id="service-note"
            title="Note"
            member="note"
            wrong={wrong}
            hint="why it is deployed, for people"
            value={wish.note}
            set={(note) => change({ note })}
          />
          {of.rollout && (
            <Field
              id="service-strategy"
              title="Strategy"
              member="rollout"
              wrong={wrong}
              hint={`how replicas are replaced, also later; empty: ${of.rollout.strategy}, as it is set`}
            >
              {(marks) => (
                <select {...marks} value={wish.strategy} onChange={(event) => change({ strategy: event.currentTarget.value })}>
                  <option value="" />
                  {STRATEGIES.filter((name) => name !== of.rollout?.strategy).map((name) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              )}
            </Field>
          )}
        </>
      ) : (
        <>
          {choices.groups.length > 1 && (
            <Field id="service-group" title="Resource group" member="resource_group" wrong={wrong}>
              {(marks) => (
                <select {...marks} value={wish.group} onChange={(event) => change({ group: event.currentTarget.value })}>
                  <option value="">the first one allowed</option>
                  {choices.groups.map((name) => (
                    <option key={name} value={name}>
                      {plain(name)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          <TextField
            id="service-replicas"
            title="Replicas"
            member="replicas"
            wrong={wrong}
            hint="a number, or bounds such as 0-8"
            value={wish.replicas}
            required
            set={(replicas) => change({ replicas: replicas.trim() })}
          />
          <TextField
            id="service-target"
            title="Target"
            member="scaling"
            wrong={wrong}
            hint="of each replica, within bounds: in_flight=8 rate=20 latency=0.5 use=0.7"
            value={wish.target}
            set={(target) => change({ target })}
          />
          <Check id="service-public" value={wish.isPublic} set={(isPublic) => change({ isPublic })}>
            Public: requests need no token
          </Check>
        </>
      )}
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy || isUnchanged}>
          {of ? "Deploy" : "Create"}
        </button>
        <Copy command={commandOf(wish, of)} />
      </div>
    </form>
  );
}
