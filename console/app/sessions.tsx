// SPDX-License-Identifier: Apache-2.0
// The list of sessions: what lives, then what has ended, the newest first.
import { compare, image, plain, reason, slots } from "./format";
import { type Column, List, type Listed } from "./list";
import { ended, everyone, isLoaded, sessions, showEveryone, waiting, who } from "./live";
import type { Session } from "./model";
import { stateOf } from "./model";
import { Age, cardShare, Empty, Meter, share, State, use } from "./parts";
import { address, amend, place } from "./place";

/** Words that all have to be in a row; "state:waiting", "user:…" and "node:…" mean one column. */
function matches(session: Session, words: string[]): boolean {
  const columns: Record<string, string> = {
    name: session.name,
    state: `${stateOf(session).word} ${session.status}`,
    user: session.user ?? "",
    image: session.image ?? "",
    node: session.agents.join(" "),
    group: `${session.group} ${session.resource_group}`,
  };
  const all = `${Object.values(columns).join(" ")} ${session.id}`.toLowerCase();
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

const COLUMNS: Column<Listed>[] = [
  { title: "State", kind: "status", cell: ({ session }) => <State {...stateOf(session)} /> },
  { title: "Name", cell: ({ session }) => session.name },
  { title: "Image", kind: "wider", cell: ({ session }) => image(session.image) },
  { title: "Resources", kind: "amounts", cell: ({ session }) => slots(session.resources) },
  { title: "Usage", kind: "wide use", cell: ({ session }) => <Uses session={session} /> },
  { title: "User", kind: "widest", cell: ({ session }) => plain(session.user) },
  { title: "Node", kind: "widest node", cell: ({ session }) => session.agents.map(plain).join(", ") },
  {
    title: "Since",
    kind: "age",
    cell: ({ session }) => <Age from={session.status_changed ?? session.created_at} />,
  },
];

const SHOWN = ["live", "ended", "all"] as const;

function Filters({ query, count }: { query: URLSearchParams; count: number }) {
  const shown = query.get("show") ?? "live";
  const isEveryone = use(everyone);
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
      <div class="choice" role="group" aria-label="Which sessions">
        {SHOWN.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={shown === name}
            onClick={() => set("show", name === "live" ? "" : name)}
          >
            {name}
          </button>
        ))}
      </div>
      {who.value?.is_admin && (
        <div class="choice" role="group" aria-label="Whose sessions">
          <button type="button" aria-pressed={!isEveryone} onClick={() => showEveryone(false)}>
            mine
          </button>
          <button type="button" aria-pressed={isEveryone} onClick={() => showEveryone(true)}>
            everyone's
          </button>
        </div>
      )}
      <span class="dim count">{count}</span>
    </div>
  );
}

function newest(rows: Iterable<Session>): Session[] {
  return [...rows].sort((a, b) => compare(b.created_at, a.created_at) || compare(b.id, a.id));
}

/** The rows of the list as the address filters them. */
export function shownSessions(
  live: Iterable<Session>,
  over: Iterable<Session>,
  query: URLSearchParams,
): Session[] {
  const shown = query.get("show") ?? "live";
  const words = (query.get("filter") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...(shown === "ended" ? [] : newest(live)), ...(shown === "live" ? [] : newest(over))];
  return words.length ? rows.filter((session) => matches(session, words)) : rows;
}

export function SessionsScreen() {
  const { query, id } = use(place);
  const withUser = use(everyone);
  const isAsking = !use(isLoaded);
  const rows = shownSessions(use(sessions).values(), use(ended).values(), query);
  return (
    <section class="sessions" aria-label="Sessions">
      <Filters query={query} count={rows.length} />
      {rows.length > 0 ? (
        <List
          label="List of sessions"
          screen="sessions"
          id={id}
          query={query.toString()}
          rows={rows.map((session) => ({ session }))}
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
