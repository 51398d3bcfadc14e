// SPDX-License-Identifier: Apache-2.0
// What waits, in the order in which it is looked at, and why.
import { age, plain, slots, time } from "./format";
import { isLoaded, sessions, waiting } from "./live";
import type { Session, Waiting } from "./model";
import { Empty, now, use } from "./parts";
import { address } from "./place";

interface Both {
  session: Session;
  row: Waiting;
}

function inOrder(a: Both, b: Both): number {
  return (
    plain(a.session.resource_group).localeCompare(plain(b.session.resource_group)) ||
    (a.row.position ?? Infinity) - (b.row.position ?? Infinity) ||
    a.session.created_at.localeCompare(b.session.created_at)
  );
}

/** Those of which both is known, in the order in which they are looked at. */
export function queued(rows: Iterable<Waiting>, all: ReadonlyMap<string, Session>): Both[] {
  return [...rows]
    .map((row) => ({ row, session: all.get(row.id) }))
    .filter((both): both is Both => both.session !== undefined)
    .sort(inOrder);
}

function starts(row: Waiting): string {
  if (row.starts_by) return `by ${time(row.starts_by)}`;
  return row.position === null ? "" : "not known";
}

export function QueueScreen() {
  const rows = queued(use(waiting).values(), use(sessions));
  if (!use(isLoaded)) return <Empty>Asking the manager…</Empty>;
  if (!rows.length) return <Empty>Nothing waits.</Empty>;
  return (
    <section class="queue" aria-label="Queue">
      <table>
        <thead>
          <tr>
            <th scope="col">Place</th>
            <th scope="col">Name</th>
            <th scope="col">Asks for</th>
            <th scope="col" class="wide">
              Resource group
            </th>
            <th scope="col" class="wide">
              Starts
            </th>
            <th scope="col" class="age">
              Waits
            </th>
          </tr>
        </thead>
        {rows.map(({ row, session }) => (
          <tbody key={row.id}>
            <tr>
              <td>{row.position ? `${row.position}/${row.queue_length}` : "–"}</td>
              <th scope="row">
                <a href={address("queue", row.id)}>{session.name}</a>
              </th>
              <td class="amounts">{slots(session.requested_slots)}</td>
              <td class="wide">{plain(session.resource_group)}</td>
              <td class="wide">{starts(row)}</td>
              <td class="age">{age(session.created_at, use(now))}</td>
            </tr>
            <tr class="why">
              <td />
              <td colSpan={5}>{plain(row.text) || "The scheduler has not looked at it yet."}</td>
            </tr>
          </tbody>
        ))}
      </table>
    </section>
  );
}
