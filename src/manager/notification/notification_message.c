/* SPDX-License-Identifier: Apache-2.0 */
/* What notifications are about, and the texts that they are made from. */
#include "manager/notification/notification_message.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const struct {
    const char *name, *what, *sample;
    bool is_optional;
} notification_fields[NOTIFICATION_FIELDS] = {
    [NOTIFICATION_SESSION_ID] = { "session_id", "the session's id",
                                  "00000000-0000-0000-0000-000000000000" },
    [NOTIFICATION_SESSION_NAME] = { "session_name", "its name", "example", true },
    [NOTIFICATION_SESSION_TYPE] = { "session_type", "interactive, batch, inference or system",
                                    "interactive" },
    [NOTIFICATION_CLUSTER_MODE] = { "cluster_mode", "single-node or multi-node", "single-node" },
    [NOTIFICATION_STATUS] = { "status", "running, terminated, cancelled or error", "running" },
    [NOTIFICATION_TERMINATION_REASON] = { "termination_reason",
                                          "why it ended or is about to end, such as user-requested",
                                          "user-requested", true },
    [NOTIFICATION_WALL_SEC] = { "wall_sec", "run time of a batch session's program, seconds",
                                "3600", true },
    [NOTIFICATION_CPU_SEC] = { "cpu_sec", "CPU time of a batch session, core seconds", "7000",
                               true },
    [NOTIFICATION_CPU_EFFICIENCY] = { "cpu_efficiency",
                                      "percent of the requested cores that it used", "97", true },
    [NOTIFICATION_MEM_PEAK] = { "mem_peak", "peak memory usage, MiB", "900", true },
    [NOTIFICATION_MEM_ASKED] = { "mem_asked", "requested memory, MiB", "1024", true },
};

const struct notification_type notification_types[NOTIFICATION_TYPES] = {
    { "session.started", NOTIFICATION_TERMINATION_REASON, false },
    { "session.idle_warning", NOTIFICATION_FIELDS, true },
    { "session.terminated", NOTIFICATION_FIELDS, false },
};

int notification_type_find(const char *name, const char *field,
                           const struct notification_type **ret, struct aq_error *err)
{
    for (size_t i = 0; i < NOTIFICATION_TYPES; i++)
        if (strcmp(notification_types[i].name, name) == 0) {
            *ret = &notification_types[i];
            return 0;
        }
    return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                      "notification type '%.64s' is not supported; supported are session.started, "
                      "session.idle_warning and session.terminated",
                      name);
}

enum notification_field notification_field_find(const struct notification_type *type,
                                                const char *name, size_t len)
{
    for (enum notification_field i = 0; i < type->field_end; i++)
        if (strlen(notification_fields[i].name) == len
            && memcmp(notification_fields[i].name, name, len) == 0)
            return i;
    return NOTIFICATION_FIELDS;
}

const char *notification_field_sample(enum notification_field which)
{
    return notification_fields[which].sample;
}

void notification_type_write_schema(const struct notification_type *type, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "title", type->name);
    jsonw_member_str(w, "type", "object");
    jsonw_member_bool(w, "additionalProperties", false);
    jsonw_key(w, "properties");
    jsonw_object_begin(w);
    for (enum notification_field i = 0; i < type->field_end; i++) {
        jsonw_key(w, notification_fields[i].name);
        jsonw_object_begin(w);
        jsonw_member_str(w, "type", "string");
        jsonw_member_str(w, "description", notification_fields[i].what);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
    jsonw_key(w, "required");
    jsonw_array_begin(w);
    for (enum notification_field i = 0; i < type->field_end; i++)
        if (!notification_fields[i].is_optional)
            jsonw_str(w, notification_fields[i].name);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

/* ---- templates ---- */

/* A run of plain text, then the name of a field; either may be empty. */
struct template_piece {
    const char *text, *name;
    size_t text_len, name_len;
};

static size_t notification_blanks(const char *text)
{
    return strspn(text, " \t\r\n");
}

/* The next piece at '*at', which goes behind it. False if what follows its text is not understood:
 * '*at' is there then.
 */
static bool notification_next_piece(const char **at, struct template_piece *ret)
{
    const char *p = *at;

    while (*p && (*p != '{' || !p[1] || !strchr("{%#", p[1])))
        p++;
    *ret = (struct template_piece){ .text = *at, .text_len = (size_t)(p - *at), .name = p };
    *at = p;
    if (!*p)
        return true;
    if (p[1] != '{')
        return false;
    p += 2;
    p += notification_blanks(p);
    for (ret->name = p; isalnum((unsigned char)*p) || *p == '_'; p++)
        ret->name_len++;
    p += notification_blanks(p);
    if (!ret->name_len || strncmp(p, "}}", 2) != 0)
        return false;
    *at = p + 2;
    return true;
}

int notification_template_check(const struct notification_type *type, const char *text,
                                const char *field, struct aq_error *err)
{
    struct template_piece piece;

    while (*text) {
        if (!notification_next_piece(&text, &piece))
            return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                              "'%.40s' is not understood: fields as {{ session_name }} are, and "
                              "nothing else of Jinja's templates",
                              text);
        if (piece.name_len
            && notification_field_find(type, piece.name, piece.name_len) == NOTIFICATION_FIELDS)
            return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                              "%s has no field '%.*s': 'rule schema' lists those that there are",
                              type->name, (int)AQ_MIN(piece.name_len, 40), piece.name);
    }
    return 0;
}

/* Without the quotes around it. */
static void notification_write_escaped(const char *value, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf quoted = STRBUF_INIT;
    struct jsonw w = jsonw_make(&quoted);

    jsonw_str(&w, value);
    out->failed |= quoted.failed;
    if (quoted.len >= 2)
        strbuf_add(out, quoted.data + 1, quoted.len - 2);
}

void notification_template_render(const char *text, const struct notification_values *values,
                                  bool is_json, struct strbuf *out)
{
    static const struct notification_type all = { "", NOTIFICATION_FIELDS };
    struct template_piece piece;

    while (*text && notification_next_piece(&text, &piece)) {
        enum notification_field which = notification_field_find(&all, piece.name, piece.name_len);
        const char *value = which < NOTIFICATION_FIELDS ? values->of[which] : NULL;

        strbuf_add(out, piece.text, piece.text_len);
        if (value && is_json)
            notification_write_escaped(value, out);
        else if (value)
            strbuf_adds(out, value);
    }
}
