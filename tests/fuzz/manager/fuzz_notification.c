/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of notifications: one that is taken has nothing left of the language when it is
 * rendered, and its values cannot leave a JSON text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "manager/notification/notification_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check(const char *text, const struct notification_type *type)
{
    struct strbuf empty = STRBUF_INIT, full = STRBUF_INIT;
    struct notification_values none = { { NULL } }, values = none;
    struct aq_error err = { 0 };

    for (enum notification_field i = 0; i < type->field_end; i++)
        values.of[i] = "a\"b\n";
    if (notification_template_check(type, text, "template", &err) < 0) {
        require(err.text[0] && strcmp(err.field, "template") == 0);
        return;
    }
    notification_template_render(text, &none, true, &empty);
    notification_template_render(text, &values, true, &full);
    require(strbuf_ok(&full) && empty.len <= strlen(text) && full.len >= empty.len);
    require(!strstr(text, "{{") || empty.len < strlen(text));
    require(strstr(text, "a\"b") || !strstr(full.data, "a\"b"));
    strbuf_done(&empty);
    strbuf_done(&full);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < NOTIFICATION_TYPES; i++)
        check(text, &notification_types[i]);
    free(text);
    return 0;
}
