/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: sessions that are alike but for an index. */
#include "model/session_array.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "base/vec.h"

#define LABEL_SET_MAX 32 /* bytes */

void session_array_done(struct session_array *a)
{
    session_done(&a->element);
    array_set_done(&a->indices);
    array_set_done(&a->removed);
    *a = (struct session_array){ .row = 0 };
}

int session_array_init(struct session_array *ret, struct session *s,
                       const struct array_set *indices, int64_t limit, struct aq_error *err)
{
    int brackets = snprintf(NULL, 0, "[%" PRId64 "]", array_set_max(indices));
    size_t room = (size_t)(SESSION_NAME_MAX - brackets);

    if (strlen(s->name) > room)
        return aq_fail_field(err, EINVAL, "name",
                             "the name of this array may have %zu characters, as its elements are "
                             "called NAME[%" PRId64 "]; choose a shorter one",
                             room, array_set_max(indices));
    *ret = (struct session_array){
        .id = s->id,
        .version = 1,
        .indices = array_set_copy(indices),
        .size = array_set_size(indices),
        .limit = limit,
        .created_usec = s->created_usec,
    };
    memcpy(ret->name, s->name, sizeof(ret->name));
    ret->element = *s;
    *s = (struct session){ .name = "" };
    return 0;
}

static struct kernel *session_array_copy_kernels(const struct session *element, int64_t now_usec)
{
    struct kernel *kernels = aq_alloc_array(element->kernel_count, sizeof(*kernels));

    for (size_t i = 0; i < element->kernel_count; i++) {
        const struct kernel *from = &element->kernels[i];

        kernels[i] = (struct kernel){
            .id = uuid_ordered(),
            .version = 1,
            .attempt = 1,
            .rank = (uint32_t)i,
            .index = from->index,
            .status_changed_usec = now_usec,
        };
        memcpy(kernels[i].role, from->role, sizeof(kernels[i].role));
        slots_copy(&kernels[i].requested, &from->requested);
    }
    return kernels;
}

void session_array_make(const struct session_array *a, int64_t index, int64_t now_usec,
                        struct session *ret)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s[%" PRId64 "]", a->name, index);
    const struct session *element = &a->element;

    *ret = (struct session){
        .id = uuid_random(),
        .type = element->type,
        .status = SESSION_PENDING,
        .version = 1,
        .priority = element->priority,
        .user_id = element->user_id,
        .project_id = element->project_id,
        .domain = aq_strdup(element->domain),
        .spec = session_spec_copy(element->spec),
        .image = aq_strdup(element->image),
        .tag = aq_strdup(element->tag),
        .is_multi_node = element->is_multi_node,
        .created_usec = now_usec,
        .status_changed_usec = now_usec,
        .starts_usec = element->starts_usec,
        .array_id = a->id,
        .array_index = index,
        .booking_id = element->booking_id,
        .kernels = session_array_copy_kernels(element, now_usec),
        .kernel_count = element->kernel_count,
    };
    memcpy(ret->access_key, element->access_key, sizeof(ret->access_key));
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
}

int64_t session_array_first_unmade(const struct session_array *a)
{
    struct array_cursor c = array_set_seek(&a->indices, a->next);
    int64_t index = array_cursor_next(&c);

    return index < 0 ? INT64_MAX : index;
}

enum array_outcome session_array_outcome(const struct session *s)
{
    if (s->result == RESULT_SUCCESS)
        return ARRAY_SUCCEEDED;
    return !session_reason_is_by_user(s->reason)
                   && (s->result == RESULT_FAILURE || s->status == SESSION_ERROR)
               ? ARRAY_FAILED
               : ARRAY_CANCELLED;
}

void session_array_label(const char *name, const char *indices, int64_t limit, struct strbuf *out)
{
    bool is_long = strlen(indices) > LABEL_SET_MAX;

    strbuf_addf(out, is_long ? "%s[%.*s..." : "%s[%.*s", name, LABEL_SET_MAX, indices);
    if (limit)
        strbuf_addf(out, "%%%" PRId64, limit);
    strbuf_addc(out, ']');
}

/* ---- the element as JSON ---- */

/* Kernels of one role are neighbours, and alike. */
static size_t session_array_count_role(const struct session *s, size_t from)
{
    size_t count = 1;

    while (from + count < s->kernel_count
           && strcmp(s->kernels[from + count].role, s->kernels[from].role) == 0)
        count++;
    return count;
}

static void session_array_write_kernels(const struct session *s, size_t from, size_t count,
                                        struct jsonw *w)
{
    const struct slots *requested = &s->kernels[from].requested;

    jsonw_object_begin(w);
    jsonw_member_str(w, "role", s->kernels[from].role);
    jsonw_member_int(w, "count", (int64_t)count);
    jsonw_key(w, "requested");
    jsonw_object_begin(w);
    for (size_t i = 0; i < requested->count; i++)
        jsonw_member_int(w, requested->items[i].name, requested->items[i].amount);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

char *session_array_write_element(const struct session_array *a)
{
    const struct session *s = &a->element;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char booking[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "starts_at", s->starts_usec);
    jsonw_member_bool(&w, "multi_node", s->is_multi_node);
    if (!uuid_is_nil(&s->booking_id))
        jsonw_member_str(&w, "booking", uuid_format(&s->booking_id, booking));
    jsonw_key(&w, "kernels");
    jsonw_array_begin(&w);
    for (size_t i = 0, count; i < s->kernel_count; i += count) {
        count = session_array_count_role(s, i);
        session_array_write_kernels(s, i, count, &w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    return strbuf_steal(&out);
}

void session_array_add_variables(const struct session_array *a, int64_t index, struct arena *arena,
                                 struct pair_list *inout)
{
    const struct {
        const char *ours, *slurm;
        int64_t value;
    } rows[] = {
        { "ALIQUOT_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID", index },
        { "ALIQUOT_ARRAY_COUNT", "SLURM_ARRAY_TASK_COUNT", a->size },
        { "ALIQUOT_ARRAY_MIN", "SLURM_ARRAY_TASK_MIN", array_set_min(&a->indices) },
        { "ALIQUOT_ARRAY_MAX", "SLURM_ARRAY_TASK_MAX", array_set_max(&a->indices) },
        { "ALIQUOT_ARRAY_STEP", "SLURM_ARRAY_TASK_STEP", array_set_step(&a->indices) },
        { "ALIQUOT_ARRAY_ID", "SLURM_ARRAY_JOB_ID", a->row },
    };

    _Static_assert(2 * AQ_COUNT(rows) == SESSION_ARRAY_VARIABLES, "two names a row");
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char text[24];
        const char *value;

        (void)snprintf(text, sizeof(text), "%" PRId64, rows[i].value);
        value = arena_strdup(arena, text);
        inout->items[inout->count++] = (struct text_pair){ rows[i].ours, value };
        inout->items[inout->count++] = (struct text_pair){ rows[i].slurm, value };
    }
}

static int session_array_read_slots(const json_t *object, struct slots *ret)
{
    const char *name;
    json_t *amount;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, amount) {
        const char *interned = slot_name_intern(name, strlen(name));

        if (r == 0)
            r = interned && json_is_integer(amount)
                    ? slots_set(ret, interned, json_integer_value(amount))
                    : -EINVAL;
    }
    return r;
}

static int session_array_read_kernels(const json_t *object, struct session *s)
{
    const char *role = json_string_value(json_object_get(object, "role"));
    int64_t count = json_integer_value(json_object_get(object, "count"));
    size_t cap = s->kernel_count;
    int r = role && strlen(role) < sizeof(s->kernels->role) && count >= 1 && count <= INT16_MAX
                ? 0
                : -EINVAL;

    if (r == 0)
        vec_grow(&s->kernels, &cap, s->kernel_count + (size_t)count, sizeof(*s->kernels));
    for (int64_t i = 0; r == 0 && i < count; i++) {
        struct kernel *k = &s->kernels[s->kernel_count];

        *k = (struct kernel){ .rank = (uint32_t)s->kernel_count, .index = (uint32_t)i + 1 };
        memcpy(k->role, role, strlen(role) + 1);
        s->kernel_count++;
        r = session_array_read_slots(json_object_get(object, "requested"), &k->requested);
    }
    return r;
}

int session_array_parse_element(const char *text, struct session *ret)
{
    json_t *tree = json_load_string(text, 0), *kernels = json_object_get(tree, "kernels"), *item;
    const char *booking = json_string_value(json_object_get(tree, "booking"));
    int r = json_array_size(kernels) ? 0 : -EINVAL;
    size_t i;

    ret->starts_usec = json_integer_value(json_object_get(tree, "starts_at"));
    if (booking && uuid_parse(booking, &ret->booking_id) < 0)
        r = -EINVAL;
    ret->is_multi_node = json_is_true(json_object_get(tree, "multi_node"));
    json_array_foreach(kernels, i, item)
        if (r == 0)
            r = session_array_read_kernels(item, ret);
    json_decref(tree);
    return r;
}

/* ---- names ---- */

int session_array_split_name(const char *text, size_t *ret_len, char *ret_set, size_t size)
{
    size_t len = strcspn(text, "["), all = strlen(text), set;

    if (len == 0 || len == all || text[all - 1] != ']')
        return -ENOENT;
    set = all - len - 2;
    if (set == 0 || set >= size)
        return -EINVAL;
    memcpy(ret_set, text + len + 1, set);
    ret_set[set] = '\0';
    *ret_len = len;
    return 0;
}
