/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a core on a real store in a directory of its own, with agents that
 * the test plays: what is sent to them is kept, what they say is said by calls
 *
 * The clock is the test's; nothing happens between two calls of settle().
 */
#ifndef AQ_TESTS_UNIT_MANAGER_WORLD_H
#define AQ_TESTS_UNIT_MANAGER_WORLD_H

#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "store/audit_log.h"
#include "store/query.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/nodes/inventory.h"
#include "manager/core/nodes/liveness.h"
#include "manager/core/state/account.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define ADMIN_KEY "AKIAIOSFODNN7EXAMPLE"
#define USER_KEY "AKIANABBDUSEREXAMPLE"

struct sent {
    char agent_id[AGENT_ID_MAX + 1];
    enum message_type type;
    struct uuid kernel_id, session_id;
    int64_t attempt, attempts, grace_usec, notice_usec, trial, lease_usec, lease_grace_usec;
    int64_t
        uptime_usec; /* heartbeat.reply: of the heartbeat; kernel_id and lease of its last one */
    size_t lease_count;
    char command[64], reason[40], slots[128], devices[64], hosts[64];
    char network[1024];
    int64_t probe_port;
    char probe_path[32], environ[256];
    bool has_ssh_seed;
};

struct world {
    uv_loop_t loop;
    struct core *core;
    char dir[64];
    struct core_conf conf;
    struct sent sent[256];
    size_t sent_count;
    char events[4096]; /* names of bus events, "name " each */
};

/* The one world of a test: the hooks below have no other way to it. */
extern struct world world;
extern int64_t world_mono, world_wall;

/* The clock of the test; it stands still but for pass(). */
int64_t test_mono(void *data);
int64_t test_wall(void *data);

/* Run until everything that follows has happened. */
void settle(void);
/* core->send of the world: keeps the message in world.sent. */
int keep_sent(struct core *core, const char *agent_id, const struct message *msg,
              struct aq_error *err);

/* Open the core on world.dir, or close it. */
void open_core(void);
void close_core(void);

/* The manager ends and starts again; agents have to connect again. */
void restart_core(void);
int world_begin(void **state);
int world_end(void **state);

/* Time passes as it does for a live process: in ticks. */
void pass(int64_t usec);

/* ---- agents ---- */

#define FOUR_CPUS "{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"8589934592\"]}"

int agent_greets(const char *id, const char *slots, struct uuid incarnation);
void agent_beats(const char *id, struct msg_kernel_status *kernels, size_t count);
void agent_comes(const char *id, const char *slots);
void agent_goes(const char *id);
struct msg_kernel_status kernel_report(const struct sent *order, enum msg_kernel_state state);
void agent_says(const char *id, struct msg_kernel_status report);
void agent_reports(const struct sent *order, enum msg_kernel_state state);
void agent_reports_exit(const struct sent *order, int code);
void agent_reports_end(const struct sent *order, int code, const char *reason);

/* The n-th order of that type since 'from'; NULL if there are fewer. */
struct sent *find_sent(enum message_type type, size_t n);
size_t count_sent(enum message_type type);

/* ---- commands ---- */

struct answer {
    bool came;
    int r;
    struct aq_error err;
    struct core_created created;
};

void on_created(void *data, int r, const struct aq_error *err, const struct core_created *created);
void on_answer(void *data, int r, const struct aq_error *err);
/* Who asks, for the audit log. */
extern const struct audit_who asker;
/* So many entries of the action are there, the last with this detail (NULL = whatever). */
void assert_audited(const char *action, size_t count, const char *detail);
/* It takes no more sessions, or takes them again; 0 in 'a' until it is done. */
void drain_agent(const char *id, bool on, const char *reason, struct answer *a);
/* Ask for a session; the answer has come. */
struct answer create(const struct session_request *req);

/* A batch session of one cpu that must be accepted. */
struct uuid submit(const char *name);
struct answer terminate(const struct uuid *id, bool forced);
/* GONE if it has ended. */
enum session_status status_of(const struct uuid *id);
#define GONE SESSION_STATUS_COUNT

/* ---- scheduling ---- */

/* How the resource group schedules from now on. */
void use_options(const char *scheduler, const char *opts);

/* What it does with the sessions of a lost agent, and after how long. */
void set_loss_policy(const char *policy, int64_t grace_usec);

/* The attempts of a session are "no-room:3 placed:1 "; "!" marks one with chosen candidates. */
void check_attempts(const struct uuid *id, const char *want);

/* ---- audit ---- */

/* For core_audit(): puts the number of findings into the int 'data', and prints them. */
void on_audited(void *data, int r, const struct aq_error *err, const char *findings);

/* The audit finds nothing. */
void assert_clean(void);

#endif
