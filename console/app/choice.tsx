// SPDX-License-Identifier: Apache-2.0
// Buttons of which one is pressed: what a list shows, and whose.
import { everyone, showEveryone, who } from "./live";
import { use } from "./parts";

/** One of several; 'options' are values with their titles. */
export function Choice({
  label,
  options,
  value,
  set,
}: {
  label: string;
  options: readonly (readonly [value: string, title: string])[];
  value: string;
  set: (value: string) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([name, title]) => (
        <button key={name} type="button" aria-pressed={value === name} onClick={() => set(name)}>
          {title}
        </button>
      ))}
    </div>
  );
}

/** Those of the user or of everyone, for administrators; nothing for others. */
export function Whose({ label }: { label: string }) {
  const isEveryone = use(everyone);
  return (
    who.value?.is_admin && (
      <Choice
        label={label}
        options={[
          ["", "mine"],
          ["all", "everyone's"],
        ]}
        value={isEveryone ? "all" : ""}
        set={(name) => showEveryone(name === "all")}
      />
    )
  );
}
