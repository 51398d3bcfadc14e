// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { logIn } from "./server";

let user = ""; // who was last logged in

export function Login({ note, onIn }: { note: string; onIn: () => void }) {
  const [why, setWhy] = useState(note);
  const [isBusy, setBusy] = useState(false);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setWhy("");
    user = String(given.get("username"));
    const refusal = await logIn(user, String(given.get("password")));
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
          <input
            name="username"
            type="email"
            autocomplete="username"
            required
            autofocus={!user}
            defaultValue={user}
          />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required autofocus={!!user} />
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
