// SPDX-License-Identifier: Apache-2.0
// Fields of forms, each with the server's error about it below.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { plain } from "./format";
import { failure, say } from "./parts";
import { Refusal } from "./server";

/** What the server has refused, and which member of the request it names. */
export interface Wrong {
  field: string;
  text: string;
}

/** The error is of this member, or of a part of it: "limits.cap" of "limits". */
function isOf(wrong: Wrong | null, member: string): boolean {
  if (!wrong) return false;
  const rest = wrong.field.slice(member.length);
  return wrong.field.startsWith(member) && (rest === "" || rest[0] === "." || rest[0] === "[");
}

/** Does what a form is for, and keeps why it was refused. */
export function useSubmit(): { isBusy: boolean; wrong: Wrong | null; submit: (act: () => Promise<void>) => Promise<void> } {
  const [isBusy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<Wrong | null>(null);
  async function submit(act: () => Promise<void>): Promise<void> {
    setBusy(true);
    setWrong(null);
    try {
      await act();
    } catch (error) {
      if (error instanceof Refusal && error.field) setWrong({ field: error.field, text: error.message });
      say(failure(error), true);
    }
    setBusy(false);
  }
  return { isBusy, wrong, submit };
}

/** A key for a request that may be sent again. */
export function freshKey(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");
}

/** A title, what 'children' draws, and below it a hint or the error of this member of the request. */
export function Field({
  id,
  title,
  member = "",
  wrong = null,
  hint = "",
  children,
}: {
  id: string;
  title: string;
  member?: string;
  wrong?: Wrong | null;
  hint?: string;
  children: (marks: { id: string; "aria-invalid": boolean; "aria-describedby": string | undefined }) => ComponentChildren;
}) {
  const isWrong = member !== "" && isOf(wrong, member);
  const text = isWrong ? plain(wrong?.text) : hint;
  return (
    <div class="field">
      <label for={id}>{title}</label>
      <div>
        {children({ id, "aria-invalid": isWrong, "aria-describedby": text ? `${id}-hint` : undefined })}
        {text && (
          <span id={`${id}-hint`} class={isWrong ? "hint bad" : "hint dim"}>
            {" "}
            {text}
          </span>
        )}
      </div>
    </div>
  );
}

export function TextField({
  id,
  title,
  value,
  set,
  member = "",
  wrong = null,
  hint = "",
  kind = "",
  required = false,
  list,
}: {
  id: string;
  title: string;
  value: string;
  set: (value: string) => void;
  member?: string;
  wrong?: Wrong | null;
  hint?: string;
  kind?: "" | "long" | "long code";
  required?: boolean;
  list?: string;
}) {
  return (
    <Field id={id} title={title} member={member} wrong={wrong} hint={hint}>
      {(marks) => (
        <input
          {...marks}
          type="text"
          list={list}
          class={kind}
          value={value}
          required={required}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function Check({ id, value, set, children }: { id: string; value: boolean; set: (value: boolean) => void; children: ComponentChildren }) {
  return (
    <label class="check">
      <input id={id} type="checkbox" checked={value} onChange={(event) => set(event.currentTarget.checked)} /> {children}
    </label>
  );
}
