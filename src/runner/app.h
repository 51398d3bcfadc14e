/* SPDX-License-Identifier: Apache-2.0 */
/* app.h - one app of a container, from its start to its end
 *
 * The executor reads what its processes write and keeps the end of it, to say why it failed.
 */
#ifndef AQ_RUNNER_APP_H
#define AQ_RUNNER_APP_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "model/service_port.h"
#include "runner/app_processes.h"
#include "runner/watch.h"

#define APP_TAIL_MAX 180 /* bytes of what it wrote last: an error of the manager holds them */
#define APP_WHY_MAX 512
#define APP_KILL_MSEC 5000 /* from SIGTERM to SIGKILL */
#define APP_LOOK_MSEC 50   /* between looks at one that starts or ends */

enum app_state { APP_NOT_STARTED, APP_STARTING, APP_RUNNING, APP_FAILED, APP_ENDING };

struct app {
    struct list link;
    char name[SERVICE_NAME_MAX + 1];
    const char *protocol; /* static */
    uint16_t ports[SERVICE_PORTS_MAX];
    size_t port_count;
    enum app_state state;
    pid_t pid;          /* of what was started, 0 = it has ended */
    int64_t until_msec; /* monotonic: to listen, or to end by itself */
    int seconds;        /* start_timeout */
    bool is_fresh;      /* was started since somebody was told so */
    struct watch output;
    char tail[APP_TAIL_MAX];
    size_t tail_len;
    char why[APP_WHY_MAX]; /* it has failed */
};

struct app *app_new(const char *name, const char *protocol, const uint16_t *ports, size_t count);

/* Of the image, or ours. NULL with 0 if nothing is known of how to start it. */
int app_load_definition(const struct app *app, json_t **ret, struct aq_error *err);

/* Does it listen on any of its ports? */
bool app_listens(const struct app *app, const struct app_ports *listened);

/* Is there any process of it? */
bool app_lives(const struct app *app);

/* Start it: it is APP_STARTING then. 'envs' and 'arguments' as in app_launch.h. -errno. */
int app_start(struct app *app, int epoll, const json_t *definition, const json_t *envs,
              const json_t *arguments, int64_t now_msec, struct aq_error *err);

/* SIGTERM to all of it, and time to end: it is APP_ENDING then. */
void app_end(struct app *app, int64_t now_msec);

/* 'pid' has ended; perhaps it was this one's. */
void app_reaped(struct app *app, pid_t pid, int status, const struct app_ports *listened);

/* What the time, its processes and its ports make of it. */
void app_look(struct app *app, const struct app_ports *listened, int64_t now_msec);

#endif
