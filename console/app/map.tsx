// SPDX-License-Identifier: Apache-2.0
// Who holds which part of which card, and what of it is used now.
import { bytes, plain, slotName } from "./format";
import { isLoaded, lostAt, nodes, sessions, who } from "./live";
import type { Card, Node, Part, Session } from "./model";
import { cardShare, Empty, Meter, percent, share, State, use } from "./parts";
import { address } from "./place";

function nodeState(node: Node) {
  if (use(lostAt)) return <State word="unknown" shape="open" />;
  if (node.status !== "ALIVE") return <State word="lost" shape="failed" />;
  if (!node.connected) return <State word="unknown" shape="open" />;
  if (!node.schedulable) return <State word="drained" shape="half" />;
  return <State word="ready" shape="full" />;
}

function holder(session: Session | undefined): string {
  if (!session) return "somebody";
  return session.user && session.user !== who.value?.user
    ? `${session.name}, ${plain(session.user)}`
    : session.name;
}

function PartBar({
  node,
  card,
  part,
  session,
}: {
  node: Node;
  card: Card;
  part: Part;
  session: Session | undefined;
}) {
  const used = node.part_use[part.kernel];
  const util = cardShare(used, "util");
  const mem = cardShare(used, "mem");
  const says = `${part.amount} of ${card.amount}: ${holder(session)}; GPU use ${percent(util)}, memory use ${percent(mem)}`;
  const style = { width: `${(Number(part.amount) / Number(card.amount)) * 100}%` };
  const fill = (
    <>
      <span class="fill" style={{ width: `${(util ?? 0) * 100}%` }} />
      <span class="fill mem" style={{ width: `${(mem ?? 0) * 100}%` }} />
      <span class="name">{session?.name ?? ""}</span>
    </>
  );
  return session ? (
    <a
      class={`part ${session.user === who.value?.user ? "own" : ""}`}
      style={style}
      title={says}
      aria-label={says}
      href={address("map", session.id)}
      data-of={session.id}
    >
      {fill}
    </a>
  ) : (
    <span class="part" style={style} title={says} role="img" aria-label={says}>
      {fill}
    </span>
  );
}

function free(card: Card): string {
  const held = card.parts.reduce((sum, part) => sum + Number(part.amount), 0);
  return String(Number((Number(card.amount) - held).toFixed(6)));
}

function CardBar({
  node,
  card,
  index,
  bySession,
}: {
  node: Node;
  card: Card;
  index: number;
  bySession: Map<string, Session>;
}) {
  const model = plain(card.model);
  const title = [model, card.memory && bytes(card.memory), card.id].filter(Boolean).join(", ");
  return (
    <div class={`card ${card.status ? "ill" : ""}`}>
      <span class="label" title={title}>
        {index}
      </span>
      <div class="bar">
        {card.parts.map((part) => (
          <PartBar key={part.kernel} node={node} card={card} part={part} session={bySession.get(part.of)} />
        ))}
      </div>
      <span class="left">
        {card.status ? plain(card.status) : free(card)}
        <span class="sr"> {slotName(card.slot)} free</span>
      </span>
    </div>
  );
}

function NodeRow({ node, bySession }: { node: Node; bySession: Map<string, Session> }) {
  const held = (slot: string) => Number(node.held?.[slot] ?? 0);
  const offered = (slot: string) => Number(node.offered[slot] ?? 0);
  const part = (slot: string) => (offered(slot) ? held(slot) / offered(slot) : 0);
  return (
    <tr>
      <th scope="row">
        <span class="name">{plain(node.id)}</span>
        {nodeState(node)}
        {node.drain_reason && (
          <span class="dim" title={plain(node.drain_reason)}>
            {plain(node.drain_reason)}
          </span>
        )}
      </th>
      <td class="host">
        <Meter label="CPU held" value={part("cpu")}>
          {held("cpu")}/{offered("cpu")} CPU{" "}
          <span class="dim">{percent(share(node.use, "cpu_util"))} used</span>
        </Meter>
        <Meter label="memory held" value={part("mem")}>
          {bytes(held("mem"))}/{bytes(offered("mem"))}{" "}
          <span class="dim">{percent(share(node.use, "mem"))} used</span>
        </Meter>
      </td>
      <td class="cards">
        <div>
          {node.cards.map((card, index) => (
            <CardBar key={card.slot + card.id} node={node} card={card} index={index} bySession={bySession} />
          ))}
          {node.cards.length === 0 && <span class="dim">no GPU</span>}
        </div>
      </td>
    </tr>
  );
}

export function MapScreen() {
  const rows = [...use(nodes).values()].sort((a, b) =>
    a.id.localeCompare(b.id, undefined, { numeric: true }),
  );
  const bySession = new Map([...use(sessions).values()].map((session) => [session.number, session]));
  if (!use(isLoaded)) return <Empty>Asking the manager…</Empty>;
  if (!rows.length)
    return <Empty>No node has joined yet: “aliquot-agent join” on a machine makes it one.</Empty>;
  const groups = [...new Set(rows.map((node) => node.resource_group))];
  return (
    <section class="map" aria-label="Nodes">
      {groups.map((group) => (
        <table key={group}>
          <caption>{plain(group)}</caption>
          <thead class="sr">
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Host</th>
              <th scope="col">Cards</th>
            </tr>
          </thead>
          <tbody>
            {rows
              .filter((node) => node.resource_group === group)
              .map((node) => (
                <NodeRow key={node.id} node={node} bySession={bySession} />
              ))}
          </tbody>
        </table>
      ))}
      <p class="legend">
        <span class="part own">yours</span> <span class="part">others'</span> <span class="bar">free</span>
        <span>Left number: card, right number: free. Upper bar: GPU use, lower bar: memory use.</span>
      </p>
    </section>
  );
}
