/* SPDX-License-Identifier: Apache-2.0 */
/* manager_list.c - see manager_list.h */
#include "link/manager_list.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

void manager_list_init(struct manager_list *list)
{
    *list = (struct manager_list){ .msg = { .type = MSG_UNKNOWN } };
    strbuf_init(&list->text);
}

void manager_list_done(struct manager_list *list)
{
    message_done(&list->msg);
    strbuf_done(&list->text);
}

int manager_list_read(struct manager_list *list, const char *text, size_t len, struct aq_error *err)
{
    struct message msg;
    int r = message_decode(text, len, &msg, err);

    if (r < 0)
        return r;
    if (msg.type != MSG_MANAGERS) {
        message_done(&msg);
        return aq_fail(err, EINVAL, "not a list of managers");
    }
    message_done(&list->msg);
    list->msg = msg;
    strbuf_truncate(&list->text, 0);
    strbuf_add(&list->text, text, len);
    return 1;
}

int manager_list_set(struct manager_list *list, const struct link_manager *managers, size_t count,
                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct message msg = {
        .type = MSG_MANAGERS,
        .managers = { (struct link_manager *)(uintptr_t)managers,
                      AQ_MIN(count, (size_t)LINK_MANAGERS_MAX) },
    };
    int r = message_encode(&msg, &text, err);

    if (r < 0)
        return r;
    if (list->msg.type == MSG_MANAGERS && text.len == list->text.len
        && memcmp(text.data, list->text.data, text.len) == 0)
        return 0;
    return manager_list_read(list, text.data, text.len, err);
}
