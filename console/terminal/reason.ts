// SPDX-License-Identifier: Apache-2.0
// Why there is no connection: a WebSocket is refused without reasons, so the proxy is asked by HTTP.

const ANSWER_MSEC = 10000;

export interface Reason {
  /** What the proxy says; "" if it answers as usual, or not at all. */
  text: string;
  /** "retry": it may work later; "refused": not without the user; "over": the session has ended. */
  kind: "retry" | "refused" | "over";
}

function mayPass(status: number): boolean {
  return status === 429 || status >= 500;
}

export async function findReason(): Promise<Reason> {
  let reply: Response;
  try {
    reply = await fetch("token", {
      cache: "no-store",
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(ANSWER_MSEC),
    });
  } catch {
    return { text: "", kind: "retry" };
  }
  if (reply.ok) return { text: "", kind: "retry" };
  if (reply.status === 410) return { text: "", kind: "over" };
  const problem = (await reply.json().catch(() => ({}))) as { title?: string };
  return { text: problem.title ?? `status ${reply.status}`, kind: mayPass(reply.status) ? "retry" : "refused" };
}
