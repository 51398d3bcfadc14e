// SPDX-License-Identifier: Apache-2.0
// The list of model services, and what the list and the page of one service both show.
import { useAnswer } from "./answer";
import { Spark } from "./charts";
import { Choice, Whose } from "./choice";
import { number, plain } from "./format";
import { type Column, List } from "./list";
import { everyone } from "./live";
import { Copy, Empty, State, use } from "./parts";
import { address, amend, place } from "./place";
import {
  bounds,
  type Counts,
  isOver,
  nameOf,
  noteFigures,
  pointsOf,
  rateOf,
  type Service,
  SERVICE_MSEC,
  SERVICES,
  shareText,
  stateOfService,
} from "./serving";

const BOXES_MAX = 12;
const MSEC_EACH = 20; // the longer the list, the less often it is read

/** A box for each replica, and a dashed one for each that is missing; beside them, how many are ready. */
export function Replicas({ counts }: { counts: Counts }) {
  const kinds = ["ready", "starting", "unhealthy", "draining"] as const;
  const live = counts.ready + counts.starting + counts.unhealthy;
  const missing = Math.max(0, counts.wanted - live);
  const all = [
    ...kinds.flatMap((kind) => Array<string>(Math.min(BOXES_MAX + 1, counts[kind])).fill(kind)),
    ...Array<string>(Math.min(BOXES_MAX + 1, missing)).fill("missing"),
  ];
  const range = bounds(counts);
  const words = [
    ...kinds.filter((kind) => counts[kind]).map((kind) => `${counts[kind]} ${kind}`),
    `${counts.wanted} wanted${range ? ` of ${range}` : ""}`,
  ].join(", ");
  return (
    <span class="replicas" title={words}>
      <span class="boxes" aria-hidden="true">
        {all.slice(0, BOXES_MAX).map((kind, i) => (
          <i key={i} class={kind} />
        ))}
        {all.length > BOXES_MAX && "…"}
      </span>
      <span class="words">
        {counts.ready}/{counts.wanted}
        {range && <span class="dim"> ({range})</span>}
      </span>
      <span class="sr">{words}</span>
    </span>
  );
}

function Requests({ service }: { service: Service }) {
  const points = pointsOf(service);
  const rate = rateOf(service);
  return (
    <span class="meter">
      <Spark
        times={points.map(({ at }) => at)}
        breaks={points.map(({ isAfterGap }) => isAfterGap)}
        values={points.map(({ rate: value }) => value)}
      />
      <span>{rate ? number(rate.requests) : "–"}</span>
    </span>
  );
}

interface Row {
  id: string;
  service: Service;
}

const COLUMNS: Column<Row>[] = [
  { title: "State", kind: "status", cell: ({ service }) => <State {...stateOfService(service)} /> },
  { title: "Service", cell: ({ service }) => plain(service.name) },
  {
    title: "URL",
    kind: "widest",
    cell: ({ service: { url } }) =>
      url && (
        <span class="url" onClick={(event) => event.stopPropagation()}>
          <Copy command={url}>Copy</Copy> <span>{plain(url)}</span>
        </span>
      ),
  },
  { title: "Replicas", kind: "boxed", cell: ({ service }) => <Replicas counts={service.replicas} /> },
  { title: "Share", kind: "wide share", cell: ({ service }) => shareText(service) },
  { title: "Requests/s", kind: "wide rate", cell: ({ service }) => <Requests service={service} /> },
  { title: "In flight", kind: "wide short", cell: ({ service: { figures } }) => figures.in_flight },
  {
    title: "Errors/s",
    kind: "wider short",
    cell: ({ service }) => {
      const rate = rateOf(service);
      return <span class={rate?.errors ? "bad" : ""}>{rate ? number(rate.errors) : "–"}</span>;
    },
  },
  { title: "Revision", kind: "wider short", cell: ({ service: { revision } }) => revision?.number },
  { title: "Owner", kind: "widest", cell: ({ service }) => plain(service.owner) },
];

/** Those that live first; among each, the newest first. */
function inOrder(services: readonly Service[]): Row[] {
  return [...services]
    .reverse()
    .sort((a, b) => Number(isOver(a)) - Number(isOver(b)))
    .map((service) => ({ id: nameOf(service), service }));
}

export function ServicesScreen() {
  const { query } = use(place);
  const isEveryone = use(everyone);
  const isAll = query.get("show") === "all";
  const path = `${SERVICES}?all=${isEveryone}&all_states=${isAll}`;
  const { answer, why } = useAnswer<{ items: Service[] }>(
    path,
    ({ items }) => SERVICE_MSEC + MSEC_EACH * items.length,
  );
  if (answer) noteFigures(answer.items);
  const rows = inOrder(answer?.items ?? []);
  const show = (what: string) => amend(new URLSearchParams(what ? { show: what } : {}));
  return (
    <section class="sessions" aria-label="Services">
      <div class="filters">
        <Choice
          label="Which services"
          options={[
            ["", "live"],
            ["all", "all"],
          ]}
          value={isAll ? "all" : ""}
          set={show}
        />
        <Whose label="Whose services" />
        <a class="main" href={address("serve")}>
          Create service
        </a>
        {answer && why && <span class="bad">{why}</span>}
      </div>
      {!answer ? (
        <Empty>{why || "Asking the manager…"}</Empty>
      ) : rows.length ? (
        <List
          label="Model services"
          screen="service"
          id=""
          rows={rows}
          columns={isEveryone ? COLUMNS : COLUMNS.filter(({ title }) => title !== "Owner")}
        />
      ) : (
        <Empty>
          There is no model service yet. <a href={address("serve")}>Create one</a>, or with the command line:{" "}
          <code>aliquot service create</code>
        </Empty>
      )}
    </section>
  );
}
