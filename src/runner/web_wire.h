/* SPDX-License-Identifier: Apache-2.0 */
/* web_wire.h - what is spoken on one connection to the web terminal: HTTP, then ttyd's protocol
 *
 *   GET /        the page
 *   GET /token   {"token": ""}, for ttyd's own page
 *   GET /ws      a WebSocket of the protocol "tty", one shell for each
 *
 * The client's first message is {"AuthToken", "columns", "rows"}. After it the first byte of each
 * says what it is: '0' input, '1' {"columns", "rows"}, '2' pause, '3' resume; from here '0' output,
 * '1' the title, '2' {}: nothing is preferred. A close says how the shell ended.
 *
 * The port asks for no password. A WebSocket is for programs and the terminal's own page: the
 * Origin of a request through aliquot-proxy was checked there, and other ways to the port lead to an
 * address, not to a name that could be made to point here.
 *
 * No sockets: bytes go in, messages come out, and what has to be sent is in 'frames.out'.
 */
#ifndef AQ_RUNNER_WEB_WIRE_H
#define AQ_RUNNER_WEB_WIRE_H

#include "http/message.h"
#include "http/websocket_frames.h"

#define WEB_MESSAGE_MAX (4 << 20) /* bytes of a client's message: what ttyd's page pastes is one */

enum web_kind { WEB_NOTHING, WEB_OPEN, WEB_INPUT, WEB_RESIZE, WEB_PAUSE, WEB_RESUME };

struct web_message {
    enum web_kind kind;
    uint16_t rows, cols; /* of WEB_OPEN and WEB_RESIZE, 0 = not said */
    const char *bytes;   /* of WEB_INPUT, until the next call */
    size_t len;
};

struct web_wire {
    struct message_parser *request; /* NULL = it was answered */
    struct websocket_frames frames;
    bool is_socket, is_open; /* WEB_OPEN has come */
    bool is_over;            /* nothing more is read; what is in 'frames.out' is the last */
};

/* -ENOMEM. */
int web_wire_init(struct web_wire *wire, struct aq_error *err);
void web_wire_done(struct web_wire *wire);

/* Read up to the end of the first message, or all; returns how many bytes that were. */
size_t web_wire_read(struct web_wire *wire, const char *bytes, size_t len,
                     struct web_message *ret) AQ_UNTRUSTED;

/* Add a message of this kind, of up to WEB_OUTPUT_MAX bytes. */
#define WEB_OUTPUT_MAX 16384
void web_wire_add(struct web_wire *wire, char kind, const char *bytes, size_t len);

/* Add the last message: "1000 why". */
void web_wire_close(struct web_wire *wire, const char *why);

#endif
