/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "link/frame.h"
#include "link/manager_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What decodes must encode again, and decode once more. */
static void check_message(const char *text, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
    struct message msg, other;

    if (message_decode(text, len, &msg, NULL) < 0)
        return;
    if (msg.type != MSG_UNKNOWN) {
        if (message_encode(&msg, &again, NULL) < 0
            || message_decode(again.data, again.len, &other, NULL) < 0)
            __builtin_trap();
        message_done(&other);
    }
    message_done(&msg);
}

/* The file of an agent. */
static void check_managers(const char *text, size_t len)
{
    AQ_CLEANUP(manager_list_done) struct manager_list list;
    int r;

    manager_list_init(&list);
    r = manager_list_read(&list, text, len, NULL);
    if (r > 0
        && manager_list_set(&list, list.msg.managers.managers, list.msg.managers.manager_count,
                            NULL)
               < 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct link_frame frame;
    size_t used = 0;
    ssize_t n;

    check_message(bytes, size);
    check_managers(bytes, size);
    while ((n = frame_read(bytes + used, size - used, 1000, &frame)) > 0) {
        check_message(frame.body, frame.body_len);
        used += (size_t)n;
    }
    return 0;
}
