// SPDX-License-Identifier: Apache-2.0
// One model service: what it does now, its replicas, and the tabs with all that can be changed.
import { useEffect, useState } from "preact/hooks";
import { useAnswer } from "./answer";
import { Chart } from "./charts";
import { Choice } from "./choice";
import { DeployForm } from "./deploy";
import { number, plain, quote, reason, time } from "./format";
import { LogView } from "./log";
import { who } from "./live";
import { Age, Commands, Confirm, Copy, Empty, Facts, failure, now, say, State, use } from "./parts";
import { address, amend, place } from "./place";
import { Revisions } from "./revisions";
import { RolloutView } from "./rollout";
import { manager, Refusal } from "./server";
import { Replicas } from "./services";
import {
  isOver,
  nameOf,
  noteFigures,
  pathOf,
  pointsOf,
  recentText,
  type Replica,
  type Service,
  SERVICE_MSEC,
  SERVICES,
  shareText,
  stateOfReplica,
  stateOfService,
} from "./serving";
import { Settings } from "./settings";
import { Tokens } from "./tokens";

// ---- what is done with all of it ----

function Scale({ service, after }: { service: Service; after: () => void }) {
  const { wanted, min, max } = service.replicas;
  const [text, setText] = useState("");
  const present = min === max ? String(wanted) : `${min}-${max}`;
  async function act(event: Event): Promise<void> {
    event.preventDefault();
    try {
      await manager.patch(pathOf(service), { replicas: text.trim() });
      say(`${service.name} is scaled to ${text.trim()}.`);
      setText("");
      after();
    } catch (error) {
      say(failure(error), true);
    }
  }
  return (
    <form class="scale" onSubmit={(event) => void act(event)}>
      <label>
        <span class="sr">Replicas: a number, or bounds such as 0-8</span>
        <input
          id="scale"
          value={text}
          placeholder={present}
          size={5}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={!text.trim() || text.trim() === present}>
        Scale
      </button>
    </form>
  );
}

function End({ service, after }: { service: Service; after: () => void }) {
  async function end(force: boolean): Promise<void> {
    await manager.remove(pathOf(service), { force });
    say(`${service.name} is being ended.`);
    after();
  }
  return <Confirm verb="End" name={service.name} act={() => end(false)} kill={() => end(true)} />;
}

function commandsOf(service: Service): [string, string][] {
  const name = quote(nameOf(service));
  const all: [string, string][] = [
    ["Show", `aliquot service info ${name}`],
    ["Log", `aliquot service logs --follow ${name}`],
  ];
  if (isOver(service)) return all;
  return [
    ...all,
    ["Follow", "aliquot service top"],
    ["Scale", `aliquot service scale ${name} ${service.replicas.wanted}`],
    ["Start again", `aliquot service deploy ${name} --note 'start again'`],
    ["End", `aliquot service rm ${name}`],
  ];
}

// ---- figures ----

function Charts({ service }: { service: Service }) {
  const points = pointsOf(service);
  const times = points.map(({ at }) => at);
  const breaks = points.map(({ isAfterGap }) => isAfterGap);
  const { figures } = service;
  return (
    <div class="charts">
      <Chart
        title="Requests/s"
        unit=""
        times={times}
        breaks={breaks}
        series={[
          { name: "all", kind: "all", values: points.map(({ rate }) => rate) },
          { name: "errors", kind: "bad", values: points.map(({ errors }) => errors) },
        ]}
      />
      <Chart
        title="Under way"
        unit=""
        times={times}
        breaks={breaks}
        series={[
          { name: "in flight", kind: "all", values: points.map(({ inFlight }) => inFlight) },
          { name: "waiting", kind: "rest", values: points.map(({ queued }) => queued) },
        ]}
      />
      <Chart
        title="First byte"
        unit=" ms"
        times={times}
        breaks={breaks}
        series={[{ name: "mean", kind: "all", values: points.map(({ firstByte }) => firstByte) }]}
      />
      <p class="dim totals">
        {number(figures.requests)} requests in all: {number(figures.ok)} answered,{" "}
        {number(figures.client_errors)} with errors of clients, {number(figures.server_errors)} with errors of replicas,{" "}
        {number(figures.refused)} refused, {number(figures.broken)} broken off
        {figures.recent && <>. Last minute: {recentText(figures.recent)}</>}
      </p>
    </div>
  );
}

// ---- what is wrong ----

interface Past {
  id: string;
  name: string;
}

/** Replicas that are there or have ended lately, as their sessions are called; the newest first. */
function usePast(service: Service): Past[] {
  const [past, setPast] = useState<Past[]>([]);
  const live = (service.replica_list ?? []).map(({ session }) => session).join();
  useEffect(() => {
    const gone = new AbortController();
    const query = new URLSearchParams({
      filter: `name ilike "${service.name}.r%.%"`,
      fields: "id,name",
      order: "-created_at",
      limit: "20",
      ...(who.value?.is_admin ? { all: "true" } : {}),
    });
    manager.get<{ items: Past[] }>(`/aliquot/v1/sessions?${query}`, gone.signal).then(
      ({ items }) => setPast(items),
      () => undefined, // only the logs of live replicas are offered then
    );
    return () => gone.abort();
  }, [service.id, live, service.problem]);
  return past;
}

function Log({ service }: { service: Service }) {
  const [chosen, setChosen] = useState("");
  const [isOpen, setOpen] = useState(false);
  const past = usePast(service);
  const live = (service.replica_list ?? []).map(({ session, session_name }) => ({ id: session, name: session_name }));
  const all = [...live, ...past.filter(({ id }) => !live.some((each) => each.id === id))];
  // The one that the problem is about, until another one is chosen.
  const named = all.find(({ name }) => service.problem?.includes(`'${name}'`));
  const shown = all.find(({ id }) => id === chosen) ?? named ?? all[0];
  if (!shown) return null;
  return (
    <details class="replica-log" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Log of a replica</summary>
      <p>
        <select aria-label="Replica" value={shown.id} onChange={(event) => setChosen(event.currentTarget.value)}>
          {all.map(({ id, name }) => (
            <option key={id} value={id}>
              {plain(name)}
              {live.some((each) => each.id === id) ? "" : " (ended)"}
            </option>
          ))}
        </select>{" "}
        <a href={address("sessions", shown.id, "show=all")}>Session</a>{" "}
        <Copy command={`aliquot logs --follow ${shown.id}`} />
      </p>
      {isOpen && <LogView key={shown.id} session={shown} kernel="main1" />}
    </details>
  );
}

function Problem({ service }: { service: Service }) {
  const at = use(now);
  const left = service.retry_at ? Math.round((Date.parse(service.retry_at) - at) / 1000) : 0;
  if (!service.problem) return null;
  return (
    <div class="reason bad-reason" role="group" aria-label="Problem">
      <p>{service.problem.split("\n").map(plain).join("\n")}</p>
      {service.retry_at && <p class="dim">{left > 0 ? `The next replica is tried in ${left} s.` : "A replica is tried again now."}</p>}
    </div>
  );
}

// ---- replicas ----

function Ratio({ service, replica, after }: { service: Service; replica: Replica; after: () => void }) {
  const [text, setText] = useState<string | null>(null);
  async function act(event: Event): Promise<void> {
    event.preventDefault();
    try {
      await manager.patch(`${pathOf(service)}/replicas/${replica.session}`, { ratio: Number(text) });
      setText(null);
      after();
    } catch (error) {
      say(error instanceof Refusal ? `ratio: ${error.message}` : failure(error), true);
    }
  }
  return (
    <form class="scale" onSubmit={(event) => void act(event)}>
      <input
        aria-label={`Part of the requests of ${replica.session_name}`}
        inputMode="decimal"
        size={4}
        value={text ?? number(replica.ratio)}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {text !== null && Number(text) !== replica.ratio && <button type="submit">Set</button>}
    </form>
  );
}

function ReplicaTable({ service, after }: { service: Service; after: () => void }) {
  const replicas = service.replica_list ?? [];
  const hasShares = replicas.some(({ share }) => share !== undefined && share !== null);
  if (!replicas.length) return null;
  const titles = ["State", "Replica", "Revision", ...(hasShares ? ["Share"] : []), "In flight", "Requests", "Failures", "Ratio", "Node", "Ready", "Probe"];
  return (
    <div class="wide-table" tabIndex={0} role="region" aria-label="Replicas">
      <table>
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {replicas.map((replica) => (
            <tr key={replica.session}>
              <td>
                <State {...stateOfReplica(replica)} />
              </td>
              <th scope="row">
                <a href={address("sessions", replica.session)}>{plain(replica.session_name)}</a>
              </th>
              <td>{replica.revision}</td>
              {hasShares && (
                <td title={plain(replica.share_problem)}>
                  {replica.share == null ? "" : number(replica.share)}
                  {replica.share_problem && <span class="bad"> {reason(replica.share_problem)}</span>}
                </td>
              )}
              <td>{replica.in_flight}</td>
              <td>{replica.requests}</td>
              <td>
                {replica.failures}
                {replica.ejected && <span class="bad"> left out for now</span>}
              </td>
              <td>
                <Ratio service={service} replica={replica} after={after} />
              </td>
              <td>{plain(replica.agent)}</td>
              <td>{replica.ready_at ? <Age from={replica.ready_at} /> : ""}</td>
              <td title={plain(replica.health_text)}>{reason(replica.health_text)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function access({ public: isPublic, tokens }: Service): string {
  if (isPublic) return "public: without a token";
  return tokens ? `with ${tokens === 1 ? "one token" : `one of ${tokens} tokens`}` : "refused: there is no token yet";
}

function Overview({ service, after }: { service: Service; after: () => void }) {
  const { revision } = service;
  return (
    <div class="section">
      <Problem service={service} />
      <RolloutView service={service} after={after} />
      {service.status !== "ended" && <Charts service={service} />}
      <ReplicaTable service={service} after={after} />
      <Log service={service} />
      <Facts
        rows={[
          ["Why so many", service.scaling_reason && plain(service.scaling_reason)],
          ["Share", shareText(service)],
          ["Further URLs", service.urls.length > 1 && service.urls.filter((url) => url !== service.url).map(plain).join(" ")],
          ["Image", plain(revision?.image)],
          ["Model", plain(revision?.model_name)],
          ["Command", revision?.command && <code>{plain(revision.command)}</code>],
          ["Revision", revision && `${revision.number}${revision.note ? `: ${plain(revision.note)}` : ""}`],
          ["Tag", plain(service.tag)],
          ["Requests", access(service)],
          ["Owner", plain(service.owner)],
          ["Project", plain(service.project)],
          ["Resource group", plain(service.resource_group)],
          ["Created", time(service.created_at)],
          ["Ended", service.ended_at ? time(service.ended_at) : ""],
          ["ID", service.id],
        ]}
      />
    </div>
  );
}

// ---- history ----

interface Change {
  at: string;
  version: number;
  replicas: number;
  share?: number | null;
  revision: number;
  reason: string | null;
}

function History({ service }: { service: Service }) {
  const path = `${pathOf(service)}/history?limit=100`;
  const { answer, why } = useAnswer<{ items: Change[] }>(path, 5 * SERVICE_MSEC);
  if (!answer) return <Empty>{why || "Asking the manager…"}</Empty>;
  return (
    <div class="section">
      <div class="wide-table" tabIndex={0} role="region" aria-label="History">
        <table>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Replicas</th>
              <th scope="col">Revision</th>
              <th scope="col">Share</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {answer.items.map((change) => (
              <tr key={change.version}>
                <td>{time(change.at)}</td>
                <td>{change.replicas}</td>
                <td>{change.revision}</td>
                <td>{change.share ?? ""}</td>
                <td title={plain(change.reason)}>{plain(change.reason ?? "requested")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

// ---- all of it ----

const TABS: [string, string][] = [
  ["", "Overview"],
  ["revisions", "Revisions"],
  ["deploy", "Deploy"],
  ["tokens", "Tokens"],
  ["settings", "Settings"],
  ["history", "History"],
];
const LIVE_TABS = ["deploy", "tokens", "settings"];

function Tab({ tab, service, after }: { tab: string; service: Service; after: () => void }) {
  switch (tab) {
    case "revisions":
      return <Revisions service={service} after={after} />;
    case "deploy":
      return (
        <DeployForm
          key={service.revision?.number}
          of={service}
          after={() => {
            after();
            amend(new URLSearchParams());
          }}
        />
      );
    case "tokens":
      return <Tokens service={service} />;
    case "settings":
      return <Settings key={service.id} service={service} after={after} />;
    case "history":
      return <History service={service} />;
    default:
      return <Overview service={service} after={after} />;
  }
}

export function ServiceScreen({ id }: { id: string }) {
  const { query } = use(place);
  const { answer: service, why, again } = useAnswer<Service>(`${SERVICES}/${encodeURIComponent(id)}`, SERVICE_MSEC);
  if (!service) return <Empty>{why || "Asking the manager…"}</Empty>;
  if (service.status !== "ended") noteFigures([service]);
  const tab = query.get("show") ?? "";
  // Managers that have rollouts of several kinds have the history, too.
  const isThere = (name: string) => (name === "history" ? service.rollout !== undefined : !isOver(service) || !LIVE_TABS.includes(name));
  const tabs = TABS.filter(([name]) => isThere(name));
  return (
    <section class="service" aria-label={`Service ${service.name}`}>
      <header>
        <h2>
          <a href={address("services")}>Services</a> / {plain(service.name)}
        </h2>
        <State {...stateOfService(service)} />
        <Replicas counts={service.replicas} />
        {service.url && (
          <span class="url">
            <Copy command={service.url}>Copy URL</Copy> <code>{plain(service.url)}</code>
          </span>
        )}
        {!isOver(service) && <Scale service={service} after={again} />}
        {service.status !== "ended" && <End service={service} after={again} />}
        <Commands commands={commandsOf(service)} />
        {why && <span class="bad">{why}</span>}
      </header>
      <div class="filters">
        <Choice
          label="What is shown"
          options={tabs}
          value={tab}
          set={(name) => amend(new URLSearchParams(name ? { show: name } : {}))}
        />
        {service.ended_at && (
          <span class="dim">
            ended <Age from={service.ended_at} /> ago
          </span>
        )}
      </div>
      <Tab tab={tabs.some(([name]) => name === tab) ? tab : ""} service={service} after={again} />
    </section>
  );
}
