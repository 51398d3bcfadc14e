/* SPDX-License-Identifier: Apache-2.0 */
/* Names of fields. */
#include "model/field.h"

#include <stdio.h>
#include <string.h>

size_t field_name_len(const struct field *field)
{
    return strcspn(field->names, "|");
}

const char *field_name(const struct field *field, char buf[FIELD_NAME_MAX])
{
    (void)snprintf(buf, FIELD_NAME_MAX, "%.*s", (int)field_name_len(field), field->names);
    return buf;
}

const char *field_column(const struct field *field, char buf[FIELD_NAME_MAX])
{
    return field->column ? field->column : field_name(field, buf);
}

const char *field_backendai_name(const struct field *field, char buf[FIELD_NAME_MAX])
{
    return field->backendai ? field->backendai : field_name(field, buf);
}

/* Is the key of 'len' bytes one of the names "a|b|c"? */
static bool field_is_among(const char *names, const char *key, size_t len)
{
    for (const char *p = names; p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
        if (strncmp(p, key, len) == 0 && (p[len] == '|' || p[len] == '\0'))
            return true;
    return false;
}

bool field_has_word(const struct field *field, const char *text)
{
    return !field->words || field_is_among(field->words, text, strlen(text));
}

long field_index(const struct field *table, const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || memchr(name, '|', len))
        return -1;
    for (long i = 0; table && table[i].names; i++)
        if (field_is_among(table[i].names, name, len))
            return i;
    return -1;
}

const struct field *field_find(const struct field *table, const char *name)
{
    long i = field_index(table, name);

    return i < 0 ? NULL : &table[i];
}

const json_t *field_get(const struct field *field, const json_t *object)
{
    const json_t *value = NULL;
    size_t len;

    for (const char *name = field->names; *name && !value; name += len + (name[len] == '|')) {
        len = strcspn(name, "|");
        value = json_object_getn(object, name, len);
    }
    return value;
}
