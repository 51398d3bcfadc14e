// SPDX-License-Identifier: Apache-2.0
// The list of sessions: what lives, then what has ended, the newest first.
import { ArrayAge, Counts, elementsOf, fold, loadMore, Reader, unfolded } from "./arrays";
import { Choice, Whose } from "./choice";
import { compare, image, plain, reason, slots } from "./format";
import { type Column, List } from "./list";
import { arrays, ended, endedArrays, everyone, isLoaded, sessions, waiting } from "./live";
import type { Session, SessionArray } from "./model";
import { stateOf, stateOfArray } from "./model";
import { Age, cardShare, Empty, Meter, now, share, State, timeLeft, use } from "./parts";
import { address, amend, place } from "./place";

/** A session, an array, an element of one that is unfolded, or that there are more of these. */
export interface Row {
  id: string;
  isInert?: boolean;
  kind: "session" | "array" | "element" | "more";
  session?: Session;
  array?: SessionArray;
}

/** Words that all have to be in a row; "state:waiting", "user:…" and "node:…" mean one column. */
function matches(row: Row, words: string[]): boolean {
  const { session, array } = row;
  const of = session ?? array;
  if (!of) return true;
  const columns: Record<string, string> = {
    name: of.name,
    state: session ? `${stateOf(session).word} ${of.status}` : `${array ? stateOfArray(array).word : ""} ${of.status}`,
    user: of.user ?? "",
    image: of.image ?? "",
    node: session?.agents.join(" ") ?? "",
    group: `${of.group} ${of.resource_group}`,
  };
  const all = `${Object.values(columns).join(" ")} ${of.id}`.toLowerCase();
  return words.every((word) => {
    const [, column = "", wanted = ""] = /^(\w+):(.*)$/.exec(word) ?? [];
    return column in columns ? columns[column]?.toLowerCase().includes(wanted) : all.includes(word);
  });
}

/** CPU is measured in thousandths of a core. */
export function cpuShare(session: Session): number | null {
  const used = session.use?.cpu_util?.[0];
  const cores = Number(session.resources.cpu ?? 0);
  return used === undefined || !cores ? null : Math.min(1, used / 1000 / cores);
}

/** While it waits, why. */
function Uses({ session }: { session: Session }) {
  const row = use(waiting).get(session.id);
  const gpu = cardShare(session.use, "util") ?? cardShare(session.use, "mem");
  if (row) return <span class="dim">{reason(row.text)}</span>;
  if (session.status !== "RUNNING") return null;
  return (
    <>
      <Meter label="CPU" value={cpuShare(session)} />
      <Meter label="mem" value={share(session.use, "mem")} />
      {gpu !== null && <Meter label="GPU" value={gpu} />}
    </>
  );
}

/** Time is short: what it uses says less then. */
function Ending({ session }: { session: Session }) {
  return <span class="bad">ends in {timeLeft(session, use(now))} unless it is extended</span>;
}

function RowState({ row: { kind, session, array } }: { row: Row }) {
  if (kind === "more") return null;
  if (session) return <State {...stateOf(session)} />;
  if (!array) return null;
  const isOpen = unfolded.value.has(array.id);
  return (
    <>
      <button
        type="button"
        class="plain fold"
        aria-expanded={isOpen}
        aria-label={`Elements of ${array.label}`}
        onClick={(event) => {
          event.stopPropagation();
          fold(array);
        }}
      >
        {isOpen ? "▾" : "▸"}
      </button>
      <State {...stateOfArray(array)} />
    </>
  );
}

function RowName({ row: { kind, session, array } }: { row: Row }) {
  if (kind === "more" && array) {
    const { items = [], total = 0 } = unfolded.value.get(array.id) ?? {};
    if (!items.length) return <span class="element dim">Asking the manager…</span>;
    return (
      <span class="element">
        <button
          type="button"
          onClick={(event) => {
            event.stopPropagation();
            loadMore(array);
          }}
        >
          Show more elements
        </button>{" "}
        <span class="dim">
          {items.length} of {total}
        </span>
      </span>
    );
  }
  if (session) return <span class={kind === "element" ? "element" : ""}>{session.name}</span>;
  return <>{array?.label}</>;
}

function RowUses({ row: { kind, session, array } }: { row: Row }) {
  if (kind === "array" && array) return <Counts array={array} />;
  if (session?.idle_ends_at && session.status === "RUNNING") return <Ending session={session} />;
  return session ? <Uses session={session} /> : null;
}

function RowAge({ row: { kind, session, array } }: { row: Row }) {
  if (session) return <Age from={session.status_changed ?? session.created_at} />;
  return kind === "array" && array ? <ArrayAge array={array} /> : null;
}

const COLUMNS: Column<Row>[] = [
  { title: "State", kind: "status", cell: (row) => <RowState row={row} /> },
  { title: "Name", cell: (row) => <RowName row={row} /> },
  { title: "Image", kind: "wider", cell: ({ session, array }) => image((session ?? array)?.image) },
  { title: "Resources", kind: "amounts", cell: ({ session }) => session && slots(session.resources) },
  { title: "Usage", kind: "wide use", cell: (row) => <RowUses row={row} /> },
  { title: "User", kind: "widest", cell: ({ session, array }) => plain((session ?? array)?.user) },
  { title: "Node", kind: "widest node", cell: ({ session }) => session?.agents.map(plain).join(", ") },
  { title: "Since", kind: "age", cell: (row) => <RowAge row={row} /> },
];

const SHOWN = ["live", "ended", "all"] as const;

function Filters({ query, count }: { query: URLSearchParams; count: number }) {
  const shown = query.get("show") ?? "live";
  const set = (name: string, value: string) => {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    amend(next);
  };
  return (
    <div class="filters">
      <input
        id="filter"
        type="search"
        placeholder="Filter: words, state:waiting, node:…"
        aria-label="Filter sessions"
        value={query.get("filter") ?? ""}
        onInput={(event) => set("filter", event.currentTarget.value)}
      />
      <Choice
        label="Which sessions"
        options={SHOWN.map((name) => [name, name])}
        value={shown}
        set={(name) => set("show", name === "live" ? "" : name)}
      />
      <Whose label="Whose sessions" />
      <span class="dim count">{count}</span>
    </div>
  );
}

function newest(rows: Iterable<Row>): Row[] {
  const made = ({ session, array }: Row) => (session ?? array)?.created_at ?? "";
  return [...rows].sort((a, b) => compare(made(b), made(a)) || compare(b.id, a.id));
}

/** Sessions and arrays; elements are in the row of their array. */
function together(all: Iterable<Session>, of: ReadonlyMap<string, SessionArray>): Row[] {
  const known = (session: Session) =>
    session.array && (arrays.value.has(session.array.id) || endedArrays.value.has(session.array.id));
  return newest([
    ...[...all]
      .filter((session) => !known(session))
      .map((session): Row => ({ id: session.id, kind: "session", session })),
    ...[...of.values()].map((array): Row => ({ id: array.id, kind: "array", array })),
  ]);
}

function unfold(row: Row): Row[] {
  const { array } = row;
  const shown = array && unfolded.value.get(array.id);
  if (!array || !shown) return [row];
  const elements = elementsOf(array).map((session): Row => ({ id: session.id, kind: "element", session, array }));
  const rest: Row[] = shown.items.length < shown.total ? [{ id: `${array.id}+`, isInert: true, kind: "more", array }] : [];
  return [row, ...elements, ...rest];
}

/** The rows of the list as the address filters them. */
export function shownRows(query: URLSearchParams): Row[] {
  const shown = query.get("show") ?? "live";
  const words = (query.get("filter") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [
    ...(shown === "ended" ? [] : together(sessions.value.values(), arrays.value)),
    ...(shown === "live" ? [] : together(ended.value.values(), endedArrays.value)),
  ];
  return (words.length ? rows.filter((row) => matches(row, words)) : rows).flatMap(unfold);
}

/** How many rows there are of what lives. */
export function countLive(): number {
  return together(sessions.value.values(), arrays.value).length;
}

export function SessionsScreen() {
  const { query, id } = use(place);
  const withUser = use(everyone);
  const isAsking = !use(isLoaded);
  for (const source of [sessions, ended, arrays, endedArrays, unfolded]) use<unknown>(source);
  const rows = shownRows(query);
  const open = rows.flatMap(({ kind, array }) => (kind === "array" && array && unfolded.value.has(array.id) ? [array] : []));
  return (
    <section class="sessions" aria-label="Sessions">
      <Filters query={query} count={rows.filter(({ kind }) => kind !== "more").length} />
      {open.map((array) => (
        <Reader key={array.id} array={array} />
      ))}
      {rows.length > 0 ? (
        <List
          label="List of sessions"
          screen="sessions"
          id={id}
          query={query.toString()}
          rows={rows}
          columns={withUser ? COLUMNS : COLUMNS.filter(({ title }) => title !== "User")}
        />
      ) : (
        <Empty>
          {isAsking ? (
            "Asking the manager…"
          ) : query.get("filter") ? (
            "Nothing matches."
          ) : query.get("show") === "ended" ? (
            "No session has ended yet."
          ) : (
            <>
              Nothing runs here. <a href={address("launch")}>Launch a session</a>
            </>
          )}
        </Empty>
      )}
    </section>
  );
}
