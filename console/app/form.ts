// SPDX-License-Identifier: Apache-2.0
// A session that somebody wants: the form, its address, its requests and its command.
import { quote } from "./format";
import type { Node } from "./model";
import { manager, Refusal } from "./server";

const GIB = 2 ** 30;
export const COUNT_MAX = 100;
export const SIZE_MAX = 1000;

export interface Form {
  image: string;
  name: string;
  type: "interactive" | "batch";
  command: string;
  group: string;
  reservation: string; // in which it runs; "" = none
  mounts: string[]; // each as "aliquot session create --mount" has it
  amounts: Record<string, string>; // as they are typed
  count: number;
  size: number; // kernels of a session
  mode: "multi-node" | "single-node"; // of several
}

export interface Choices {
  images: string[];
  groups: string[];
  folders: string[];
  reservations: string[];
  presets: { name: string; resource_slots: Record<string, string> }[];
}

export interface Trial {
  isGood: boolean;
  word: string;
  field: string;
  text: string;
}

// ---- what there is to choose from ----

export async function readChoices(): Promise<Choices> {
  const [images, aliases, folders, reservations, check] = await Promise.all([
    manager.get<{ items: { names: string[] }[] }>("/aliquot/v1/images"),
    manager.get<{ items: { alias: string }[] }>("/aliquot/v1/image-aliases"),
    manager.get<{ items: { name: string; status: string }[] }>("/aliquot/v1/folders?limit=1000"),
    manager.get<{ items: { name: string }[] }>("/aliquot/v1/reservations"),
    manager.post<{ scaling_groups: Record<string, object>; presets: Choices["presets"] }>(
      "/resource/check-presets",
      {},
    ),
  ]);
  const names = [...aliases.items.map((item) => item.alias), ...images.items.flatMap((item) => item.names)];
  return {
    images: [...new Set(names)],
    groups: Object.keys(check.scaling_groups),
    // Those with a dot are mounted unasked.
    folders: folders.items
      .filter(({ name, status }) => status === "ready" && !name.startsWith("."))
      .map(({ name }) => name)
      .sort(),
    reservations: reservations.items.map(({ name }) => name).sort(),
    presets: check.presets,
  };
}

export interface Range {
  most: number; // that one node has
  free: number; // that is free on one node
  quantum: number;
}

/** Slots of the group's nodes. */
export function slotsOf(all: Iterable<Node>, group: string): Record<string, Range> {
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

export function readForm(query: URLSearchParams): Form {
  const amounts: Record<string, string> = { cpu: "1", mem: "1g" };
  for (const [key, value] of query) if (key.startsWith("r.")) amounts[key.slice(2)] = value;
  return {
    image: query.get("image") ?? "",
    name: query.get("name") ?? "",
    type: query.get("type") === "batch" ? "batch" : "interactive",
    command: query.get("command") ?? "",
    group: query.get("group") ?? "",
    reservation: query.get("reservation") ?? "",
    mounts: query.getAll("mount"),
    amounts,
    count: Math.max(1, Math.min(COUNT_MAX, Number(query.get("count")) || 1)),
    size: Math.max(1, Math.min(SIZE_MAX, Number(query.get("cluster")) || 1)),
    mode: query.get("mode") === "single-node" ? "single-node" : "multi-node",
  };
}

export function writeForm(form: Form): URLSearchParams {
  const query = new URLSearchParams();
  for (const key of ["image", "name", "command", "group", "reservation"] as const) if (form[key]) query.set(key, form[key]);
  if (form.type === "batch") query.set("type", "batch");
  for (const mount of form.mounts) query.append("mount", mount);
  if (form.count > 1) query.set("count", String(form.count));
  if (form.size > 1) query.set("cluster", String(form.size));
  if (form.mode !== "multi-node") query.set("mode", form.mode);
  for (const [slot, amount] of Object.entries(form.amounts)) if (amount) query.set(`r.${slot}`, amount);
  return query;
}

// ---- folders ----

export interface Mount {
  folder: string;
  target: string; // "" = its usual place
  isReadOnly: boolean;
}

export function parseMount(text: string): Mount {
  const [folder = "", ...rest] = text.split(":");
  const isReadOnly = rest[rest.length - 1] === "ro";
  return { folder, target: (isReadOnly ? rest.slice(0, -1) : rest).join(":"), isReadOnly };
}

export function formatMount({ folder, target, isReadOnly }: Mount): string {
  return [folder, target, isReadOnly ? "ro" : ""].filter(Boolean).join(":");
}

/** On the first host that its owner may use. */
export async function makeFolder(name: string): Promise<void> {
  await manager.post("/folders", { name });
}

function mountsOf(form: Form): object {
  const mounts = form.mounts.map(parseMount).filter(({ folder }) => folder);
  if (!mounts.length) return {};
  const by = <T>(value: (mount: Mount) => T | "") =>
    Object.fromEntries(mounts.flatMap((mount) => (value(mount) ? [[mount.folder, value(mount)]] : [])));
  return {
    mounts: mounts.map(({ folder }) => folder),
    mount_map: by(({ target }) => target),
    mount_options: by(({ isReadOnly }) => (isReadOnly ? { permission: "ro" } : "")),
  };
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
    ...(form.reservation ? { reservation: form.reservation } : {}),
    ...(form.type === "batch" ? { startupCommand: form.command } : {}),
    ...(form.size > 1 ? { clusterSize: form.size, clusterMode: form.mode } : {}),
    config: {
      resources: resources(form),
      ...mountsOf(form),
      ...(form.group ? { scaling_group: form.group } : {}),
    },
  };
}

export function command(form: Form): string {
  const words = ["aliquot", "session", "create"];
  if (form.name) words.push("-t", form.name);
  words.push("--image", form.image || "IMAGE");
  for (const [slot, amount] of Object.entries(resources(form))) words.push("-r", `${slot}=${amount}`);
  for (const mount of form.mounts) if (mount) words.push("--mount", mount);
  if (form.group) words.push("--resource-group", form.group);
  if (form.reservation) words.push("--reservation", form.reservation);
  if (form.count > 1) words.push("-n", String(form.count));
  if (form.size > 1) words.push("--cluster", String(form.size));
  if (form.size > 1 && form.mode !== "multi-node") words.push("--cluster-mode", form.mode);
  if (form.type === "batch") words.push("--", "sh", "-c", form.command);
  return words.map(quote).join(" ");
}

function freshName(): string {
  return `s-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36).padStart(7, "0")}`;
}

interface Forecast {
  text: string;
  count: number;
  starts_now: number;
  explanation: { kind: string; never?: boolean; image_to_fetch?: string };
}

function forecastWord({ count, starts_now, explanation }: Forecast): string {
  if (explanation.never) return "would never start";
  if (starts_now < count) return starts_now ? `${starts_now} of ${count} start at once` : "would wait";
  return explanation.image_to_fetch ? "starts once its image is there" : "starts at once";
}

export async function tryOut(form: Form, signal: AbortSignal): Promise<Trial> {
  try {
    const path = "/aliquot/v1/sessions/_/dry-run";
    const said = await manager.post<Forecast>(
      path,
      { ...body(form, form.name || freshName()), count: form.count },
      signal,
    );
    const isGood = said.starts_now === said.count && !said.explanation.image_to_fetch;
    return { isGood, word: forecastWord(said), field: "", text: said.text };
  } catch (error) {
    if (error instanceof Refusal)
      return { isGood: false, word: "refused", field: error.field || "image", text: error.message };
    throw error;
  }
}

export async function launch(form: Form): Promise<string[]> {
  const base = form.name || freshName();
  const all = Array.from({ length: form.count }, (_, i) =>
    body(form, form.count > 1 ? `${base}-${i + 1}` : base),
  );
  const made = await manager.post<{ items: { sessionId: string }[] }>("/aliquot/v1/sessions", all);
  return made.items.map((item) => item.sessionId);
}

