/* SPDX-License-Identifier: Apache-2.0 */
/* asked.c - operations that the manager asks for, from the message to the answer */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "link/link.h"
#include "storage/ops.h"

#define OPS_MAX 4096 /* under way */

struct asked {
    struct work work;
    struct storage *storage;
    struct volume *volume;
    struct uuid id;
    char *op;
    json_t *args;
    struct strbuf out;
    struct aq_error err;
};

static void asked_free(struct asked *a)
{
    struct storage *storage = a->storage;

    free(a->op);
    json_decref(a->args);
    strbuf_done(&a->out);
    free(a);
    storage->op_count--;
    storage_settle(storage);
}

/* Nobody waits for it once the manager has gone. */
static void asked_answer(const struct storage *storage, const struct uuid *id, const char *result,
                         const struct aq_error *err)
{
    struct message msg = { .type = MSG_STORAGE_ANSWER,
                           .storage_answer = { .request_id = *id, .result = result } };

    if (!result) {
        msg.storage_answer.error_code = strerrorname_np(err->code);
        msg.storage_answer.error_kind = err->kind;
        msg.storage_answer.error_field = *err->field ? err->field : NULL;
        msg.storage_answer.error_text = err->text;
    }
    if (storage->link && link_client_is_connected(storage->link))
        (void)link_client_send(storage->link, &msg, NULL);
}

static void asked_run(struct work *work)
{
    struct asked *a = AQ_CONTAINER_OF(work, struct asked, work);

    (void)op_run(a->volume, a->op, a->args, &a->out, &a->err);
}

static void asked_on_done(struct work *work)
{
    struct asked *a = AQ_CONTAINER_OF(work, struct asked, work);

    if (strcmp(a->op, "purge") == 0 && !a->err.code)
        storage_purge(a->volume);
    asked_answer(a->storage, &a->id, a->err.code ? NULL : a->out.data, &a->err);
    asked_free(a);
}

static int asked_begin(struct storage *storage, const struct msg_storage_ask *ask,
                       struct aq_error *err)
{
    struct volume *volume = storage_find_volume(storage, ask->volume);
    struct asked *a;
    int r;

    if (!volume)
        return aq_fail(err, ENOENT, "storage '%s' has no volume '%.64s'",
                       storage->settings->common.name, ask->volume);
    if (storage->op_count >= OPS_MAX)
        return aq_fail(err, EAGAIN, "too much is asked of this storage host; try again");
    if (!(a = calloc(1, sizeof(*a))))
        return aq_fail_oom(err);
    storage->op_count++;
    storage->counts.ops++;
    a->storage = storage;
    a->volume = volume;
    a->id = ask->request_id;
    strbuf_init(&a->out);
    a->op = strdup(ask->op);
    a->args = json_load_string(ask->args, 0);
    r = a->op && a->args
            ? work_submit(&volume->lanes[op_lane(ask->op)], &a->work, asked_run, asked_on_done, err)
            : aq_fail_oom(err);
    if (r < 0)
        asked_free(a);
    return r;
}

void op_begin(struct storage *storage, const struct msg_storage_ask *ask)
{
    struct aq_error err = { 0 };

    if (asked_begin(storage, ask, &err) < 0)
        asked_answer(storage, &ask->request_id, NULL, &err);
}
