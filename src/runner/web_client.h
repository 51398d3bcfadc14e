/* SPDX-License-Identifier: Apache-2.0 */
/* web_client.h - one connection to the web terminal, and its shell */
#ifndef AQ_RUNNER_WEB_CLIENT_H
#define AQ_RUNNER_WEB_CLIENT_H

#include <sys/types.h>

#include "base/list.h"
#include "runner/watch.h"
#include "runner/web_wire.h"

struct web_client {
    struct list link;
    struct watch socket;
    struct watch input, output; /* of the terminal */
    struct web_wire wire;
    struct strbuf received; /* bytes that have yet to be read */
    struct strbuf typed;    /* what the terminal has not taken */
    pid_t pid;              /* of the shell, 0 = none */
    int start;              /* of the shell, see command.h */
    int status;             /* of the shell, when it has ended */
    bool is_paused, has_ended, is_gone;
    size_t *shell_count; /* of all clients */
    size_t last_words;   /* bytes since the shell ended */
    int64_t until_msec;  /* monotonic: deadline of its request, or of its close; INT64_MAX = none */
};

/* Takes the socket. NULL if memory is short. 'shell_count' is that of all clients. */
struct web_client *web_client_new(int epoll, int socket, size_t *shell_count, int64_t now_msec);
/* Its shell gets SIGHUP. */
void web_client_free(struct web_client *client);

/* The shell has ended with this status of waitpid(). */
void web_client_reaped(struct web_client *client, int status);

/* Give the terminal what it has not taken. True if it still does not: then soon again. */
bool web_client_type_on(struct web_client *client);

#endif
