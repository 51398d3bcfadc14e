/* SPDX-License-Identifier: Apache-2.0 */
/* apps.h - the apps of a container: which there are, how they are, starting and ending them
 *
 * An app has a name and ports. The image's label and the session's opened ports say which there
 * are, and app_own.h adds those whose programs are found. One with a definition is started when
 * somebody wants to connect, and again when it has died; the others are only connected to.
 *
 * Part of the executor: its thread, its loop. Answers are one object each, without a newline.
 */
#ifndef AQ_RUNNER_APPS_H
#define AQ_RUNNER_APPS_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/strbuf.h"
#include "runner/app_processes.h"

struct apps {
    struct list items; /* in the order in which they were found */
    size_t count;
    int epoll;
    struct app_ports listened; /* when it was last looked */
};

/* What remains of apps of an earlier executor is ended. */
void apps_init(struct apps *apps, int epoll);

/* {"apps": [{"name", "protocol", "ports", "state", "why", "url_template", "allowed_envs",
 * "allowed_arguments"}]}, the last three only if there are such.
 */
void apps_list(struct apps *apps, struct strbuf *out);

/* Somebody wants to connect to it: 'body' is {"port", "envs", "arguments"}, all optional. True
 * if apps_settle() is to be asked, for *ret_port, until it answers; false after an answer.
 */
bool apps_want(struct apps *apps, const char *name, const char *body, size_t len, int64_t now_msec,
               uint16_t *ret_port, struct strbuf *out);

/* The same for its end. */
bool apps_want_end(struct apps *apps, const char *name, int64_t now_msec, struct strbuf *out);

/* {"port", "status": "started" or "running"}, {} of an end (port 0), or {"kind", "error"}; false
 * if it is not decided yet.
 */
bool apps_settle(struct apps *apps, const char *name, uint16_t port, int64_t now_msec,
                 struct strbuf *out);

/* The answer of whatever cannot be done. */
void apps_fail(struct strbuf *out, const char *kind, const char *text);

void apps_reaped(struct apps *apps, pid_t pid, int status);

/* Look after those that start or end. When to look again; INT64_MAX = nothing is waited for. */
int64_t apps_turn(struct apps *apps, int64_t now_msec);

#endif
