// SPDX-License-Identifier: Apache-2.0
// When a lost connection is opened again: after pauses that double, and at once when the network is back.

const FIRST = 1000; // ms
const LONGEST = 15000;
const STABLE = 10000; // a connection that lasts this long makes the next pause short again

export class Retry {
  private pause = FIRST;
  private timer: number | undefined;
  private settling: number | undefined;

  constructor(private readonly open: () => void) {
    addEventListener("online", () => this.isWaiting && this.now());
  }

  get isWaiting(): boolean {
    return this.timer !== undefined;
  }

  opened(): void {
    this.settling = setTimeout(() => (this.pause = FIRST), STABLE);
  }

  /** Pages that lost the same manager do not all come back in the same moment. */
  later(): void {
    clearTimeout(this.settling);
    this.timer = setTimeout(() => this.now(), this.pause * (0.5 + Math.random() / 2));
    this.pause = Math.min(2 * this.pause, LONGEST);
  }

  now(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.open();
  }
}
