/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's devices need, gathered from the plugins that have them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "accel/protocol.h"
#include "accelhost/cdi.h"
#include "accelhost/accel_internal.h"
#include "base/jsonw.h"
#include "base/memory.h"

struct attach_question {
    struct accel_call *call;
    struct helper_call *asked;
    char kind[ACCEL_KEY_MAX + 1];
};

struct accel_call {
    struct list link;
    const struct accel *accel;
    accel_attached_fn done;
    void *data;
    struct accel_attachment attachment;
    struct aq_error failed;
    struct attach_question *questions; /* one per plugin */
    size_t count, open;
};

void accel_attachment_done(struct accel_attachment *attachment)
{
    arena_done(&attachment->arena);
    *attachment = (struct accel_attachment){ .devices = NULL };
}

bool accel_is_needed(const struct alloc_grant *grant)
{
    for (size_t i = 0; i < grant->count; i++)
        if (strcmp(grant->items[i].slot_name, "cpu") != 0
            && strcmp(grant->items[i].slot_name, "mem") != 0)
            return true;
    return false;
}

static void attach_drop(struct accel_call *call)
{
    list_remove(&call->link);
    for (size_t i = 0; i < call->count; i++)
        helper_cancel(call->questions[i].asked);
    accel_attachment_done(&call->attachment);
    free(call->questions);
    free(call);
}

void accel_cancel(struct accel_call *call)
{
    if (call)
        attach_drop(call);
}

void accel_drop_calls(struct accel *accel)
{
    LIST_FOREACH(link, &accel->calls)
        attach_drop(LIST_ENTRY(link, struct accel_call, link));
}

static void attach_conclude(struct accel_call *call)
{
    accel_attached_fn done = call->done;
    void *data = call->data;
    struct aq_error failed = call->failed;
    struct accel_attachment attachment;

    if (!failed.code)
        (void)cdi_resolve(&call->accel->settings->cdi, call->accel->settings->hooks,
                          &call->attachment, &failed);
    attachment = call->attachment;
    call->attachment = (struct accel_attachment){ .devices = NULL };
    attach_drop(call);
    done(data, failed.code ? NULL : &attachment, &failed);
    accel_attachment_done(&attachment);
}

static bool attach_on_answer(void *data, const json_t *result, struct aq_error *err)
{
    struct attach_question *q = data;
    struct accel_call *call = q->call;
    bool is_good = true;

    q->asked = NULL;
    if (!result || answer_read_attachment(result, q->kind, &call->attachment, err) < 0) {
        is_good = !result;
        if (!call->failed.code)
            call->failed = *err;
        if (!is_good)
            call->failed.kind = "accelerator-failed";
    }
    if (--call->open == 0)
        attach_conclude(call);
    return is_good;
}

static char *attach_write_request(const struct alloc_grant *grant, const char *kind)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    size_t len = strlen(kind);

    strbuf_adds(&text, "\"call\":\"" ACCEL_ATTACH "\",\"grants\":");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < grant->count; i++) {
        const struct grant_item *item = &grant->items[i];

        if (strncmp(item->slot_name, kind, len) != 0 || item->slot_name[len] != '.')
            continue;
        jsonw_array_begin(&w);
        jsonw_str(&w, item->slot_name);
        jsonw_str(&w, item->device_id);
        jsonw_int(&w, item->amount);
        jsonw_array_end(&w);
    }
    jsonw_array_end(&w);
    return strbuf_steal(&text);
}

static void attach_ask(struct accel_call *call, struct plugin *p, const struct alloc_grant *grant)
{
    struct attach_question *q = &call->questions[call->count++];
    AQ_CLEANUP(aq_freep) char *request = NULL;

    q->call = call;
    (void)snprintf(q->kind, sizeof(q->kind), "%s", p->description.plugin.key);
    request = attach_write_request(grant, q->kind);
    q->asked = helper_ask(p->helper, request, attach_on_answer, q);
    call->open++;
}

static int attach_ask_all(struct accel *accel, struct accel_call *call,
                          const struct alloc_grant *grant, struct aq_error *err)
{
    int r = 0;

    call->questions = aq_alloc_array(grant->count + 1, sizeof(*call->questions));
    for (size_t i = 0; r == 0 && i < grant->count; i++) {
        const char *slot_name = grant->items[i].slot_name;
        struct plugin *p;
        bool is_asked = strcmp(slot_name, "cpu") == 0 || strcmp(slot_name, "mem") == 0;

        for (size_t k = 0; !is_asked && k < call->count; k++)
            is_asked = strlen(call->questions[k].kind) == slot_name_device_len(slot_name)
                       && strncmp(call->questions[k].kind, slot_name,
                                  slot_name_device_len(slot_name))
                              == 0;
        if (is_asked)
            continue;
        p = accel_find(accel, slot_name);
        if (p && p->helper)
            attach_ask(call, p, grant);
        else
            r = aq_fail_as(err, ENODEV, "accelerator-failed", slot_name,
                           "%s: no plugin on this node knows it any more", slot_name);
    }
    if (r == 0 && call->count == 0)
        r = aq_fail(err, EINVAL, "no accelerator is to be attached");
    return r;
}

int accel_attach(struct accel *accel, const struct alloc_grant *grant, accel_attached_fn done,
                 void *data, struct accel_call **ret, struct aq_error *err)
{
    struct accel_call *call = aq_alloc(sizeof(*call));
    int r;

    call->accel = accel;
    call->done = done;
    call->data = data;
    list_add(&accel->calls, &call->link);
    r = attach_ask_all(accel, call, grant, err);
    if (r < 0)
        attach_drop(call);
    else if (ret)
        *ret = call;
    return r;
}
