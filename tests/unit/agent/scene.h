/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - an agent with real processes under a manager that the test plays */
#ifndef AQ_TESTS_UNIT_AGENT_SCENE_H
#define AQ_TESTS_UNIT_AGENT_SCENE_H

#include "testing.h"

#include "agent/agent.h"
#include "link/link.h"

#define SEEN_MAX 64

/* What the manager was told of one kernel. */
struct seen {
    struct uuid id;
    int64_t attempt;
    enum msg_kernel_state state;
    bool has_exit, was_running;
    int64_t exit_code;
    char reason[40], kind[40], field[40], text[200], alloc[200];
    int64_t lease_usec;
    char last_lines[200];
    /* by kernel.health */
    int health_count;
    int64_t health_attempt, health_usec;
    char health[12], health_text[200];
    bool was_starting; /* it said so since this was cleared */
    int heartbeat;     /* number of the latest heartbeat with it */
};

struct scene {
    uv_loop_t loop;
    char folder[64];
    struct pki_ca *ca;
    struct link_server *server;
    struct settings settings;
    struct runtime *runtime;
    struct agent_daemon *agent;
    struct seen seen[SEEN_MAX];
    size_t seen_count;
    int heartbeats, connects;
    bool has_leases, answers;      /* it says that it answers heartbeats; it does */
    struct msg_kernel_lease lease; /* that the next answer changes */
    size_t inventory;              /* kernels in the latest heartbeat */
    char slots[200];
    char rejected[32];
    struct strbuf bytes; /* of the stream */
    struct link_stream *stream;
    int stream_opens, stream_closes, stream_error;
};

/* Run the loop until 'condition'; a test that hangs is ended by its runner. */
#define RUN_UNTIL(s, condition) \
    while (!(condition))        \
    assert_true(uv_run(&(s)->loop, UV_RUN_ONCE) || (condition))

int scene_init(void **state);
int scene_done(void **state);

/* A new process of the agent on the same folder. */
void scene_stop_agent(struct scene *s);
void scene_start_agent(struct scene *s);

/* An order for a batch kernel with 1 core and 64 MiB; 'command' NULL = a shell. */
struct msg_kernel_create scene_order(const char *command);
void scene_create(struct scene *s, const struct msg_kernel_create *create);
void scene_send(struct scene *s, const struct message *msg);
void scene_destroy(struct scene *s, const struct uuid *id, int64_t grace_usec);
void scene_forget(struct scene *s, const struct uuid *id, int64_t attempt);

/* What is known of a kernel; never NULL. */
struct seen *scene_find(struct scene *s, const struct uuid *id);
bool scene_is_final(struct scene *s, const struct uuid *id);

/* Open a stream and run until it is closed (or, with 'until', has shown that text). */
void scene_stream(struct scene *s, const struct uuid *id, const char *kind, bool follow,
                  int64_t tail_lines);

/* The text of a file below the state directory; caller frees; NULL = none. */
char *scene_read(struct scene *s, const char *path);
bool scene_exists(struct scene *s, const char *path);

#endif
