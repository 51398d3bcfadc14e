// SPDX-License-Identifier: Apache-2.0
// The rules by which a service scales, as people type them.
import type { Rule, Scaling } from "./serving";

/** "in_flight=8 latency=0.5" */
export function readTargets(text: string): Rule[] {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((word) => {
      const [signal = "", ...rest] = word.split("=");
      const value = rest.join("=");
      return { signal, target: value.trim() === "" ? Number.NaN : Number(value) };
    });
}

/** null if the rules have members that this form does not show. */
export function targetsText(scaling: Scaling | null): string | null {
  const rules = scaling?.rules ?? [];
  const isPlain = rules.every(
    (rule) => Object.keys(rule).every((key) => key === "signal" || key === "target") && rule.target !== undefined,
  );
  return isPlain ? rules.map(({ signal, target }) => `${signal}=${target}`).join(" ") : null;
}
