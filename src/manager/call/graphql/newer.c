/* SPDX-License-Identifier: Apache-2.0 */
/* Input objects of filters and lists of orders as the mini language; see newer.h. */
#include "manager/call/graphql/newer.h"

#include <errno.h>
#include <string.h>

#define MEMBER_PATH_MAX 128 /* of a member within members */

static bool newer_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static char newer_lower(char c)
{
    return newer_is_upper(c) ? (char)(c ^ 0x20) : c;
}

/* ---- names ---- */

void newer_snake_case(const char *name, char *ret, size_t size)
{
    size_t len = 0;

    for (const char *at = name; *at && len + 2 < size; at++) {
        if (at > name && newer_is_upper(*at) && at[-1] >= 'a' && at[-1] <= 'z')
            ret[len++] = '_';
        ret[len++] = newer_lower(*at);
    }
    ret[len] = '\0';
}

void newer_lower_word(const char *name, char *ret, size_t size)
{
    size_t len = 0;

    for (; name[len] && len + 1 < size; len++)
        ret[len] = name[len] == '_' ? '-' : newer_lower(name[len]);
    ret[len] = '\0';
}

/* In snake_case, unless the node has another word for it. */
static void newer_add_field(const struct gql_node *node, const char *name, struct strbuf *out)
{
    char text[MEMBER_PATH_MAX];

    for (size_t i = 0; i < node->newer_word_count; i++)
        if (strcmp(node->newer_words[i].name, name) == 0) {
            strbuf_adds(out, node->newer_words[i].field);
            return;
        }
    newer_snake_case(name, text, sizeof(text));
    strbuf_adds(out, text);
}

/* ---- values ---- */

/* In double quotes, what means something in a pattern kept. */
static void newer_add_pattern(const char *before, const char *text, const char *after,
                              struct strbuf *out)
{
    strbuf_addf(out, "\"%s", before);
    for (; *text; text++) {
        if (strchr("%_\\", *text))
            strbuf_adds(out, "\\\\");
        if (strchr("\"\\", *text))
            strbuf_addc(out, '\\');
        strbuf_addc(out, *text);
    }
    strbuf_addf(out, "%s\"", after);
}

static void newer_add_text(const char *text, struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (; *text; text++) {
        if (strchr("\"\\", *text))
            strbuf_addc(out, '\\');
        strbuf_addc(out, *text);
    }
    strbuf_addc(out, '"');
}

/* Names of an enum are our words, in capitals and with '_' for '-'. */
static void newer_add_word(const char *name, struct strbuf *out)
{
    char word[MEMBER_PATH_MAX];

    newer_lower_word(name, word, sizeof(word));
    strbuf_addf(out, "\"%s\"", word);
}

static void newer_add_value(const struct gql_type *type, struct gql_value value, struct strbuf *out)
{
    if (value.kind == GQL_BOOL)
        strbuf_adds(out, value.boolean ? "true" : "false");
    else if (value.kind == GQL_INT)
        strbuf_addi(out, value.integer);
    else if (value.kind == GQL_ENUM)
        newer_add_word(type->values[value.integer].name, out);
    else
        newer_add_text(value.text, out);
}

/* ---- tests ---- */

struct newer_test {
    const char *name, *op, *before, *after; /* 'before' NULL = it is no pattern */
};

static const struct newer_test newer_tests[] = {
    { "equals", "==", NULL, NULL },     { "contains", "like", "%", "%" },
    { "startsWith", "like", "", "%" },  { "endsWith", "like", "%", "" },
    { "before", "<", NULL, NULL },      { "after", ">", NULL, NULL },
    { "lessThan", "<", NULL, NULL },    { "lessThanOrEqual", "<=", NULL, NULL },
    { "greaterThan", ">", NULL, NULL }, { "greaterThanOrEqual", ">=", NULL, NULL },
};

static void newer_add_test(const struct gql_type *type, const char *field,
                           const struct newer_test *test, bool any_case, struct gql_value value,
                           struct strbuf *out)
{
    const char *before = test->before;

    if (any_case && !before)
        before = "";
    strbuf_addf(out, "%s %s ", field, any_case ? "ilike" : test->op);
    if (before)
        newer_add_pattern(before, value.text, test->after ? test->after : "", out);
    else
        newer_add_value(type, value, out);
}

/* One of them; nothing is one of none. */
static void newer_add_list(const struct gql_type *type, const char *field, bool any_case,
                           struct gql_value list, struct strbuf *out)
{
    if (list.count == 0)
        strbuf_addf(out, "%s is null & %s isnot null", field, field);
    for (uint32_t i = 0; i < list.count; i++) {
        strbuf_adds(out, i ? " | " : "");
        newer_add_test(type, field, &newer_tests[0], any_case, list.items[i], out);
    }
}

/* "iNotStartsWith": in any case, the opposite. */
static int newer_add_comparison(const struct gql_input_def *def, const char *field,
                                struct gql_value value, struct strbuf *out, struct aq_error *err)
{
    const char *name = def->name;
    bool any_case = name[0] == 'i' && newer_is_upper(name[1]);
    char word[32];
    size_t i = 0;

    (void)snprintf(word, sizeof(word), "%s", name + any_case);
    word[0] = newer_lower(word[0]);
    if (strncmp(word, "not", 3) == 0 && newer_is_upper(word[3])) {
        strbuf_addc(out, '!');
        memmove(word, word + 3, strlen(word + 3) + 1);
        word[0] = newer_lower(word[0]);
    }
    strbuf_addc(out, '(');
    if (strcmp(word, "in") == 0) {
        newer_add_list(def->type.type, field, any_case, value, out);
    } else {
        while (i < AQ_COUNT(newer_tests) && strcmp(newer_tests[i].name, word) != 0)
            i++;
        if (i == AQ_COUNT(newer_tests))
            return aq_fail(err, EINVAL, "filter: there is no test '%s'", name);
        newer_add_test(def->type.type, field, &newer_tests[i], any_case, value, out);
    }
    strbuf_addc(out, ')');
    return 0;
}

/* ---- a filter ---- */

struct newer_filter {
    const struct gql_node *node;
    struct strbuf *out;
    struct aq_error *err;
    int depth;
};

static int newer_add_filter(struct newer_filter *f, const struct gql_type *type, const char *outer,
                            struct gql_value value);

/* Before each part but the first since 'start'. */
static void newer_begin_part(struct strbuf *out, size_t start, const char *op)
{
    if (out->len > start)
        strbuf_adds(out, op);
}

/* AND, OR and NOT: lists of filters of the same type. */
static int newer_add_group(struct newer_filter *f, const struct gql_input_def *def,
                           const char *outer, struct gql_value list)
{
    bool is_or = strcmp(def->name, "OR") == 0, is_not = strcmp(def->name, "NOT") == 0;
    size_t start = f->out->len;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < list.count; i++) {
        size_t before = f->out->len, inside;

        newer_begin_part(f->out, start, is_or ? " | " : " & ");
        strbuf_adds(f->out, is_not ? "!(" : "(");
        inside = f->out->len;
        r = newer_add_filter(f, def->type.type, outer, list.items[i]);
        if (f->out->len == inside)
            strbuf_truncate(f->out, before);
        else
            strbuf_addc(f->out, ')');
    }
    return r;
}

/* Tests of one field, or members within it. */
static int newer_add_object(struct newer_filter *f, const struct gql_type *type, const char *path,
                            struct gql_value value)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf field = STRBUF_INIT;
    size_t start = f->out->len;
    int r = 0;

    if (!gql_input_find(type->inputs, type->input_count, "equals", 6))
        return newer_add_filter(f, type, path, value);
    newer_add_field(f->node, path, &field);
    for (uint32_t i = 0; r == 0 && i < type->input_count; i++) {
        if (!gql_is_given(value.items[i]))
            continue;
        newer_begin_part(f->out, start, " & ");
        r = newer_add_comparison(&type->inputs[i], field.data, value.items[i], f->out, f->err);
    }
    return r;
}

static int newer_add_member(struct newer_filter *f, const struct gql_input_def *def,
                            const char *outer, struct gql_value value)
{
    char path[MEMBER_PATH_MAX];

    if (gql_ref_is_list(gql_ref_nullable(def->type)))
        return newer_add_group(f, def, outer, value);
    (void)snprintf(path, sizeof(path), "%s%s%s", outer, *outer ? "." : "", def->name);
    if (value.kind == GQL_INPUT)
        return newer_add_object(f, def->type.type, path, value);
    newer_add_field(f->node, path, f->out);
    strbuf_adds(f->out, " == ");
    newer_add_value(def->type.type, value, f->out);
    return 0;
}

static int newer_add_filter(struct newer_filter *f, const struct gql_type *type, const char *outer,
                            struct gql_value value)
{
    size_t start = f->out->len;
    int r = 0;

    if (++f->depth > FILTER_DEPTH_MAX)
        return aq_fail(f->err, EINVAL, "filter: nested deeper than %d", FILTER_DEPTH_MAX);
    for (uint32_t i = 0; r == 0 && i < type->input_count; i++) {
        size_t before = f->out->len, inside;

        if (!gql_is_given(value.items[i]))
            continue;
        newer_begin_part(f->out, start, " & ");
        strbuf_addc(f->out, '(');
        inside = f->out->len;
        r = newer_add_member(f, &type->inputs[i], outer, value.items[i]);
        if (f->out->len == inside)
            strbuf_truncate(f->out, before);
        else
            strbuf_addc(f->out, ')');
    }
    f->depth--;
    return r;
}

/* ---- an order ---- */

static struct gql_value newer_member(const struct gql_type *type, struct gql_value object,
                                     const char *name, const struct gql_type **ret_type)
{
    const struct gql_input_def *def = gql_input_find(type->inputs, type->input_count, name,
                                                     strlen(name));

    *ret_type = def->type.type;
    return object.items[def - type->inputs];
}

/* A direction is an enum, or the same word as a text. */
static int newer_read_direction(const struct gql_type *type, struct gql_value way, bool *ret,
                                struct aq_error *err)
{
    const char *name = way.kind == GQL_ENUM ? type->values[way.integer].name : way.text;

    *ret = strcmp(name, "DESC") == 0;
    return *ret || strcmp(name, "ASC") == 0
               ? 0
               : aq_fail(err, EINVAL, "orderBy: direction '%.40s' is neither ASC nor DESC", name);
}

static int newer_add_order(const struct gql_node *node, const struct gql_type *type,
                           struct gql_value list, struct strbuf *out, struct aq_error *err)
{
    for (uint32_t i = 0; i < list.count; i++) {
        const struct gql_type *fields, *directions;
        struct gql_value field = newer_member(type, list.items[i], "field", &fields);
        struct gql_value way = newer_member(type, list.items[i], "direction", &directions);
        bool is_down;

        if (newer_read_direction(directions, way, &is_down, err) < 0)
            return -err->code;
        strbuf_adds(out, i ? "," : "");
        if (is_down)
            strbuf_addc(out, '-');
        newer_add_field(node, fields->values[field.integer].name, out);
    }
    return 0;
}

/* ---- arguments ---- */

static const struct gql_input_def *newer_find(const struct gql_call *call, const char *name,
                                              struct gql_value *ret)
{
    const struct gql_field_def *field = call->field;
    const struct gql_input_def *def = gql_input_find(field->args, field->arg_count, name,
                                                     strlen(name));

    *ret = def ? call->args[def - field->args] : gql_null();
    return gql_is_given(*ret) ? def : NULL;
}

static struct gql_value newer_arg(const struct gql_call *call, const char *name)
{
    struct gql_value value;

    (void)newer_find(call, name, &value);
    return value;
}

bool newer_is_asked(const struct gql_field_def *field)
{
    return gql_input_find(field->args, field->arg_count, "limit", 5) != NULL;
}

/* NULL for an empty text. */
static const char *newer_keep(const struct gql_call *call, const struct strbuf *text)
{
    return text->len ? arena_strdup(call->arena, text->data) : NULL;
}

int newer_read_part(const struct gql_call *call, const struct gql_node *node,
                    struct gql_node_part *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf order = STRBUF_INIT;
    struct newer_filter f = { node, &filter, err, 0 };
    struct gql_value value, limit;
    const struct gql_input_def *def;
    int r = 0;

    if ((def = newer_find(call, "filter", &value)))
        r = newer_add_filter(&f, def->type.type, "", value);
    if (r == 0 && (def = newer_find(call, "orderBy", &value)))
        r = newer_add_order(node, def->type.type, value, &order, err);
    if (r < 0)
        return r;
    ret->filter = newer_keep(call, &filter);
    ret->order = newer_keep(call, &order);
    if (!newer_find(call, "first", &limit))
        limit = newer_arg(call, "limit");
    return relay_part_parse(call->arena, limit, newer_arg(call, "after"), newer_arg(call, "last"),
                            newer_arg(call, "before"), newer_arg(call, "offset"), NEWER_MAX,
                            &ret->part, err);
}
