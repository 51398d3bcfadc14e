/* SPDX-License-Identifier: Apache-2.0 */
/* clients.h - connections to monitor.sock
 *
 * Each connection is one slot. A client that reads too slowly never holds the program up: it
 * gets the newest of what it lacks when it has room, and is told what was left out. Who types
 * faster than the terminal takes it waits.
 */
#ifndef AQ_MONITOR_CLIENTS_H
#define AQ_MONITOR_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "monitor/protocol.h"

#define CLIENTS_MAX 128 /* a further one gets a message as output and is closed */

struct client {
    int fd; /* -1 = free */
    bool attached;
    uint64_t behind;     /* attached: bytes of output that it has not got */
    struct strbuf typed; /* what the terminal has not taken: nothing more is read until it has */
};

struct clients {
    int listener;
    struct client slots[CLIENTS_MAX];
};

/* Listen on monitor.sock in the working directory. */
int clients_open(struct clients *clients, struct aq_error *err);
void clients_stop_listening(struct clients *clients);
void clients_close(struct clients *clients);

bool clients_has_any(const struct clients *clients);

/* Take a connected socket as first client. */
void clients_adopt(struct clients *clients, int fd);

/* Send the first message of a connection. */
void clients_greet(struct clients *clients, int slot, const struct monitor_hello *hello);

/* Take a connection of the same user or root and greet it, unless 'hello' is
 * NULL: then that comes later. Returns its slot, or -1 if there was none to take.
 */
int clients_accept(struct clients *clients, const struct monitor_hello *hello);
void clients_drop(struct clients *clients, int slot);

/* Bytes of a packet into 'buf' (MONITOR_MESSAGE_MAX); 0 = the client has gone;
 * -1 = nothing more now. 'ret_fds' are what came with it, the caller's to close; -1 = none.
 */
long clients_receive(struct clients *clients, int slot, char *buf, int ret_fds[MONITOR_KEPT]);

/* Send output; how many bytes there was room for. */
size_t clients_send_output(const struct client *client, const char *bytes, size_t len);

/* Tell that output was left out; false if there is no room. */
bool clients_send_skipped(const struct client *client);

/* Tell everyone that exit.json is there. */
void clients_send_gone(struct clients *clients);

#endif
