/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - Backend.AI's tables: their columns, and what is said of their rows */
#include "manager/backendai/rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX 65536

/* clang-format off */
#define TEXT(column, member, most)                                                                 \
    { column, FIELD_STR, FIELD_NULLABLE, offsetof(struct backendai_row, member), 0, most }
#define LINES(column, member, most)                                                                \
    { column, FIELD_STR, FIELD_NULLABLE | FIELD_LINES, offsetof(struct backendai_row, member), 0, most }
#define WORDS(column, member, most)                                                                \
    { column, FIELD_STR, FIELD_NULLABLE | FIELD_LINE, offsetof(struct backendai_row, member), 0, most }
#define NAME(column, member, most)                                                                 \
    { column, FIELD_STR, FIELD_REQUIRED | FIELD_LINE, offsetof(struct backendai_row, member), 1, most }
#define SECRET(column, member, most)                                                               \
    { column, FIELD_STR, FIELD_NULLABLE | FIELD_SECRET, offsetof(struct backendai_row, member), 0, most }
#define OBJECT(column, member)                                                                     \
    { column, FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct backendai_row, member) }
#define JSON(column, member)                                                                       \
    { column, FIELD_JSON, FIELD_NULLABLE, offsetof(struct backendai_row, member) }
#define LINE { "line", FIELD_INT, 0, offsetof(struct backendai_row, line), 0, INT64_MAX }
/* clang-format on */

static const struct field domain_fields[] = {
    LINE,
    NAME("name", name, 64),
    JSON("dotfiles", dotfiles),
    FIELD_END,
};
static const struct field policy_fields[] = {
    LINE,
    NAME("name", name, 256),
    TEXT("default_for_unspecified", unspecified, 16),
    OBJECT("total_resource_slots", slots),
    FIELD_END,
};
static const struct field resource_group_fields[] = {
    LINE,
    NAME("name", name, 64),
    WORDS("scheduler", scheduler, 64),
    OBJECT("scheduler_opts", options),
    FIELD_END,
};
static const struct field project_fields[] = {
    LINE,
    NAME("id", id, 64),
    NAME("name", name, 64),
    NAME("domain_name", domain, 64),
    JSON("dotfiles", dotfiles),
    FIELD_END,
};
static const struct field user_fields[] = {
    LINE,
    NAME("uuid", id, 64),
    NAME("email", email, 255),
    WORDS("username", name, 64),
    SECRET("password", password, 1024),
    LINES("full_name", full_name, 128),
    TEXT("status", status, 32),
    WORDS("domain_name", domain, 64),
    TEXT("role", role, 16),
    FIELD_END,
};
static const struct field member_fields[] = {
    LINE,
    NAME("user_id", user, 64),
    NAME("group_id", project, 64),
    FIELD_END,
};
static const struct field keypair_fields[] = {
    LINE,
    NAME("access_key", access_key, 64),
    SECRET("secret_key", secret_key, 256),
    NAME("user", user, 64),
    WORDS("resource_policy", policy, 256),
    TEXT("ssh_public_key", ssh_public_key, TEXT_MAX),
    TEXT("bootstrap_script", script, TEXT_MAX),
    JSON("dotfiles", dotfiles),
    FIELD_END,
};
static const struct field domain_grant_fields[] = {
    LINE,
    NAME("scaling_group", resource_group, 64),
    NAME("domain", domain, 64),
    FIELD_END,
};
static const struct field project_grant_fields[] = {
    LINE,
    NAME("scaling_group", resource_group, 64),
    NAME("group", project, 64),
    FIELD_END,
};
static const struct field keypair_grant_fields[] = {
    LINE,
    NAME("scaling_group", resource_group, 64),
    NAME("access_key", access_key, 64),
    FIELD_END,
};
static const struct field preset_fields[] = {
    LINE,
    NAME("name", name, 256),
    OBJECT("resource_slots", slots),
    TEXT("shared_memory", shared_memory, 32),
    FIELD_END,
};
static const struct field alias_fields[] = {
    LINE,
    NAME("alias", name, 256),
    NAME("image", image, 1024),
    FIELD_END,
};

const struct backendai_kind backendai_kinds[BACKENDAI_TABLE_COUNT] = {
    [BACKENDAI_DOMAINS] = { "domains", domain_fields, backendai_take_domain, &domain_entity },
    [BACKENDAI_POLICIES] = { "keypair_resource_policies", policy_fields, backendai_take_policy,
                             &keypair_policy_entity },
    [BACKENDAI_RESOURCE_GROUPS] = { "scaling_groups", resource_group_fields,
                                    backendai_take_resource_group, &resource_group_entity },
    [BACKENDAI_PROJECTS] = { "groups", project_fields, backendai_take_project, &project_entity },
    [BACKENDAI_USERS] = { "users", user_fields, backendai_take_user, &user_entity },
    [BACKENDAI_MEMBERS] = { "association_groups_users", member_fields, backendai_take_member },
    [BACKENDAI_KEYPAIRS] = { "keypairs", keypair_fields, backendai_take_keypair, &keypair_entity },
    [BACKENDAI_DOMAIN_GRANTS] = { "sgroups_for_domains", domain_grant_fields,
                                  backendai_take_domain_grant },
    [BACKENDAI_PROJECT_GRANTS] = { "sgroups_for_groups", project_grant_fields,
                                   backendai_take_project_grant },
    [BACKENDAI_KEYPAIR_GRANTS] = { "sgroups_for_keypairs", keypair_grant_fields,
                                   backendai_take_keypair_grant },
    [BACKENDAI_PRESETS] = { "resource_presets", preset_fields, backendai_take_preset },
    [BACKENDAI_ALIASES] = { "image_aliases", alias_fields, backendai_take_alias },
};

/* ---- the request's rows ---- */

/* A row as it is decoded: the values are kept for tables of an entity alone. */
struct backendai_decoded {
    struct backendai_row row;
    union backendai_value values[ENTITY_FIELDS_MAX];
};

/* Is the member a column that the table of the import does not name? */
static bool backendai_is_plain(const struct backendai_kind *kind, const struct field *field)
{
    char name[FIELD_NAME_MAX];

    return !(field->flags & FIELD_OURS)
           && !field_find(kind->fields, field_backendai_name(field, name));
}

/* A member as a column: of any value that the types of Backend.AI let in. */
static struct field backendai_column(struct backendai_import *import, const struct field *field,
                                     size_t place)
{
    char name[FIELD_NAME_MAX];
    struct field column = {
        .names = arena_strdup(&import->arena, field_backendai_name(field, name)),
        .flags = FIELD_NULLABLE | (field->flags & (FIELD_LINE | FIELD_LINES)),
        .offset = offsetof(struct backendai_decoded, values)
                  + place * sizeof(union backendai_value),
    };

    switch (field->type) {
    case FIELD_BOOL:
        column.type = FIELD_MAYBE;
        break;
    case FIELD_INT32:
    case FIELD_INT:
        column.type = FIELD_INT;
        column.min = -INT64_MAX;
        column.max = INT64_MAX;
        break;
    case FIELD_SLOTS:
        column.type = FIELD_OBJECT;
        break;
    default:
        column.type = FIELD_STR;
        column.max = TEXT_MAX;
        break;
    }
    return column;
}

/* The table's columns with those of its entity; 'blank' becomes a row without any. */
static const struct field *backendai_columns(struct backendai_import *import,
                                             const struct backendai_kind *kind,
                                             struct backendai_decoded *blank)
{
    struct field *fields = arena_array(&import->arena, 2 * ENTITY_FIELDS_MAX, sizeof(*fields));
    size_t count = 0;

    *blank = (struct backendai_decoded){ .row.line = 0 };
    if (!kind->entity)
        return kind->fields;
    while (kind->fields[count].names) {
        fields[count] = kind->fields[count];
        count++;
    }
    for (size_t i = 0; kind->entity->fields[i].names; i++) {
        const struct field *field = &kind->entity->fields[i];

        if (!backendai_is_plain(kind, field))
            continue;
        fields[count++] = backendai_column(import, field, i);
        if (fields[count - 1].type == FIELD_INT)
            blank->values[i].number = BACKENDAI_UNSET;
    }
    return fields;
}

static int backendai_find_table(const char *name, enum backendai_table *ret)
{
    for (int i = 0; i < BACKENDAI_TABLE_COUNT; i++)
        if (strcmp(backendai_kinds[i].table, name) == 0) {
            *ret = (enum backendai_table)i;
            return 0;
        }
    return -ENOENT;
}

static const union backendai_value *backendai_keep_values(struct backendai_import *import,
                                                          const union backendai_value *values)
{
    union backendai_value *kept = arena_array(&import->arena, ENTITY_FIELDS_MAX, sizeof(*kept));

    memcpy(kept, values, ENTITY_FIELDS_MAX * sizeof(*kept));
    return kept;
}

static int backendai_read_table(struct backendai_import *import, enum backendai_table table,
                                const json_t *list, struct aq_error *err)
{
    const struct backendai_kind *kind = &backendai_kinds[table];
    struct backendai_rows *rows = &import->tables[table];
    struct backendai_decoded blank, decoded;
    const struct field *columns = backendai_columns(import, kind, &blank);

    if (!json_is_array(list))
        return api_fail_param(err, kind->table, "must be a list of rows");
    rows->items = arena_array(&import->arena, json_array_size(list) + 1, sizeof(*rows->items));
    for (; rows->count < json_array_size(list); rows->count++) {
        const json_t *given = json_array_get(list, rows->count);

        decoded = blank;
        decoded.row.line = (int64_t)rows->count + 1;
        if (!json_is_object(given))
            return api_fail_param(err, kind->table, "row %zu is no object", rows->count + 1);
        if (decode_object(columns, given, &import->arena, &decoded, err) < 0)
            return aq_error_wrap(err, "%s, line %lld", kind->table, (long long)decoded.row.line);
        if (kind->entity)
            decoded.row.values = backendai_keep_values(import, decoded.values);
        rows->items[rows->count] = decoded.row;
    }
    return 0;
}

int backendai_read_rows(struct backendai_import *import, struct aq_error *err)
{
    const char *name;
    json_t *list;

    if (decode_object(backendai_import_fields, import->tree, &import->arena, &import->params, err)
        < 0)
        return -err->code;
    json_object_foreach((json_t *)(uintptr_t)import->params.tables, name, list) {
        enum backendai_table table;
        int r = backendai_find_table(name, &table);

        r = r < 0 ? api_fail_param(err, "tables", "there is no table '%.64s'", name)
                  : backendai_read_table(import, table, list, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- what is said of a row ---- */

static AQ_PRINTF(3, 0) void backendai_add_note(struct backendai_import *import,
                                               struct backendai_row *row, const char *fmt,
                                               va_list args)
{
    char text[320];

    (void)vsnprintf(text, sizeof(text), fmt, args);
    row->note = row->note ? backendai_format(import, "%s; %s", row->note, text)
                          : backendai_format(import, "%s", text);
}

void backendai_note(struct backendai_import *import, struct backendai_row *row, const char *fmt,
                    ...)
{
    va_list args;

    va_start(args, fmt);
    backendai_add_note(import, row, fmt, args);
    va_end(args);
    if (row->outcome == BACKENDAI_TAKEN)
        row->outcome = BACKENDAI_CHANGED;
}

int backendai_leave(struct backendai_import *import, struct backendai_row *row, const char *fmt,
                    ...)
{
    va_list args;

    va_start(args, fmt);
    backendai_add_note(import, row, fmt, args);
    va_end(args);
    row->outcome = BACKENDAI_LEFT;
    return 0;
}

int backendai_exists(struct backendai_import *import, struct backendai_row *row,
                     const struct account_kind *kind, const void *found)
{
    row->outcome = BACKENDAI_EXISTS;
    if (kind && account_is_hidden(kind, found))
        backendai_note(import, row, "it was taken out of use here, and stays so");
    return 0;
}

int backendai_claim(struct map *map, const void *key, size_t len, const char *field,
                    struct backendai_row *row, struct aq_error *err)
{
    const struct backendai_row *other = map_get(map, key, len);

    if (other)
        return api_fail_param(err, field, "line %lld says the same; leave one of them out",
                              (long long)other->line);
    map_set(map, key, len, row);
    return 0;
}

const char *backendai_format(struct backendai_import *import, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    return arena_strdup(&import->arena, text.data);
}

/* ---- slots ---- */

static bool backendai_is_infinite(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && (strcasecmp(text, "infinity") == 0 || strcasecmp(text, "inf") == 0);
}

static bool backendai_is_zero(const json_t *value)
{
    const char *text = json_string_value(value);

    return json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0)
           || (text && text[strspn(text, "0.")] == '\0');
}

json_t *backendai_slots(struct backendai_import *import, struct backendai_row *row,
                        const json_t *given, bool missing_is_unlimited)
{
    const struct slot_types *types = core_slot_types(import->api->core);
    json_t *slots = json_object(), *value;
    enum slot_type type;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)given, name, value) {
        if (backendai_is_infinite(value) && missing_is_unlimited)
            continue;
        if (slot_types_find(types, name, &type) < 0) {
            if (!backendai_is_zero(value))
                backendai_note(import, row, "'%.64s' is left out: no agent here has it yet", name);
        } else if (backendai_is_infinite(value)) { /* where what is missing is nothing */
            json_object_set_new(slots, name,
                                json_string(type == SLOT_BYTES ? "1125899906842624" : "1000000"));
            backendai_note(import, row, "'%.64s' was without a limit, and is limited to %s", name,
                           type == SLOT_BYTES ? "1 PiB" : "1000000");
        } else {
            json_object_set(slots, name, value);
        }
    }
    return slots;
}

/* ---- columns that are copied ---- */

json_t *backendai_number(struct backendai_import *import, struct backendai_row *row,
                         const char *column, int64_t value, int64_t most)
{
    if (value == BACKENDAI_UNSET || value < 0)
        return NULL;
    if (value > most)
        backendai_note(import, row, "%s is lowered to %lld", column, (long long)most);
    return json_integer(AQ_MIN(value, most));
}

static const char *backendai_cut(struct backendai_import *import, struct backendai_row *row,
                                 const char *column, const char *text, size_t most)
{
    size_t len = text ? strlen(text) : 0;

    if (len <= most)
        return text;
    len = most;
    while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    backendai_note(import, row, "the %s is cut to %zu bytes", column, most);
    return backendai_format(import, "%.*s", (int)len, text);
}

static json_t *backendai_copy_column(struct backendai_import *import, struct backendai_row *row,
                                     const struct field *field, const union backendai_value *value)
{
    char name[FIELD_NAME_MAX];
    const char *column = field_backendai_name(field, name);
    const char *text;

    switch (field->type) {
    case FIELD_BOOL:
        return value->yes == MAYBE_UNSET ? NULL : json_boolean(value->yes == MAYBE_TRUE);
    case FIELD_INT32:
    case FIELD_INT:
        return backendai_number(import, row, column, value->number, field->max);
    case FIELD_SLOTS:
        return backendai_slots(import, row, value->object, true);
    default:
        text = backendai_cut(import, row, column, value->text, (size_t)field->max);
        return text ? json_string(text) : NULL;
    }
}

void backendai_copy_columns(struct backendai_import *import, struct backendai_row *row,
                            const struct backendai_kind *kind, json_t *ret)
{
    for (size_t i = 0; kind->entity->fields[i].names; i++) {
        const struct field *field = &kind->entity->fields[i];
        json_t *value = backendai_is_plain(kind, field)
                            ? backendai_copy_column(import, row, field, &row->values[i])
                            : NULL;

        if (value)
            (void)json_object_setn_new(ret, field->names, field_name_len(field), value);
    }
}
