// SPDX-License-Identifier: Apache-2.0
// What waits, in the order in which it is looked at, and why.
import { compare, plain, reason, slots, time } from "./format";
import { type Column, List } from "./list";
import { everyone, isLoaded, sessions, waiting } from "./live";
import type { Session, Waiting } from "./model";
import { Age, Empty, use } from "./parts";
import { place } from "./place";

interface Both {
  id: string;
  session: Session;
  row: Waiting;
}

function inOrder(a: Both, b: Both): number {
  return (
    compare(a.session.resource_group ?? "", b.session.resource_group ?? "") ||
    compare(a.row.position ?? Infinity, b.row.position ?? Infinity) ||
    compare(a.session.created_at, b.session.created_at)
  );
}

/** Those of which both is known, in the order in which they are looked at. */
export function queued(rows: Iterable<Waiting>, all: ReadonlyMap<string, Session>): Both[] {
  return [...rows]
    .map((row) => ({ id: row.id, row, session: all.get(row.id) }))
    .filter((both): both is Both => both.session !== undefined)
    .sort(inOrder);
}

function starts(row: Waiting): string {
  if (row.starts_by) return `by ${time(row.starts_by)}`;
  return row.position === null ? "" : "not known";
}

const COLUMNS: Column<Both>[] = [
  { title: "Place", kind: "short", cell: ({ row }) => (row.position ? `${row.position}/${row.queue_length}` : "–") },
  { title: "Name", cell: ({ session }) => session.name },
  { title: "Resources", kind: "amounts", cell: ({ session }) => slots(session.resources) },
  { title: "Resource group", kind: "wide", cell: ({ session }) => plain(session.resource_group) },
  { title: "Starts", kind: "wide start", cell: ({ row }) => starts(row) },
  { title: "User", kind: "wide", cell: ({ session }) => plain(session.user) },
  { title: "Waiting", kind: "age", cell: ({ session }) => <Age from={session.created_at} /> },
];

export function QueueScreen() {
  const { id } = use(place);
  const withUser = use(everyone);
  const rows = queued(use(waiting).values(), use(sessions));
  if (!use(isLoaded)) return <Empty>Asking the manager…</Empty>;
  if (!rows.length) return <Empty>The queue is empty.</Empty>;
  return (
    <section class="queue" aria-label="Queue">
      <List
        label="What waits"
        screen="queue"
        id={id}
        rows={rows}
        columns={withUser ? COLUMNS : COLUMNS.filter(({ title }) => title !== "User")}
        note={({ row }) => reason(row.text) || "The scheduler has not looked at it yet."}
      />
    </section>
  );
}
