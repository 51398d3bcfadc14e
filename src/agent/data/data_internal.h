/* SPDX-License-Identifier: Apache-2.0 */
/* data_internal.h - the data path from the inside: data.c admits, data_socket.c hands over,
 * data_server.c passes bytes
 */
#ifndef AQ_AGENT_DATA_DATA_INTERNAL_H
#define AQ_AGENT_DATA_DATA_INTERNAL_H

#include "agent/data/app_socket.h"
#include "agent/data/data.h"
#include "base/list.h"
#include "base/log_budget.h"
#include "http/listener.h"
#include "link/message.h"
#include "link/ticket.h"

#define DATA_GUESTS_MAX 256 /* that have not shown a ticket; the oldest goes first */
#define DATA_GUEST_MSEC 5000
#define DATA_STREAMS_MAX 16384

struct data_path {
    uv_loop_t *loop;
    char *agent_id, *address;
    struct ticket_key *key;
    int (*open_network)(void *data, const struct uuid *kernel_id, int *ret, struct aq_error *err);
    void *data;
    struct data_socket *socket; /* NULL = not there */
    struct data_server *server; /* NULL = not there */
    struct log_budget log;      /* for strangers */
    struct {
        uint64_t handed_over, opened, refused, bytes_in, bytes_out; /* since the start */
    } counts;
};

/* Begin to connect to where the ticket leads. 'proxy' is who shows it, by its certificate; NULL = it
 * is on this machine. Errors of ticket_read() and app_socket_connect(), and of the kinds
 * "other-agent" and "other-proxy".
 */
int data_connect(struct data_path *path, const char *ticket, const char *proxy, app_socket_fn *fn,
                 void *data, struct app_socket **ret, struct aq_error *err);

/* The answer to who is not let in. */
struct message data_refusal(const struct aq_error *err);

struct data_socket;
int data_socket_new(struct data_path *path, const struct data_conf *conf, struct data_socket **ret,
                    struct aq_error *err);
void data_socket_free(struct data_socket *socket);

struct data_server;
int data_server_new(struct data_path *path, const struct data_conf *conf, struct data_server **ret,
                    struct aq_error *err);
uint16_t data_server_get_port(const struct data_server *server);
size_t data_server_count(const struct data_server *server); /* streams now */
void data_server_free(struct data_server *server);

#endif
