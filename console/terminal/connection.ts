// SPDX-License-Identifier: Apache-2.0
// The protocol of ttyd: one shell for one WebSocket. The first byte of a message says what it is.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const PIECE = 32768; // bytes of what is typed in one message
const HIGH = 1 << 19; // bytes that are not shown yet: the shell has to wait ...
const LOW = 1 << 16; // ... and may go on

export interface Size {
  cols: number;
  rows: number;
}

export interface Handlers {
  /** Bytes of the shell; `done` is called when they are shown. */
  output(bytes: Uint8Array, done: () => void): void;
  title(text: string): void;
  open(): void;
  /** For ever. `why` is what the server says; "" if the connection is lost. */
  closed(why: string): void;
}

export class Connection {
  private readonly socket: WebSocket;
  private waiting = 0;
  private isPaused = false;

  constructor(
    size: Size,
    private readonly handlers: Handlers,
  ) {
    const url = new URL("ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(url, ["tty"]);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.socket.send(encoder.encode(JSON.stringify({ AuthToken: "", columns: size.cols, rows: size.rows })));
      handlers.open();
    };
    this.socket.onmessage = (event: MessageEvent<ArrayBuffer>) => this.take(new Uint8Array(event.data));
    this.socket.onclose = (event) => handlers.closed(event.reason);
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN;
  }

  type(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += PIECE) this.send("0", bytes.subarray(at, at + PIECE));
  }

  typeText(text: string): void {
    this.type(encoder.encode(text));
  }

  resize(size: Size): void {
    this.send("1", encoder.encode(JSON.stringify({ columns: size.cols, rows: size.rows })));
  }

  private send(kind: string, bytes: Uint8Array = new Uint8Array()): void {
    if (!this.isOpen) return;
    const message = new Uint8Array(bytes.length + 1);
    message[0] = kind.charCodeAt(0);
    message.set(bytes, 1);
    this.socket.send(message);
  }

  private take(message: Uint8Array): void {
    const bytes = message.subarray(1);
    switch (String.fromCharCode(message[0] ?? 0)) {
      case "0":
        this.show(bytes);
        break;
      case "1":
        this.handlers.title(decoder.decode(bytes));
        break;
    }
  }

  private show(bytes: Uint8Array): void {
    this.waiting += bytes.length;
    if (!this.isPaused && this.waiting > HIGH) this.pause(true);
    this.handlers.output(bytes, () => {
      this.waiting -= bytes.length;
      if (this.isPaused && this.waiting < LOW) this.pause(false);
    });
  }

  private pause(isPaused: boolean): void {
    this.isPaused = isPaused;
    this.send(isPaused ? "2" : "3");
  }
}
