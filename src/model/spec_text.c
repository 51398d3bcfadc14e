/* SPDX-License-Identifier: Apache-2.0 */
/* spec_text.c - the spec of a session as memory keeps it: without long texts */
#include "model/spec_text.h"

#include <errno.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/strbuf.h"

static bool spec_text_is_long(struct json_span key)
{
    return json_span_is(key, "command") || json_span_is(key, "bootstrap")
           || json_span_is(key, "environ");
}

int spec_text_shorten(const char *spec, char **ret)
{
    size_t len = spec ? strlen(spec) : 0;
    struct json_scan scan = json_scan_make(spec, len);
    struct strbuf text = STRBUF_INIT;
    struct json_span key;

    *ret = NULL;
    if (len <= SPEC_TEXT_KEPT_MAX)
        return 0;
    while (json_scan_member(&scan, &key)) {
        struct json_span value = json_scan_value(&scan);

        if (!spec_text_is_long(key))
            strbuf_addf(&text, "%c\"%.*s\":%.*s", text.len ? ',' : '{', (int)key.len, key.text,
                        (int)value.len, value.text);
    }
    strbuf_adds(&text, text.len ? "}" : "{}");
    *ret = strbuf_steal(&text);
    return *ret ? 0 : -ENOMEM;
}
