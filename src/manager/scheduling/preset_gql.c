/* SPDX-License-Identifier: Apache-2.0 */
/* ResourcePreset: amounts with a name, for people to choose from; and what superadmins do to them. */
#include <stdlib.h>
#include <string.h>

#include "manager/call/graphql/mutation.h"
#include "manager/scheduling/presets.h"
#include "manager/scheduling/scheduling_feature.h"
#include "store/filter.h"

/* ---- queries ---- */

/* NULL = there is none of that name. */
static struct resource_preset *gql_preset_find(const struct gql_call *call, const char *name)
{
    struct resource_preset *preset = arena_alloc(call->arena, sizeof(*preset));

    return presets_find(mutation_api(call), name, call->arena, preset) ? preset : NULL;
}

static int gql_preset_get_one(struct gql_call *call)
{
    const struct resource_preset *preset = gql_preset_find(
        call, gql_arg_text(call, SCHEMA_ARG_Queries_resource_preset_name));

    if (preset)
        call->results[0] = gql_object(preset);
    return GQL_DONE;
}

static const struct filter_field gql_preset_fields[] = {
    { "name", "", FILTER_STRING, .offset = offsetof(struct resource_preset, name) },
};

static int gql_preset_compare(const void *a, const void *b, void *order)
{
    return order_compare(order, a, b);
}

/* Those that 'filter' finds, in 'order'. */
static int gql_preset_select(const struct gql_call *call, struct resource_preset *rows,
                             size_t *count, struct aq_error *err)
{
    const char *filter = gql_arg_text(call, SCHEMA_ARG_Queries_resource_presets_filter);
    const char *by = gql_arg_text(call, SCHEMA_ARG_Queries_resource_presets_order);
    const struct filter_program *program;
    struct order order;
    size_t found = 0;

    if (filter) {
        if (filter_read(filter, gql_preset_fields, AQ_COUNT(gql_preset_fields), call->arena,
                        &program, err)
            < 0)
            return -err->code;
        for (size_t i = 0; i < *count; i++)
            if (filter_match(program, &rows[i]))
                rows[found++] = rows[i];
        *count = found;
    }
    if (!by)
        return 0;
    if (order_read(by, gql_preset_fields, AQ_COUNT(gql_preset_fields), &order, err) < 0)
        return -err->code;
    qsort_r(rows, *count, sizeof(*rows), gql_preset_compare, &order);
    return 0;
}

static int gql_preset_list(struct gql_call *call)
{
    struct aq_error err = { 0 };
    size_t count;
    struct resource_preset *rows = presets_list(mutation_api(call), call->arena, &count);

    if (gql_preset_select(call, rows, &count, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    call->results[0] = gql_rows_of(call->arena, rows, (uint32_t)count, sizeof(*rows));
    return GQL_DONE;
}

static struct gql_value gql_preset_get_id(struct gql_get *get, const void *parent)
{
    struct uuid id = gql_uuid_of_name(((const struct resource_preset *)parent)->name);

    return gql_textn(uuid_format(&id, get->scratch), UUID_TEXT_MAX - 1);
}

/* ---- mutations ---- */

static void gql_preset_on_created(void *data, int r, const struct aq_error *err)
{
    struct gql_call *call = data;

    if (r < 0)
        (void)mutation_refuse(call, err);
    else
        (void)mutation_succeed(
            call, gql_preset_find(
                      call, gql_arg_text(call, SCHEMA_ARG_Mutations_create_resource_preset_name)));
    gql_call_done(call);
}

static void gql_preset_fail_unknown(struct aq_error *err)
{
    api_fail_param(err, "name", "or id must be that of a preset");
}

static int gql_preset_save(struct gql_call *call, const char *name, bool is_new)
{
    struct gql_value group = mutation_prop(call, "scaling_group_name");
    struct gql_value renamed = is_new ? gql_null() : mutation_prop(call, "name");
    json_auto_t *given = NULL;
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (!name)
        gql_preset_fail_unknown(&err);
    else if (gql_is_given(group))
        api_fail_param(&err, "scaling_group_name", "presets are for all resource groups");
    else if (gql_is_given(renamed) && strcmp(renamed.text, name) != 0)
        api_fail_param(&err, "name", "is '%.64s' and cannot be changed", name);
    if (err.code || mutation_members(call, &resource_preset_entity, &given, &err) < 0
        || presets_change(mutation_api(call),
                          is_new ? OBJECT_SETTING_CREATE : OBJECT_SETTING_MODIFY, name, given,
                          mutation_who(call), is_new ? gql_preset_on_created : mutation_on_done,
                          call, &err)
               < 0)
        return mutation_refuse(call, &err);
    return GQL_LATER;
}

/* The preset that is named, or that has the id; NULL if there is none. */
static const char *gql_preset_name_of(const struct gql_call *call, unsigned name_arg,
                                      unsigned id_arg)
{
    const char *given = gql_arg_text(call, name_arg), *text = gql_arg_text(call, id_arg), *name;
    json_t *presets = (json_t *)(uintptr_t)presets_all(mutation_api(call)), *preset;
    struct uuid id, found;

    if (given || !text || uuid_parse(text, &id) < 0)
        return given;
    json_object_foreach(presets, name, preset) {
        found = gql_uuid_of_name(name);
        if (uuid_equals(&found, &id))
            return name;
    }
    return NULL;
}

static int gql_preset_create(struct gql_call *call)
{
    return gql_preset_save(
        call, gql_arg_text(call, SCHEMA_ARG_Mutations_create_resource_preset_name), true);
}

static int gql_preset_modify(struct gql_call *call)
{
    return gql_preset_save(call,
                           gql_preset_name_of(call,
                                              SCHEMA_ARG_Mutations_modify_resource_preset_name,
                                              SCHEMA_ARG_Mutations_modify_resource_preset_id),
                           false);
}

static int gql_preset_delete(struct gql_call *call)
{
    const char *name = gql_preset_name_of(call, SCHEMA_ARG_Mutations_delete_resource_preset_name,
                                          SCHEMA_ARG_Mutations_delete_resource_preset_id);
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (!name)
        gql_preset_fail_unknown(&err);
    if (err.code
        || presets_change(mutation_api(call), OBJECT_SETTING_REMOVE, name, NULL, mutation_who(call),
                          mutation_on_done, call, &err)
               < 0)
        return mutation_refuse(call, &err);
    return GQL_LATER;
}

static const struct gql_entry preset_entries[] = {
    { SCHEMA_FIELD_Queries_resource_preset, GQL_CALL(gql_preset_get_one) },
    { SCHEMA_FIELD_Queries_resource_presets, GQL_CALL_COST(gql_preset_list, 5, PRESETS_MAX) },
    { SCHEMA_FIELD_ResourcePreset_id, GQL_GET(gql_preset_get_id) },
    { SCHEMA_FIELD_ResourcePreset_scaling_group_name, GQL_ALWAYS_NULL },
    { SCHEMA_FIELD_Mutations_create_resource_preset,
      GQL_CALL_COST(gql_preset_create, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_modify_resource_preset,
      GQL_CALL_COST(gql_preset_modify, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_delete_resource_preset,
      GQL_CALL_COST(gql_preset_delete, GQL_COST_WRITE, 1) },
    MUTATION_RESULT(CreateResourcePreset),
    { SCHEMA_FIELD_CreateResourcePreset_resource_preset,
      GQL_OBJECT_AT(struct mutation_result, object) },
    MUTATION_RESULT(ModifyResourcePreset),
    MUTATION_RESULT(DeleteResourcePreset),
};
GQL_ENTRIES_END(preset);
