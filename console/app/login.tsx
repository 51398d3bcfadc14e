// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { logIn } from "./server";

export function Login({ note, onIn }: { note: string; onIn: () => void }) {
  const [why, setWhy] = useState(note);
  const [isBusy, setBusy] = useState(false);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setWhy("");
    const refusal = await logIn(String(given.get("username")), String(given.get("password")));
    setBusy(false);
    if (refusal) setWhy(refusal);
    else onIn();
  }

  return (
    <main class="login">
      <form onSubmit={(event) => void submit(event as unknown as SubmitEvent)}>
        <h1>aliquot</h1>
        <label>
          E-mail
          <input name="username" type="email" autocomplete="username" required autofocus />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        <p class="bad" role="alert">
          {why}
        </p>
        <button type="submit" class="main" disabled={isBusy}>
          Log in
        </button>
      </form>
    </main>
  );
}
