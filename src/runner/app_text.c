/* SPDX-License-Identifier: Apache-2.0 */
/* Variables in the texts of an app's definition. */
#include "runner/app_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 128
#define KEY_DIGITS_MAX 4

static const json_t *app_text_get_key(const json_t *value, const char *key)
{
    if (json_is_object(value))
        return json_object_get(value, key);
    if (json_is_array(value) && *key && strlen(key) <= KEY_DIGITS_MAX
        && key[strspn(key, "0123456789")] == '\0')
        return json_array_get(value, strtoul(key, NULL, 10));
    return NULL;
}

/* "name[key][key]" in 'expression', which is changed; NULL if there is no such. */
static const json_t *app_text_find(char *expression, const json_t *variables)
{
    char *rest = strchr(expression, '[');
    const json_t *value;

    if (rest)
        *rest++ = '\0';
    value = json_object_get(variables, expression);
    while (value && rest) {
        char *end = strchr(rest, ']');

        if (!end || (end[1] && end[1] != '['))
            return NULL;
        *end = '\0';
        value = app_text_get_key(value, rest);
        rest = end[1] ? end + 2 : NULL;
    }
    return value;
}

static int app_text_add_value(const char *name, size_t len, const json_t *variables,
                              struct strbuf *out, struct aq_error *err)
{
    char expression[NAME_MAX_BYTES + 1];
    const json_t *value = NULL;

    while (len && *name == ' ') {
        name++;
        len--;
    }
    while (len && name[len - 1] == ' ')
        len--;
    if (len <= NAME_MAX_BYTES) {
        memcpy(expression, name, len);
        expression[len] = '\0';
        value = app_text_find(expression, variables);
    }
    if (json_is_integer(value))
        strbuf_addi(out, json_integer_value(value));
    else if (json_is_string(value))
        strbuf_add(out, json_string_value(value), json_string_length(value));
    else
        return aq_fail(err, EINVAL, "there is no variable '%.*s'", (int)AQ_MIN(len, (size_t)40),
                       name);
    return 0;
}

/* What begins with a brace, or with "${{"; *at is moved behind it. */
static int app_text_take(const char **at, const json_t *variables, struct strbuf *out,
                         struct aq_error *err)
{
    bool is_double = **at == '$';
    const char *from = *at + (is_double ? 3 : 1);
    const char *end;

    if (!is_double && (**at == '}' || from[0] == '{')) {
        strbuf_addc(out, **at);
        *at += from[0] == **at ? 2 : 1;
        return 0;
    }
    end = strstr(from, is_double ? "}}" : "}");
    if (!end)
        return aq_fail(err, EINVAL, "a brace is not closed in '%.40s'", *at);
    *at = end + (is_double ? 2 : 1);
    return app_text_add_value(from, (size_t)(end - from), variables, out, err);
}

int app_text_expand(const char *text, const json_t *variables, struct strbuf *out,
                    struct aq_error *err)
{
    const char *at = text;
    int r = 0;

    while (r == 0 && *at) {
        if (*at == '{' || *at == '}' || strncmp(at, "${{", 3) == 0)
            r = app_text_take(&at, variables, out, err);
        else
            strbuf_addc(out, *at++);
        if (r == 0 && out->len > APP_TEXT_MAX)
            r = aq_fail(err, E2BIG, "a text is longer than %d bytes with its variables",
                        APP_TEXT_MAX);
    }
    return r < 0 ? r : strbuf_ok(out) ? 0 : aq_fail_oom(err);
}
