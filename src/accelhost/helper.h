/* SPDX-License-Identifier: Apache-2.0 */
/* helper.h - the process of one plugin: asked, timed out, restarted
 *
 * Calls are queued and sent one at a time. Each has a time limit that counts
 * from when it was queued, or from when a call before it hung. A process whose
 * call exceeds it, which ends, or which says what is no answer, is killed; the
 * call that it was busy with fails, the others wait for the next process. It is
 * started again at once after it has served something, else after 1, 2, 4 ...
 * 60 seconds.
 *
 * Who uses this ignores SIGPIPE: a process may have ended when it is asked, and
 * libuv writes without MSG_NOSIGNAL.
 */
#ifndef AQ_ACCELHOST_HELPER_H
#define AQ_ACCELHOST_HELPER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"

struct aq_accelerator;
struct helper;
struct helper_call;

struct helper_conf {
    uv_loop_t *loop;
    const char *program;                            /* aliquot-accel */
    const char *plugin;                             /* path of the shared object */
    const char *config;                             /* of the plugin's settings, or NULL */
    const char *name;                               /* for messages */
    const struct aq_accelerator *linked;            /* accel_settings.linked */
    int64_t limit_usec;                             /* of a call; of loading the plugin, too */
    void (*on_failed)(void *data, const char *why); /* the process had to be ended, or ended */
    void (*on_started)(void *data);                 /* a new process takes calls */
    void *data;
};

/* Texts are copied. The first process is started by the loop. */
struct helper *helper_new(const struct helper_conf *conf);
/* End the process; calls are dropped without their callback. NULL is fine. */
void helper_free(struct helper *helper);

/* 'result' is borrowed; NULL if the call failed, 'err' says why. Returns false
 * if what the plugin said cannot be: its process is ended then, with err->text.
 */
typedef bool (*helper_done_fn)(void *data, const json_t *result, struct aq_error *err);

/* Ask: 'members' is the inside of the request's JSON object after its id, e.g.
 * "\"call\":\"describe\"". 'done' is called once, never from within this call.
 * Returns what helper_cancel() takes until then.
 */
struct helper_call *helper_ask(struct helper *helper, const char *members, helper_done_fn done,
                               void *data);
/* 'done' will not be called. NULL is fine. */
void helper_cancel(struct helper_call *call);

#endif
