// SPDX-License-Identifier: Apache-2.0
// Tokens of a model service: a new one, which is shown once, with what clients are given.
import { useState } from "preact/hooks";
import { useAnswer } from "./answer";
import { TextField, useSubmit } from "./fields";
import { number, plain, quote, time } from "./format";
import { Age, Confirm, Copy, Empty, say } from "./parts";
import { manager } from "./server";
import { pathOf, type Service, SERVICE_MSEC, type Token } from "./serving";

interface Wish {
  label: string;
  duration: string;
  rate: string;
  budget: string;
  paths: string;
}

const NEW: Wish = { label: "", duration: "", rate: "", budget: "", paths: "" };

function bodyOf(wish: Wish): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  const paths = wish.paths.split(/[\s,]+/).filter(Boolean);
  if (wish.label.trim()) body.label = wish.label.trim();
  if (wish.duration.trim()) body.duration = wish.duration.trim();
  if (wish.rate.trim()) body.rate = wish.rate.trim();
  if (wish.budget.trim()) body.budget = Number(wish.budget);
  if (paths.length) body.paths = paths;
  return body;
}

function commandOf(service: Service, wish: Wish): string {
  const words = ["aliquot", "service", "token", "create", service.name];
  if (wish.label.trim()) words.push("--label", wish.label.trim());
  if (wish.duration.trim()) words.push("--duration", wish.duration.trim());
  if (wish.rate.trim()) words.push("--rate", wish.rate.trim());
  if (wish.budget.trim()) words.push("--budget", wish.budget.trim());
  for (const path of wish.paths.split(/[\s,]+/).filter(Boolean)) words.push("--path", path);
  return words.map(quote).join(" ");
}

const FIELDS: [keyof Wish, string, string][] = [
  ["label", "Label", "for people, such as the client's name"],
  ["duration", "Valid for", "such as 30d; empty: until it is revoked"],
  ["rate", "Rate", "requests a second; empty: any"],
  ["budget", "Budget", "OpenAI tokens of prompts and answers in all; empty: any"],
  ["paths", "Paths", "only these prefixes, such as /v1/chat; empty: all"],
];

/** The commands that a client begins with. A public service needs no token. */
function Clients({ service, token }: { service: Service; token: string }) {
  const { url } = service;
  if (!url) return <p class="dim">No proxy is connected, so the service has no URL yet.</p>;
  const bearer = token ? ` -H ${quote(`Authorization: Bearer ${token}`)}` : "";
  const rows: [string, string][] = [
    ["curl", `curl${bearer} ${quote(url)}`],
    ["OpenAI", `export OPENAI_BASE_URL=${quote(`${url}v1`)} OPENAI_API_KEY=${quote(token || "none")}`],
    [
      "chat",
      `curl${bearer} ${quote(`${url}v1/chat/completions`)} -H 'Content-Type: application/json' -d ` +
        quote(JSON.stringify({ model: service.revision?.model_name ?? "model", messages: [{ role: "user", content: "hello" }] })),
    ],
  ];
  return (
    <ul class="snippets">
      {rows.map(([what, command]) => (
        <li key={what}>
          <Copy command={command} isSecret={token !== ""}>
            Copy
          </Copy>{" "}
          <span class="dim">{what}</span> <code>{plain(command)}</code>
        </li>
      ))}
    </ul>
  );
}

function Fresh({ service, token, close }: { service: Service; token: string; close: () => void }) {
  return (
    <div class="reason fresh" role="status" aria-label="New token">
      <p>
        <strong>The token is shown this once:</strong>{" "}
        <button type="button" class="plain" onClick={close}>
          Hide
        </button>
      </p>
      <p>
        <Copy command={token} isSecret>
          Copy
        </Copy>{" "}
        <code class="token">{token}</code>
      </p>
      <Clients service={service} token={token} />
    </div>
  );
}

function NewToken({ service, made }: { service: Service; made: (token: string) => void }) {
  const [wish, setWish] = useState<Wish>(NEW);
  const { isBusy, wrong, submit } = useSubmit();
  async function act(): Promise<void> {
    const { token } = await manager.post<Token & { token: string }>(`${pathOf(service)}/tokens`, bodyOf(wish));
    setWish(NEW);
    made(token);
  }
  return (
    <form
      class="launch"
      aria-label="New token"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(act);
      }}
    >
      <h3>New token</h3>
      {FIELDS.map(([name, title, hint]) => (
        <TextField
          key={name}
          id={`token-${name}`}
          title={title}
          member={name}
          wrong={wrong}
          hint={hint}
          value={wish[name]}
          set={(text) => setWish({ ...wish, [name]: text })}
        />
      ))}
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy}>
          Make token
        </button>
        <Copy command={commandOf(service, wish)} />
      </div>
    </form>
  );
}

function Row({ service, token, after }: { service: Service; token: Token; after: () => void }) {
  const name = token.label ?? token.id.slice(0, 8);
  async function revoke(): Promise<void> {
    await manager.remove(`${pathOf(service)}/tokens/${token.id}`, undefined);
    say(`Token ${name} was revoked.`);
    after();
  }
  return (
    <tr>
      <th scope="row">{plain(name)}</th>
      <td>{token.expires_at ? time(token.expires_at) : "never"}</td>
      <td>{token.rate ? `${number(token.rate)}/s` : "any"}</td>
      <td>
        {number(token.used)}
        {token.budget ? ` of ${number(token.budget)}` : ""}
      </td>
      <td>{token.requests}</td>
      <td>{token.used_at ? <Age from={token.used_at} /> : "never"}</td>
      <td>{token.paths.length ? plain(token.paths.join(" ")) : "all"}</td>
      <td>{plain(token.created_by)}</td>
      <td>
        <Confirm verb="Revoke" name={name} what={plain(name)} act={revoke} />
      </td>
    </tr>
  );
}

const TITLES = ["Label", "Expires", "Rate", "Tokens used", "Requests", "Last used", "Paths", "Made by", "Revoke"];

export function Tokens({ service }: { service: Service }) {
  const [fresh, setFresh] = useState("");
  const { answer, why, again } = useAnswer<{ items: Token[] }>(`${pathOf(service)}/tokens`, 2 * SERVICE_MSEC);
  return (
    <div class="section">
      {service.public && <p class="dim">The service is public: requests need no token. Tokens that are sent are counted.</p>}
      {fresh ? (
        <Fresh service={service} token={fresh} close={() => setFresh("")} />
      ) : (
        service.public && <Clients service={service} token="" />
      )}
      {!answer ? (
        <Empty>{why || "Asking the manager…"}</Empty>
      ) : answer.items.length ? (
        <div class="wide-table" tabIndex={0} role="region" aria-label="Tokens">
          <table>
            <thead>
              <tr>
                {TITLES.map((title) => (
                  <th key={title} scope="col">
                    {title === "Revoke" ? <span class="sr">{title}</span> : title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {answer.items.map((token) => (
                <Row key={token.id} service={service} token={token} after={again} />
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="dim">There is no token yet. Clients send one as "Authorization: Bearer TOKEN".</p>
      )}
      <NewToken
        service={service}
        made={(token) => {
          setFresh(token);
          again();
        }}
      />
    </div>
  );
}
