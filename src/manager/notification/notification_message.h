/* SPDX-License-Identifier: Apache-2.0 */
/* notification_message.h - what notifications are about, and the texts that they are made from
 *
 * Types and fields are those of Backend.AI's rules of which there are events here. A template is
 * text with fields as "{{ session_name }}"; the rest of Jinja's language is refused. Pure.
 */
#ifndef AQ_MANAGER_NOTIFICATION_NOTIFICATION_MESSAGE_H
#define AQ_MANAGER_NOTIFICATION_NOTIFICATION_MESSAGE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/jsonw.h"

enum notification_field {
    NOTIFICATION_SESSION_ID,
    NOTIFICATION_SESSION_NAME,
    NOTIFICATION_SESSION_TYPE,
    NOTIFICATION_CLUSTER_MODE,
    NOTIFICATION_STATUS,
    NOTIFICATION_TERMINATION_REASON,
    NOTIFICATION_WALL_SEC, /* from here on: see model/session_summary.h */
    NOTIFICATION_CPU_SEC,
    NOTIFICATION_CPU_EFFICIENCY,
    NOTIFICATION_MEM_PEAK,
    NOTIFICATION_MEM_ASKED,
    NOTIFICATION_FIELDS,
};

/* Texts of the fields; NULL = it has none, and nothing is put in its place. */
struct notification_values {
    const char *of[NOTIFICATION_FIELDS];
};

struct notification_type {
    const char *name;
    enum notification_field field_end; /* it has the fields before this one */
    bool is_extension;                 /* not in Backend.AI, whose clients reject it in a list */
};

#define NOTIFICATION_TYPES 3
extern const struct notification_type notification_types[NOTIFICATION_TYPES];

/* -EINVAL with 'field': the type is unknown or not supported. */
int notification_type_find(const char *name, const char *field,
                           const struct notification_type **ret, struct aq_error *err);

/* NOTIFICATION_FIELDS if the type has no such field. */
enum notification_field notification_field_find(const struct notification_type *type,
                                                const char *name, size_t len);
/* A value for tests. */
const char *notification_field_sample(enum notification_field which);

/* The fields as JSON Schema. */
void notification_type_write_schema(const struct notification_type *type, struct jsonw *w);

/* -EINVAL with 'field', saying what is not understood. */
int notification_template_check(const struct notification_type *type, const char *text,
                                const char *field, struct aq_error *err) AQ_UNTRUSTED;
/* Append a template that was checked, with the values as they are within a JSON text, or plain. */
void notification_template_render(const char *text, const struct notification_values *values,
                                  bool is_json, struct strbuf *out);

#endif
