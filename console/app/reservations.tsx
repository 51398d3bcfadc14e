// SPDX-License-Identifier: Apache-2.0
// Reservations: amounts that are kept for projects and users during a time. The list with its time
// line, one of them, and the form that creates or changes one.
import { useRef, useState } from "preact/hooks";
import { useAnswer } from "./answer";
import { Choice } from "./choice";
import { number, plain, quote, slots, time } from "./format";
import type { Slots } from "./format";
import { type Column, List } from "./list";
import { who } from "./live";
import { type Shape } from "./model";
import { Commands, Confirm, Copy, Empty, Facts, failure, now, say, State, use } from "./parts";
import { address, amend, go, place } from "./place";
import { manager, Refusal } from "./server";

const PATH = "/aliquot/v1/reservations";
const AGAIN_MSEC = 10000;

export interface Reservation {
  id: string;
  name: string;
  state: "planned" | "active" | "ended" | "released" | "canceled";
  resource_group: string;
  start: string;
  end: string;
  duration: number;
  resources: Slots;
  nodes: number;
  missing_nodes: number;
  agents: string[];
  for: string[];
  release_unused: number;
  ignore_sessions: boolean;
  created_by: string | null;
  reason: string | null;
  places?: { agent: string; missing: string | null }[];
  sessions?: { id: string; name: string; status: string; user: string | null }[];
}

const SHAPES: Record<Reservation["state"], Shape> = {
  planned: "open",
  active: "full",
  ended: "square",
  released: "dash",
  canceled: "dash",
};

function hasFinished({ state }: Reservation): boolean {
  return state !== "planned" && state !== "active";
}

/** Only who may change a reservation is shown who created it. */
function mayChange(reservation: Reservation): boolean {
  return reservation.created_by !== null && !hasFinished(reservation);
}

// ---- the list ----

function words(reservation: Reservation): string {
  const amounts = slots(reservation.resources);
  return reservation.nodes > 1 ? `${reservation.nodes} × ${amounts}` : amounts;
}

/** Where its time lies between the first start and the last end of the list. */
function TimeLine({ of, from, until }: { of: Reservation; from: number; until: number }) {
  const at = use(now);
  const share = (moment: number) => `${(100 * (moment - from)) / Math.max(1, until - from)}%`;
  const start = Date.parse(of.start);
  const end = Date.parse(of.end);
  return (
    <span class="time-line" title={`${time(of.start)} – ${time(of.end)}`}>
      <span
        class={of.state}
        style={{ left: share(start), width: `max(3px, ${(100 * (end - start)) / Math.max(1, until - from)}%)` }}
      />
      {at >= from && at <= until && <i style={{ left: share(at) }} />}
    </span>
  );
}

interface Row {
  id: string;
  reservation: Reservation;
}

function columnsOf(rows: Row[], at: number): Column<Row>[] {
  const from = Math.min(at, ...rows.map(({ reservation }) => Date.parse(reservation.start)));
  const until = Math.max(at, ...rows.map(({ reservation }) => Date.parse(reservation.end)));
  return [
    {
      title: "State",
      kind: "status",
      cell: ({ reservation: { state } }) => <State word={state} shape={SHAPES[state]} />,
    },
    { title: "Reservation", cell: ({ reservation }) => plain(reservation.name) },
    { title: "Resources", kind: "amounts", cell: ({ reservation }) => words(reservation) },
    {
      title: "Time line",
      kind: "progress",
      cell: ({ reservation }) => <TimeLine of={reservation} from={from} until={until} />,
    },
    { title: "Start", kind: "wide start", cell: ({ reservation }) => time(reservation.start) },
    { title: "End", kind: "wide start", cell: ({ reservation }) => time(reservation.end) },
    { title: "Nodes", kind: "widest", cell: ({ reservation }) => plain(reservation.agents.join(", ")) },
    { title: "For", kind: "widest", cell: ({ reservation }) => plain(reservation.for.join(", ")) },
  ];
}

export function ReservationsScreen() {
  const { query } = use(place);
  const isAll = query.get("show") === "all";
  const { answer, why } = useAnswer<{ items: Reservation[] }>(`${PATH}?all=${isAll}`, AGAIN_MSEC);
  const rows = (answer?.items ?? []).map((reservation) => ({ id: reservation.name, reservation }));
  const show = (what: string) => amend(new URLSearchParams(what ? { show: what } : {}));
  return (
    <section class="sessions" aria-label="Reservations">
      <div class="filters">
        <Choice
          label="Which reservations"
          options={[
            ["", "planned and active"],
            ["all", "all"],
          ]}
          value={isAll ? "all" : ""}
          set={show}
        />
        {who.value?.is_admin && (
          <a class="main" href={address("reserve")}>
            Reserve
          </a>
        )}
      </div>
      {!answer ? (
        <Empty>{why || "Asking the manager…"}</Empty>
      ) : rows.length ? (
        <List
          label="Reserved amounts"
          screen="reservation"
          id=""
          rows={rows.map((row) => ({ ...row, id: isAll ? row.reservation.id : row.id }))}
          columns={columnsOf(rows, now.value)}
        />
      ) : (
        <Empty>There are no reservations for you.</Empty>
      )}
    </section>
  );
}

// ---- one of them ----

function Cancel({ reservation, after }: { reservation: Reservation; after: () => void }) {
  async function cancel(): Promise<void> {
    await manager.post(`${PATH}/${reservation.id}/cancel`, {});
    say(`Reservation ${reservation.name} was canceled.`);
    after();
  }
  return <Confirm verb="Cancel" name={reservation.name} what={plain(reservation.name)} act={cancel} />;
}

function commandsOf(reservation: Reservation): [string, string][] {
  const name = quote(reservation.name);
  const all: [string, string][] = [["Show", `aliquot reservation show ${name}`]];
  if (mayChange(reservation)) all.push(["Cancel", `aliquot reservation cancel ${name}`]);
  return all;
}

function seconds(value: number): string {
  for (const [unit, size] of [
    ["d", 86400],
    ["h", 3600],
    ["m", 60],
  ] as const)
    if (value % size === 0) return `${value / size}${unit}`;
  return `${value}s`;
}

export function ReservationScreen({ id }: { id: string }) {
  const { answer: found, why, again } = useAnswer<Reservation>(`${PATH}/${encodeURIComponent(id)}`, AGAIN_MSEC);
  if (!found) return <Empty>{why || "Asking the manager…"}</Empty>;
  const missing = (found.places ?? []).filter((at) => at.missing);
  return (
    <section class="run" aria-label={`Reservation ${found.name}`}>
      <header>
        <h2>
          <a href={address("reservations")}>Reservations</a> / {plain(found.name)}
        </h2>
        <State word={found.state} shape={SHAPES[found.state]} />
        {!hasFinished(found) && (
          <a href={address("launch", "", new URLSearchParams({ reservation: found.name }))}>Launch in it</a>
        )}
        {mayChange(found) && <Cancel reservation={found} after={again} />}
        <Commands commands={commandsOf(found)} />
      </header>
      <div class="values">
        <Facts
          rows={[
            ["Resources", words(found)],
            ["Start", time(found.start)],
            ["End", time(found.end)],
            ["For", plain(found.for.join(", "))],
            ["Resource group", plain(found.resource_group)],
            ["Nodes", plain(found.agents.join(", "))],
            ["Missing", missing.map(({ agent, missing: what }) => plain(`${agent} (${what})`)).join(", ")],
            ["Released after", found.release_unused ? `${seconds(found.release_unused)} without use` : ""],
            ["Reason", plain(found.reason)],
            [
              "Sessions",
              found.sessions?.length
                ? found.sessions.map((session, i) => (
                    <span key={session.id}>
                      {i > 0 && ", "}
                      <a href={address("sessions", session.id)}>{plain(session.name)}</a>
                    </span>
                  ))
                : "",
            ],
          ]}
        />
      </div>
      {mayChange(found) && <ReservationForm key={`${found.name} ${found.start} ${found.end}`} of={found} after={again} />}
    </section>
  );
}

// ---- the form ----

interface Wish {
  name: string;
  start: string;
  duration: string;
  resources: string;
  nodes: string;
  agents: string;
  for: string;
  resource_group: string;
}

/** "cpu=4 mem=8g" */
function parseAmounts(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((word) => [word.split("=")[0] ?? "", word.split("=").slice(1).join("=")]),
  );
}

function list(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

function wishOf(of: Reservation | null): Wish {
  return {
    name: of?.name ?? "",
    start: of?.start ?? "",
    duration: of ? seconds(of.duration) : "1h",
    resources: Object.entries(of?.resources ?? { cpu: "1" })
      .map(([slot, amount]) => `${slot}=${amount}`)
      .join(" "),
    nodes: String(of?.nodes ?? 1),
    agents: "",
    for: of?.for.join(" ") ?? "",
    resource_group: of?.resource_group ?? "",
  };
}

/** What differs from the reservation as it is, or is not empty. */
function bodyOf(wish: Wish, of: Reservation | null): Record<string, unknown> {
  const before = of ? wishOf(of) : null;
  const body: Record<string, unknown> = {};
  for (const key of Object.keys(wish) as (keyof Wish)[]) {
    const text = wish[key].trim();
    if (before ? text === before[key] : !text) continue;
    if (key === "resources") body[key] = parseAmounts(text);
    else if (key === "agents" || key === "for") body[key] = list(text);
    else if (key === "nodes") body[key] = Number(text);
    else body[key] = text;
  }
  return body;
}

function commandOf(wish: Wish, of: Reservation | null): string {
  const body = bodyOf(wish, of);
  const line = ["aliquot", "reservation", of ? "update" : "create"];
  if (body.start) line.push("--start", wish.start);
  if (body.duration) line.push("--duration", wish.duration);
  if (body.resources)
    for (const [slot, amount] of Object.entries(parseAmounts(wish.resources))) line.push("-r", `${slot}=${amount}`);
  if (body.nodes && wish.nodes !== "1") line.push("--nodes", number(Number(wish.nodes)));
  if (body.agents) line.push("--agents", list(wish.agents).join(","));
  if (body.for) for (const member of list(wish.for)) line.push("--for", member);
  if (body.resource_group) line.push("--resource-group", wish.resource_group);
  if (of && body.name) line.push("--name", wish.name);
  return [...line, of?.name ?? (wish.name || "NAME")].map(quote).join(" ");
}

const FIELDS: [keyof Wish, string, string][] = [
  ["name", "Name", "2 to 64 letters, digits and - _ ."],
  ["for", "For", "project:NAME user:EMAIL …"],
  ["resources", "Resources", "on each node: cpu=8 mem=32g cuda.device=4"],
  ["start", "Start", "a date such as 2026-12-01T09:00+01:00, or from now: 10m; empty is now"],
  ["duration", "Duration", "such as 3h"],
  ["nodes", "Nodes", "the amounts are kept on each of so many"],
  ["agents", "Agents", "only on these; empty is any"],
  ["resource_group", "Resource group", 'empty is "default"'],
];

export function ReservationForm({ of, after }: { of: Reservation | null; after: () => void }) {
  const [wish, setWish] = useState<Wish>(() => wishOf(of));
  const [wrong, setWrong] = useState("");
  const [isBusy, setBusy] = useState(false);
  // One key for each wish: a repeated request gets the first answer.
  const key = useRef("");
  const change = (name: keyof Wish, text: string) => {
    key.current = "";
    setWish({ ...wish, [name]: text });
  };
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setWrong("");
    key.current ||= [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");
    try {
      if (of) await manager.patch(`${PATH}/${of.id}`, bodyOf(wish, of));
      else await manager.post(PATH, bodyOf(wish, null), undefined, key.current);
      say(of ? `Reservation ${wish.name} was changed.` : `Reservation ${wish.name} was created.`);
      after();
      if (!of) go("reservation", wish.name.trim());
    } catch (error) {
      if (error instanceof Refusal) setWrong(error.field.replace(/\..*$/, ""));
      say(failure(error), true);
    }
    setBusy(false);
  }
  return (
    <form class="launch" aria-label={of ? `Change ${of.name}` : "Reserve"} onSubmit={(event) => void submit(event)}>
      <h2>{of ? "Change" : "Reserve"}</h2>
      {FIELDS.filter(([name]) => !of || name !== "resource_group").map(([name, title, hint]) => (
        <div key={name} class="field">
          <label for={`reserve-${name}`}>{title}</label>
          <div>
            <input
              id={`reserve-${name}`}
              value={wish[name]}
              required={name === "name" || name === "for" || name === "resources" || name === "duration"}
              aria-invalid={wrong === name}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => change(name, event.currentTarget.value)}
            />{" "}
            <span class="dim">{hint}</span>
          </div>
        </div>
      ))}
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy}>
          {of ? "Change" : "Reserve"}
        </button>
        <Copy command={commandOf(wish, of)} />
      </div>
    </form>
  );
}
