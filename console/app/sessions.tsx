// SPDX-License-Identifier: Apache-2.0
// The list of sessions: what lives, then what has ended, the newest first.
import { useEffect, useRef, useState } from "preact/hooks";
import { age, image, plain, slots } from "./format";
import { ended, everyone, isLoaded, sessions, showEveryone, who } from "./live";
import type { Session } from "./model";
import { stateOf } from "./model";
import { cardShare, Empty, Meter, now, share, State, use } from "./parts";
import { address, amend, go, place } from "./place";

const ROW = 32;

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
  const cores = Number(session.requested_slots.cpu ?? 0);
  return used === undefined || !cores ? null : Math.min(1, used / 1000 / cores);
}

function Row({ session, isChosen, withUser }: { session: Session; isChosen: boolean; withUser: boolean }) {
  const query = place.value.query.toString();
  const isRunning = session.status === "RUNNING";
  const gpu = cardShare(session.use, "util") ?? cardShare(session.use, "mem");
  return (
    <tr class={isChosen ? "chosen" : ""} onClick={() => go("sessions", session.id, query)}>
      <td>
        <State {...stateOf(session)} />
      </td>
      <th scope="row">
        <a href={address("sessions", session.id, query)} onClick={(event) => event.stopPropagation()}>
          {session.name}
        </a>
      </th>
      <td class="wider">{image(session.image)}</td>
      <td class="amounts">{slots(session.requested_slots)}</td>
      <td class="wide use">
        {isRunning && (
          <>
            <Meter label="CPU" value={cpuShare(session)} />
            <Meter label="mem" value={share(session.use, "mem")} />
            {gpu !== null && <Meter label="GPU" value={gpu} />}
          </>
        )}
      </td>
      {withUser && <td class="wider">{plain(session.user)}</td>}
      <td class="wide">{session.agents.map(plain).join(", ")}</td>
      <td class="age">{age(session.status_changed ?? session.created_at, use(now))}</td>
    </tr>
  );
}

/** Only the rows that can be seen are there. */
function useWindow(count: number) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW) - 20);
      setRange([first, first + Math.ceil(element.clientHeight / ROW) + 40]);
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, [count === 0]);
  return { box, first: Math.min(range[0], count), last: Math.min(range[1], count) };
}

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
  return [...rows].sort((a, b) => b.created_at.localeCompare(a.created_at) || (a.id < b.id ? 1 : -1));
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
  const { box, first, last } = useWindow(rows.length);
  return (
    <section class="sessions" aria-label="Sessions">
      <Filters query={query} count={rows.length} />
      {!rows.length && (
        <Empty>
          {isAsking
            ? "Asking the manager…"
            : query.get("filter")
              ? "Nothing matches."
              : "Nothing runs here. “Launch” starts a session."}
        </Empty>
      )}
      {rows.length > 0 && (
        <div class="rows" ref={box} tabIndex={0} role="region" aria-label="List of sessions">
          <table>
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Name</th>
                <th scope="col" class="wider">
                  Image
                </th>
                <th scope="col">Has</th>
                <th scope="col" class="wide">
                  Uses now
                </th>
                {withUser && (
                  <th scope="col" class="wider">
                    User
                  </th>
                )}
                <th scope="col" class="wide">
                  Node
                </th>
                <th scope="col" class="age">
                  Since
                </th>
              </tr>
            </thead>
            <tbody>
              {first > 0 && <tr class="space" style={{ height: `${first * ROW}px` }} />}
              {rows.slice(first, last).map((session) => (
                <Row key={session.id} session={session} isChosen={session.id === id} withUser={withUser} />
              ))}
              {last < rows.length && (
                <tr class="space" style={{ height: `${(rows.length - last) * ROW}px` }} />
              )}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
