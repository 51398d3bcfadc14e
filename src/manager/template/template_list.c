/* SPDX-License-Identifier: Apache-2.0 */
/* template_list.c - payloads of Backend.AI's form, which are lists of templates of sessions */
#include "manager/template/template_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"

#define LIST_MEMBER "session_templates" /* of clients before 26, which wrap the list */

struct template_entry {
    const json_t *template;
    const char *name, *group_id, *user_uuid;
};

#define AT(member) offsetof(struct template_entry, member)

static const struct field template_entry_fields[] = {
    { "template", FIELD_OBJECT, FIELD_REQUIRED, AT(template) },
    { "name", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(name), 1, TEMPLATE_NAME_MAX },
    { "group_id", FIELD_STR, FIELD_NULLABLE, AT(group_id), 1, 64 },
    { "user_uuid", FIELD_STR, FIELD_NULLABLE, AT(user_uuid), 1, 64 },
    /* Columns of Backend.AI's table, which its own manager ignores in a request. */
    { "id", FIELD_IGNORED },
    { "created_at", FIELD_IGNORED },
    { "is_active", FIELD_IGNORED },
    { "domain_name", FIELD_IGNORED },
    { "type", FIELD_IGNORED },
    FIELD_END,
};
#undef AT

/* The member of 'field' as a member of an entry, for template_place(). */
static int template_list_fail(const char *path, struct aq_error *err)
{
    char field[sizeof(err->field)];

    memcpy(field, err->field, sizeof(field));
    (void)snprintf(err->field, sizeof(err->field), "%.30s%s%.48s", path, *field ? "." : "", field);
    return -err->code;
}

/* The entry's name is the template's, so that the text says what the list shows. */
static int template_list_build(const struct template_entry *entry, struct arena *arena,
                               struct template_parsed *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int r;

    ret->json = json_deep_copy(entry->template);
    if (entry->name && json_is_object(json_object_get(ret->json, "metadata")))
        json_object_set_new(json_object_get(ret->json, "metadata"), "name",
                            json_string(entry->name));
    r = template_check_all(TEMPLATE_SESSION, ret->json, arena, &ret->name, err);
    if (r < 0)
        return r;
    text = json_dump_text(ret->json, JSON_INDENT(2));
    ret->text = arena_strdup(arena, text);
    ret->group_id = entry->group_id;
    ret->user_uuid = entry->user_uuid;
    return 0;
}

static int template_list_read_entry(const json_t *value, const char *path, struct arena *arena,
                                    struct template_parsed *ret, struct aq_error *err)
{
    struct template_entry entry = { .name = NULL };
    char within[80];
    int r = json_is_object(value) ? template_check_names(template_entry_fields, value, "", err)
                                  : aq_fail_as(err, EINVAL, "invalid-api-params", "",
                                               "an entry is a mapping with "
                                               "the member template");

    *ret = (struct template_parsed){ .kind = TEMPLATE_SESSION };
    if (r < 0 || (r = decode_object(template_entry_fields, value, arena, &entry, err)) < 0)
        return template_list_fail(path, err);
    (void)snprintf(within, sizeof(within), "%s.template", path);
    r = template_list_build(&entry, arena, ret, err);
    if (r < 0) {
        json_decref(AQ_TAKE(ret->json));
        return template_list_fail(within, err);
    }
    return 0;
}

const json_t *template_list_of(const json_t *parsed)
{
    const json_t *wrapped = json_object_get(parsed, LIST_MEMBER);

    return wrapped ? wrapped : json_is_array(parsed) ? parsed : NULL;
}

int template_list_read(const json_t *parsed, struct arena *arena, struct template_parsed **ret,
                       size_t *ret_count, struct aq_error *err)
{
    const json_t *list = template_list_of(parsed);
    size_t count = json_array_size(list), at = 0;
    struct template_parsed *all = arena_array(arena, AQ_MAX(count, 1), sizeof(*all));
    int r = 0;

    if (!count || count > TEMPLATE_LIST_MAX)
        return aq_fail_as(err, EINVAL, "invalid-api-params", list == parsed ? "" : LIST_MEMBER,
                          "must be a list of 1 to %d templates", TEMPLATE_LIST_MAX);
    for (; r == 0 && at < count; at++) {
        char path[40];

        (void)snprintf(path, sizeof(path), "%s%zu", list == parsed ? "" : LIST_MEMBER ".", at);
        r = template_list_read_entry(json_array_get(list, at), path, arena, &all[at], err);
    }
    if (r < 0) {
        template_parsed_free(all, at - 1);
        return r;
    }
    *ret = all;
    *ret_count = count;
    return 0;
}
