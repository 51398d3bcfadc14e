/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - two hosts, each with a loop, and TCP between them */
#ifndef AQ_TESTS_UNIT_SIMUV_STAGE_H
#define AQ_TESTS_UNIT_SIMUV_STAGE_H

#include "testing.h"

#include <netinet/in.h>
#include <uv.h>

#include "base/strbuf.h"
#include "simuv/simuv.h"

#define SEC INT64_C(1000000)

/* One end of a connection, with what it has seen. */
struct stage_end {
    uv_tcp_t tcp;
    uv_connect_t connect;
    struct strbuf got;
    int connected; /* 1, or the error */
    int ended;     /* UV_EOF or the error */
    bool is_open, is_closed;
};

struct stage {
    simuv_host server_host, client_host;
    uv_loop_t server_loop, client_loop;
    uv_tcp_t listener;
    bool is_server_gone;
    struct sockaddr_in address;      /* of the listener */
    struct stage_end server, client; /* of the latest connection */
};

/* Run everything for so long. */
void stage_run(int64_t usec);

/* Both hosts, with addresses of their own, and a listener. */
void stage_init(struct stage *s);

/* A fresh client; the server accepts it at once and reads. */
void stage_connect(struct stage *s);

/* All of these bytes are written, with uv_write(). */
void stage_write(struct stage_end *end, const char *bytes, size_t len);
void stage_close(struct stage_end *end);
void stage_break(struct stage_end *end); /* it is reset when it is closed */

/* Its loop and sockets are left as they are: the stage has to stay, too. */
void stage_crash_server(struct stage *s, bool is_silent);

/* Close everything, of the server only if it has not crashed. */
void stage_done(struct stage *s);

void stage_set_cut(struct stage *s, bool is_cut); /* in both directions */

#endif
