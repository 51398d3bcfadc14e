/* SPDX-License-Identifier: Apache-2.0 */
/* pod_patch.c - operations of a JSON Patch (RFC 6902) and warnings */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "k8s/webhook/webhook_internal.h"

/* A segment of a JSON Pointer. */
static void pod_patch_escape(struct strbuf *out, const char *text)
{
    strbuf_addc(out, '/');
    for (; *text; text++) {
        if (*text == '~')
            strbuf_adds(out, "~0");
        else if (*text == '/')
            strbuf_adds(out, "~1");
        else
            strbuf_addc(out, *text);
    }
}

int pod_patch_add(const struct pod_review *review, json_t *value, struct aq_error *err, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *operation;
    const char *segment;
    va_list segments;

    va_start(segments, err);
    while ((segment = va_arg(segments, const char *)))
        pod_patch_escape(&path, segment);
    va_end(segments);
    operation = json_pack("{s:s, s:s, s:o*}", "op", value ? "add" : "remove", "path", path.data,
                          "value", value);
    if (!operation)
        return aq_fail(err, EINVAL, "the path '%.200s' is not UTF-8", path.data);
    json_array_append_new(review->patch, operation);
    return 0;
}

int container_patch(const struct container_review *c, const char *map, const char *name,
                    json_t *value, struct aq_error *err)
{
    char index[24];

    (void)snprintf(index, sizeof(index), "%zu", c->index);
    return pod_patch_add(c->pod, value, err, "spec", c->list, index, "resources", map, name, NULL);
}

void pod_warn(const struct pod_review *review, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    json_array_append_new(review->warnings, json_string(text.data));
}
