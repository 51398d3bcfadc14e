// SPDX-License-Identifier: Apache-2.0
// Requests to the web server, which signs them for the manager.

const ANSWER_MSEC = 12000; // in which the web server says who is logged in
const MISMATCH = "User credential mismatch."; // in the words of Backend.AI, which its clients read

/** What a server has refused, in its own words. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

interface Problem {
  type?: string;
  title?: string;
  msg?: string;
  data?: Record<string, unknown> | null; // of a parameter: its name, and what is wrong with it
}

function words(problem: Problem, status: number): { field: string; text: string } {
  const [field = "", why] = Object.entries(problem.data ?? {})[0] ?? [];
  if (typeof why === "string") return { field, text: why };
  return { field: "", text: problem.msg ?? problem.title ?? `the server answered with status ${status}` };
}

export const onExpired = { call: (): void => undefined };

export async function ask(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  key?: string,
): Promise<Response> {
  const options: RequestInit = { method, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  if (signal) options.signal = signal;
  if (key) options.headers = { ...options.headers, "Idempotency-Key": key };
  let reply: Response;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Refusal(0, "unreachable", "", "The server cannot be reached.");
  }
  if (reply.ok) return reply;
  const problem = ((await reply.json().catch(() => null)) ?? {}) as Problem;
  if (reply.status === 401 && path.startsWith("/func/")) onExpired.call();
  const { field, text } = words(problem, reply.status);
  throw new Refusal(reply.status, problem.type?.split("/").pop() ?? "", field, text);
}

async function json<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  key?: string,
): Promise<T> {
  const reply = await ask(method, path, body, signal, key);
  return (reply.status === 204 ? null : await reply.json()) as T;
}

/** Of the manager. */
export const manager = {
  get: <T>(path: string, signal?: AbortSignal) => json<T>("GET", `/func${path}`, undefined, signal),
  /** With a key a request that is sent again gets the first answer, where the route keeps answers. */
  post: <T>(path: string, body: unknown, signal?: AbortSignal, key?: string) =>
    json<T>("POST", `/func${path}`, body, signal, key),
  patch: <T>(path: string, body: unknown) => json<T>("PATCH", `/func${path}`, body),
  remove: <T>(path: string, body: unknown) => json<T>("DELETE", `/func${path}`, body),
};

interface LoginReply {
  authenticated: boolean;
  data?: { type?: string; title?: string; details?: string } | null;
}

export async function isLoggedIn(): Promise<boolean> {
  const signal = AbortSignal.timeout(ANSWER_MSEC);
  return (await json<LoginReply>("POST", "/server/login-check", {}, signal)).authenticated;
}

/** "" when it has let in, else why not. */
export async function logIn(username: string, password: string): Promise<string> {
  try {
    const reply = await json<LoginReply>("POST", "/server/login", { username, password });
    if (reply.authenticated) return "";
    const why = reply.data?.details ?? reply.data?.title ?? MISMATCH;
    return why === MISMATCH ? "Wrong e-mail address or password." : why;
  } catch (error) {
    return error instanceof Refusal ? error.message : String(error);
  }
}

export async function logOut(): Promise<void> {
  await ask("POST", "/server/logout", {});
}

export function liveAddress(): string {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/func/aliquot/v1/live`;
}
