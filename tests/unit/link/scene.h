/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - a manager and an agent that the test plays, connected over loopback TLS */
#ifndef AQ_TESTS_UNIT_LINK_SCENE_H
#define AQ_TESTS_UNIT_LINK_SCENE_H

#include "testing.h"

#include "base/strbuf.h"
#include "link/server_internal.h"

/* Everything both sides saw, in one place. */
struct scene {
    uv_loop_t loop;
    struct link_server *server;
    struct link_client *client;
    char *key, *cert;
    struct uuid incarnation;
    int connects, disconnects, orderly, hellos;
    int64_t hello_commit; /* of the last hello */
    int64_t refuse_retry_usec;
    bool refuse;
    /* of clients that start: where managers are, if not at the server alone */
    const char *addresses[4];
    size_t address_count;
    bool is_fixed;
    int64_t epoch; /* the highest that was followed: at the start, then what on_epoch() got */
    bool is_epoch_refused;
    int64_t server_epoch;  /* of servers that start */
    int64_t welcome_epoch; /* what their welcomes say instead; 0 = the same */
    char named[200];       /* links of the managers that were named last, a blank behind each */
    char lost_why[320];
    int losses, welcomes, unknowns, https;
    char http_peer[40], http_first[40];
    /* messages: the attempt of each counts up */
    int64_t at_client, at_server;
    uint64_t last_seq;
    bool no_ack, was_disordered;
    char refused_kind[32], refused_text[320];
    /* streams */
    struct msg_stream_open opened;
    char opened_key[64];
    bool was_opened, auto_stream;
    bool is_old; /* an agent that knows plain streams alone */
    struct link_stream *server_stream, *client_stream;
    struct strbuf at_server_bytes, at_client_bytes;
    int stream_opens, stream_closes, drains;
    int stream_error;
};

/* Of all scenes of a program; from scene_make_folder() to scene_remove_folder(). */
extern struct pki_ca *scene_ca;
extern char scene_folder[];

/* For 'data' that is a struct scene. */
extern const struct link_client_ops scene_client_ops;
extern const struct link_stream_ops scene_stream_ops;

int scene_make_folder(void **state);
int scene_remove_folder(void **state);

/* A server, and the identity "node-1" of an agent that is not started. */
void scene_init(struct scene *s);
void scene_done(struct scene *s);

void scene_start_server(struct scene *s, uint16_t port);
struct link_client *scene_start_client(struct scene *s, const char *id,
                                       const struct link_client_ops *ops, void *data);
/* Key and certificate of the next client. */
void scene_make_identity(struct scene *s, struct pki_ca *authority, const char *id, int days);

/* The n-th message from the manager, and from the agent; their attempt is n. */
void scene_send_forget(struct scene *s, int n);
void scene_send_status(struct scene *s, int n);
struct uuid scene_id_of(int n);

/* Run the loop until 'condition'; a test that hangs is ended by its runner. */
#define RUN_UNTIL(s, condition) \
    while (!(condition))        \
    assert_true(uv_run(&(s)->loop, UV_RUN_ONCE) || (condition))

#endif
