/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a watch, or the body of an answer that is an error. */
#include <stdlib.h>
#include <string.h>

#include "kube/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_object(const json_t *object, enum kube_event_kind kind)
{
    char key[KUBE_KEY_MAX + 1];
    const char *version = kube_object_version(object);
    bool has_key = kube_object_key(object, key);

    if ((kind == KUBE_EVENT_IS || kind == KUBE_EVENT_GONE) && !has_key)
        __builtin_trap();
    if (has_key && (!key[0] || strlen(key) > KUBE_KEY_MAX))
        __builtin_trap();
    if (version && strspn(version, "0123456789") != strlen(version))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    enum kube_event_kind kind = KUBE_EVENT_OTHER;
    struct aq_error err = { 0 };
    json_t *object = NULL;

    if (kube_event_read(text, size, &kind, &object, &err) == 0) {
        check_object(object, kind);
        json_decref(object);
    } else if (!err.text[0]) {
        __builtin_trap();
    }
    for (int status = 409; status <= 410; status++)
        if (kube_status_read(status, text, size, &err) >= 0 || !err.text[0])
            __builtin_trap();
    return 0;
}
