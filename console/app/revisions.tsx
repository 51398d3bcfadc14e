// SPDX-License-Identifier: Apache-2.0
// Revisions of a model service: what differs between two of them, and the way back to one.
import { useState } from "preact/hooks";
import { useAnswer } from "./answer";
import { image, plain, quote, slots, time } from "./format";
import { Commands, Confirm, Empty, say } from "./parts";
import { manager } from "./server";
import { differences, exact, isOver, pathOf, recentText, type Revision, type Service, SERVICE_MSEC } from "./serving";

function Rollback({ service, to, after }: { service: Service; to: number; after: () => void }) {
  async function act(): Promise<void> {
    await manager.post(`${pathOf(service)}/rollback`, { revision: to });
    say(`${service.name} goes back to revision ${to}.`);
    after();
  }
  return <Confirm verb="Roll back" name={`to revision ${to}`} what={`to revision ${to}`} act={act} />;
}

/** Two of them, the newest and the one before at first. */
function Compared({ revisions }: { revisions: readonly Revision[] }) {
  const [from, setFrom] = useState<number | null>(null);
  const [to, setTo] = useState<number | null>(null);
  const goal = revisions.find(({ is_goal }) => is_goal) ?? revisions[0];
  const after = revisions.find(({ number }) => number === to) ?? goal;
  const before =
    revisions.find(({ number }) => number === from) ??
    revisions.find(({ number }) => number < (after?.number ?? 0)) ??
    revisions.find(({ number }) => number !== after?.number);
  if (!after || !before) return null;
  const said = differences(before, after);
  const choice = (label: string, value: number, set: (number: number) => void) => (
    <select aria-label={label} value={String(value)} onChange={(event) => set(Number(event.currentTarget.value))}>
      {revisions.map(({ number }) => (
        <option key={number} value={String(number)}>
          {number}
        </option>
      ))}
    </select>
  );
  return (
    <div role="group" aria-label="Differences">
      <h3>
        From revision {choice("From revision", before.number, setFrom)} to{" "}
        {choice("To revision", after.number, setTo)}
      </h3>
      <ul class="differences">
        {said.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      {!said.length && <p class="dim">Both say the same; all replicas were started again.</p>}
    </div>
  );
}

const TITLES = ["Revision", "Image", "Resources", "Changed", "Note", "Made by", "Made", "Last minute", "Back"];

export function Revisions({ service, after }: { service: Service; after: () => void }) {
  const { answer, why, again } = useAnswer<{ items: Revision[] }>(`${pathOf(service)}/revisions`, 2 * SERVICE_MSEC);
  if (!answer) return <Empty>{why || "Asking the manager…"}</Empty>;
  const revisions = answer.items;
  const figures = service.revision_figures;
  const titles = TITLES.filter((title) => title !== "Last minute" || figures);
  const done = () => {
    again();
    after();
  };
  return (
    <div class="section">
      <div class="wide-table" tabIndex={0} role="region" aria-label="Revisions">
        <table>
          <thead>
            <tr>
              {titles.map((title) => (
                <th key={title} scope="col">
                  {title === "Back" ? <span class="sr">Roll back</span> : title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {revisions.map((revision, i) => {
              const before = revisions[i + 1];
              const said = before ? differences(before, revision) : [];
              const recent = figures?.find((each) => each.revision === revision.number)?.recent;
              return (
                <tr key={revision.number}>
                  <th scope="row">
                    {revision.number}
                    {revision.is_goal && <span class="dim"> wanted</span>}
                  </th>
                  <td title={plain(revision.image)}>{image(revision.image)}</td>
                  <td>{slots(exact(revision.resources))}</td>
                  <td title={said.join("\n")}>
                    {said.length > 1 ? `${said[0]} and ${said.length - 1} more` : (said[0] ?? "")}
                  </td>
                  <td title={plain(revision.note)}>{plain(revision.note)}</td>
                  <td>{plain(revision.created_by)}</td>
                  <td>{time(revision.created_at)}</td>
                  {figures && <td>{recent ? recentText(recent) : ""}</td>}
                  <td>
                    {!revision.is_goal && !isOver(service) && (
                      <Rollback service={service} to={revision.number} after={done} />
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <Compared revisions={revisions} />
      <Commands
        commands={[
          ["List", `aliquot service revisions ${quote(service.name)}`],
          ["Roll back", `aliquot service rollback ${quote(service.name)}`],
        ]}
      />
    </div>
  );
}
