/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of images, as Backend.AI's clients send them. Each answers {ok msg};
 * what fails is ok: false with the reason, not an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/image/image_aliases.h"
#include "manager/image/image_limits.h"
#include "manager/image/rescan.h"
#include "manager/image/image_inventory.h"
#include "manager/image/image.h"
#include "manager/image/image_mutation_gql.h"
#include "manager/image/image_feature.h"
#include "model/architecture.h"
#include "model/reference.h"

#define COMMAND_LIST_MAX 1000 /* images, and agents, of one mutation */

static int image_mutation_finish_plain(struct gql_call *call, bool ok, const char *msg)
{
    return mutation_finish(call, ok, msg, NULL);
}

/* What is wrong with an argument. */
static const char *image_mutation_of_field(const struct gql_call *call, const char *argument,
                                           const struct aq_error *err)
{
    char text[sizeof(err->text) + 32];

    (void)snprintf(text, sizeof(text), "%s: %s", argument, err->text);
    return arena_strdup(call->arena, text);
}

/* ---- aliases ---- */

static void image_mutation_on_aliased(void *data, int r, const struct aq_error *err)
{
    struct gql_call *call = data;

    (void)image_mutation_finish_plain(call, r == 0, r == 0 ? "success" : err->text);
    gql_call_done(call);
}

static int image_mutation_change_alias(struct gql_call *call, const char *alias, const char *image)
{
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (image_aliases_change(mutation_api(call), alias ? alias : "", image, mutation_who(call),
                             image_mutation_on_aliased, call, &err)
        < 0)
        return image_mutation_finish_plain(
            call, false,
            image_mutation_of_field(call, strcmp(err.field, "image") == 0 ? "target" : "alias",
                                    &err));
    return GQL_LATER;
}

static int image_mutation_alias(struct gql_call *call)
{
    const char *target = gql_arg_text(call, SCHEMA_ARG_Mutations_alias_image_target);

    return image_mutation_change_alias(
        call, gql_arg_text(call, SCHEMA_ARG_Mutations_alias_image_alias), target ? target : "");
}

static int image_mutation_dealias(struct gql_call *call)
{
    return image_mutation_change_alias(
        call, gql_arg_text(call, SCHEMA_ARG_Mutations_dealias_image_alias), NULL);
}

/* ---- limits ---- */

/* Members of ResourceLimitInput: what is not said, or has no end, is no limit. */
static void image_mutation_add_bound(const struct gql_value *limit, size_t member, json_t *to)
{
    const struct gql_value *key = &limit->items[0], *bound = &limit->items[member];

    if (gql_is_given(*key) && gql_is_given(*bound) && strcmp(bound->text, "Infinity") != 0)
        (void)json_object_set_new(to, key->text, json_string(bound->text));
}

static int image_mutation_read_limits(const struct gql_call *call, struct slots *min,
                                      struct slots *max, struct aq_error *err)
{
    const struct slot_types *types = ((const struct gql_context *)call->context)->types;
    struct gql_value limits = mutation_prop(call, "resource_limits");
    json_auto_t *least = json_object(), *most = json_object();
    int r;

    for (uint32_t i = 0; i < limits.count; i++) {
        if (!gql_is_given(limits.items[i]))
            return api_fail_param(err, "resource_limits", "[%u] is null", i);
        image_mutation_add_bound(&limits.items[i], 1, least);
        image_mutation_add_bound(&limits.items[i], 2, most);
    }
    r = slots_from_json(least, types, min, err);
    return r < 0 ? r : slots_from_json(most, types, max, err);
}

/* All that is not Aliquot's to say. */
static int image_mutation_check_props(const struct gql_call *call, struct aq_error *err)
{
    static const char *const fixed[] = {
        "name",       "registry", "image",  "tag",    "architecture",
        "size_bytes", "type",     "digest", "labels", "supported_accelerators"
    };

    for (size_t i = 0; i < AQ_COUNT(fixed); i++)
        if (gql_is_given(mutation_prop(call, fixed[i])))
            return api_fail_param(err, fixed[i], "is what the image says, and cannot be changed");
    if (!gql_is_given(mutation_prop(call, "resource_limits")))
        return api_fail_param(err, "resource_limits", "is required");
    return 0;
}

static int image_mutation_modify(struct gql_call *call)
{
    AQ_CLEANUP(slots_donep) struct slots min = { 0 }, max = { 0 };
    const char *target = gql_arg_text(call, SCHEMA_ARG_Mutations_modify_image_target);
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (image_mutation_check_props(call, &err) < 0
        || image_mutation_read_limits(call, &min, &max, &err) < 0
        || image_limits_set(mutation_api(call), target ? target : "", &min, &max,
                            mutation_who(call), mutation_on_done, call, &err)
               < 0) {
        if (strcmp(err.field, "image") == 0)
            (void)snprintf(err.field, sizeof(err.field), "target");
        return mutation_refuse(call, &err);
    }
    return GQL_LATER;
}

/* ---- commands to agents ---- */

/* Of one mutation; lives until the last agent has answered. */
struct mutation_commands {
    struct gql_call *call;
    size_t waiting, done, failed;
    bool is_starting;
    const void *object; /* what is shown of one that goes; NULL = nothing */
    char why[440];      /* of the first that failed */
};

/* Of a result without 'ok' what fails is an error. */
static int image_mutation_answer(const struct mutation_commands *commands, const char *msg)
{
    bool has_ok = gql_field_find(commands->call->field->type.type, "ok", 2);

    if (commands->failed)
        return has_ok ? image_mutation_finish_plain(commands->call, false, msg)
                      : gql_call_fail(commands->call, "%s", msg);
    return mutation_succeed(commands->call, commands->object);
}

static void image_mutation_settle(struct mutation_commands *commands)
{
    char msg[464];

    if (commands->waiting || commands->is_starting)
        return;
    (void)snprintf(msg, sizeof(msg), "%s%s", commands->failed ? commands->why : "success",
                   commands->failed > 1 ? " (and others)" : "");
    (void)image_mutation_answer(commands, msg);
    gql_call_done(commands->call);
    free(commands);
}

static void image_mutation_note_failure(struct mutation_commands *commands, const char *agent,
                                        const char *image, const char *why)
{
    if (commands->failed++ == 0)
        (void)snprintf(commands->why, sizeof(commands->why), "%s on agent %s: %.300s", image, agent,
                       why);
}

static void image_mutation_on_status(void *data, const struct core_image_status *status)
{
    struct mutation_commands *commands = data;

    if (!status->is_final)
        return;
    commands->waiting--;
    if (strcmp(status->state, "ready") == 0)
        commands->done++;
    else
        image_mutation_note_failure(commands, status->agent_id, status->image,
                                    status->error_text ? status->error_text : "failed");
    image_mutation_settle(commands);
}

static void image_mutation_send_command(struct mutation_commands *commands, struct core *core,
                                        const char *agent_id, const char *image)
{
    struct msg_image_command msg = { .action = "remove", .image = image };
    struct core_image_job *job;
    struct aq_error err = { 0 };

    if (core_command_image(core, agent_id, &msg, image_mutation_on_status, commands, &job, &err)
        == 0)
        commands->waiting++;
    else
        image_mutation_note_failure(commands, agent_id, image, err.text);
}

static struct mutation_commands *image_mutation_commands_new(struct gql_call *call)
{
    struct mutation_commands *commands = aq_alloc(sizeof(*commands));

    commands->call = call;
    commands->is_starting = true;
    return commands;
}

/* ---- removing by name ---- */

/* Remove each image from each of these agents; none = all that are connected. */
static void image_mutation_send_commands(struct mutation_commands *commands, const struct api *api,
                                         const struct gql_value *images,
                                         const struct gql_value *agents)
{
    for (uint32_t i = 0; i < images->count; i++) {
        const char *image = image_aliases_resolve(api, images->items[i].text);
        const struct agent *agent;

        for (uint32_t k = 0; k < agents->count; k++)
            image_mutation_send_command(commands, api->core, agents->items[k].text, image);
        for (size_t k = 0; !agents->count && (agent = core_get_agent(api->core, k)); k++)
            if (core_agent_is_connected(api->core, agent->id))
                image_mutation_send_command(commands, api->core, agent->id, image);
    }
}

const char *image_mutation_check_lists(struct gql_call *call, const struct gql_value *images,
                                       const struct gql_value *agents)
{
    struct aq_error err = { 0 };
    struct reference ref;

    if (images->count > COMMAND_LIST_MAX || agents->count > COMMAND_LIST_MAX)
        return images->count > COMMAND_LIST_MAX ? "references: more than 1000"
                                                : "target_agents: more than 1000";
    for (uint32_t i = 0; i < images->count; i++) {
        const char *name = images->items[i].kind == GQL_STRING ? images->items[i].text : "";

        if (digest_is_valid(name))
            continue;
        if (reference_parse(name, NULL, &ref, &err) < 0)
            return image_mutation_of_field(call, "references", &err);
        reference_done(&ref);
    }
    for (uint32_t i = 0; i < agents->count; i++)
        if (agents->items[i].kind != GQL_STRING
            || !core_find_agent(mutation_api(call)->core, agents->items[i].text))
            return "No such agent instance.";
    return images->count ? NULL : "references: no image is named";
}

static int image_mutation_start(struct mutation_commands *commands)
{
    commands->is_starting = false;
    if (commands->waiting)
        return GQL_LATER;
    (void)image_mutation_answer(commands, commands->why);
    free(commands);
    return GQL_DONE;
}

static int image_mutation_unload(struct gql_call *call)
{
    const struct gql_value *images = &call->args[SCHEMA_ARG_Mutations_unload_image_references];
    const struct gql_value *agents = &call->args[SCHEMA_ARG_Mutations_unload_image_target_agents];
    const char *wrong;
    struct mutation_commands *commands;

    if (!mutation_may(call))
        return GQL_DONE;
    if ((wrong = image_mutation_check_lists(call, images, agents)))
        return image_mutation_finish_plain(call, false, wrong);
    commands = image_mutation_commands_new(call);
    image_mutation_send_commands(commands, mutation_api(call), images, agents);
    return image_mutation_start(commands);
}

/* ---- forgetting: wherever it is ---- */

/* Which names of the inventory go: this one, or all of a registry. */
struct mutation_choice {
    const char *reference, *registry;
    const char *architecture; /* NULL = of all */
};

static bool image_mutation_is_chosen(const struct mutation_choice *choice, const char *name)
{
    struct reference ref;
    bool yes;

    if (choice->reference)
        return strcmp(name, choice->reference) == 0;
    if (reference_parse(name, NULL, &ref, NULL) < 0)
        return false;
    yes = ref.form == REFERENCE_REGISTRY && strcmp(ref.registry, choice->registry) == 0;
    reference_done(&ref);
    return yes;
}

static bool image_mutation_has_architecture(const struct mutation_choice *choice,
                                            const json_t *image)
{
    const char *architecture = json_string_value(json_object_get(image, "architecture"));

    return !choice->architecture
           || strcmp(architecture_of_machine(architecture ? architecture : ""),
                     choice->architecture)
                  == 0;
}

/* How many names there were. */
static size_t image_mutation_send_to_chosen(struct mutation_commands *commands,
                                            const struct api *api,
                                            const struct mutation_choice *choice)
{
    json_auto_t *images = image_inventory(api, NULL);
    const json_t *image, *name, *agent;
    size_t i, k, a, count = 0;

    json_array_foreach(images, i, image)
        json_array_foreach(json_object_get(image, "names"), k, name) {
            if (!json_array_size(json_object_get(image, "agents"))
                || !image_mutation_is_chosen(choice, json_string_value(name))
                || !image_mutation_has_architecture(choice, image))
                continue;
            count++;
            json_array_foreach(json_object_get(image, "agents"), a, agent)
                image_mutation_send_command(commands, api->core, json_string_value(agent),
                                            json_string_value(name));
        }
    return count;
}

static int image_mutation_forget(struct gql_call *call)
{
    const char *name = gql_arg_text(call, SCHEMA_ARG_Mutations_forget_image_reference);
    struct reference ref;
    struct aq_error err = { 0 };
    struct mutation_commands *commands;
    size_t count;

    if (!mutation_may(call))
        return GQL_DONE;
    if (reference_parse(image_aliases_resolve(mutation_api(call), name ? name : ""), NULL, &ref,
                        &err)
        < 0)
        return image_mutation_finish_plain(call, false,
                                           image_mutation_of_field(call, "reference", &err));
    commands = image_mutation_commands_new(call);
    count = image_mutation_send_to_chosen(commands, mutation_api(call),
                                          &(const struct mutation_choice){ .reference = ref.text });
    reference_done(&ref);
    if (!count) {
        free(commands);
        return image_mutation_finish_plain(call, false, "No such environment image.");
    }
    return image_mutation_start(commands);
}

/* By the id of the image, of whose name this architecture goes. */
static int image_mutation_remove_id(struct gql_call *call)
{
    const char *id = gql_arg_text(call, SCHEMA_ARG_Mutations_forget_image_by_id_image_id);
    struct mutation_commands *commands = image_mutation_commands_new(call);
    struct mutation_choice chosen = { 0 };
    const struct image_row *row;
    struct gql_images images;

    gql_images_load(call, &images);
    if ((row = gql_images_find_id(call, &images, id)))
        chosen = (struct mutation_choice){ .reference = row->reference,
                                           .architecture = row->architecture };
    commands->object = row;
    if (!row || !image_mutation_send_to_chosen(commands, mutation_api(call), &chosen)) {
        commands->failed = 1;
        (void)snprintf(commands->why, sizeof(commands->why),
                       "No such environment image. (no agent has '%.200s')", id);
    }
    return image_mutation_start(commands);
}

static int image_mutation_forget_id(struct gql_call *call)
{
    return mutation_may(call) ? image_mutation_remove_id(call) : GQL_DONE;
}

static int image_mutation_purge_id(struct gql_call *call)
{
    struct gql_value options = call->args[SCHEMA_ARG_Mutations_purge_image_by_id_options];

    if (!mutation_may_or_fails(call))
        return GQL_DONE;
    if (gql_is_given(options) && gql_is_given(options.items[0]) && options.items[0].boolean)
        return gql_call_fail(call, "remove_from_registry: not supported: images in registries are "
                                   "not the manager's");
    return image_mutation_remove_id(call);
}

static int image_mutation_clear(struct gql_call *call)
{
    const struct mutation_choice choice = {
        .registry = gql_arg_text(call, SCHEMA_ARG_Mutations_clear_images_registry),
    };
    struct mutation_commands *commands;

    if (!mutation_may(call))
        return GQL_DONE;
    if (!choice.registry)
        return image_mutation_finish_plain(call, false, "name the registry whose images are to go");
    commands = image_mutation_commands_new(call);
    (void)image_mutation_send_to_chosen(commands, mutation_api(call), &choice);
    return image_mutation_start(commands);
}

static void image_mutation_on_rescan(void *data, const struct uuid *id, int r,
                                     const struct aq_error *err)
{
    struct gql_call *call = data;

    (void)(r < 0 ? mutation_refuse(call, err) : mutation_finish(call, true, "", id));
    gql_call_done(call);
}

static int image_mutation_rescan(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    const char *registry = gql_arg_text(call, SCHEMA_ARG_Mutations_rescan_images_registry);
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (gql_arg_text(call, SCHEMA_ARG_Mutations_rescan_images_project))
        return image_mutation_finish_plain(
            call, false,
            "project: which projects are read is the key config/docker/registry/NAME/project");
    if (rescan_start(context->api, context->who, mutation_who(call), registry,
                     image_mutation_on_rescan, call, &err)
        < 0)
        return mutation_refuse(call, &err);
    return GQL_LATER;
}

static const struct gql_entry image_mutation_entries[] = {
    { SCHEMA_FIELD_Mutations_rescan_images, GQL_CALL(image_mutation_rescan) },
    { SCHEMA_FIELD_Mutations_preload_image, GQL_CALL(image_preload) },
    { SCHEMA_FIELD_Mutations_unload_image, GQL_CALL(image_mutation_unload) },
    { SCHEMA_FIELD_Mutations_forget_image, GQL_CALL(image_mutation_forget) },
    { SCHEMA_FIELD_Mutations_forget_image_by_id, GQL_CALL(image_mutation_forget_id) },
    { SCHEMA_FIELD_Mutations_purge_image_by_id, GQL_CALL(image_mutation_purge_id) },
    { SCHEMA_FIELD_Mutations_clear_images, GQL_CALL(image_mutation_clear) },
    { SCHEMA_FIELD_Mutations_alias_image, GQL_CALL(image_mutation_alias) },
    { SCHEMA_FIELD_Mutations_modify_image,
      GQL_CALL_COST(image_mutation_modify, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_dealias_image, GQL_CALL(image_mutation_dealias) },
    MUTATION_RESULT(RescanImages),
    { SCHEMA_FIELD_RescanImages_task_id, GQL_TEXT_AT(struct mutation_result, task_id) },
    MUTATION_RESULT(PreloadImage),
    { SCHEMA_FIELD_PreloadImage_task_id, GQL_TEXT_AT(struct mutation_result, task_id) },
    MUTATION_RESULT(UnloadImage),
    { SCHEMA_FIELD_UnloadImage_task_id, GQL_ALWAYS_NULL },
    MUTATION_RESULT(ForgetImage),
    MUTATION_RESULT(ForgetImageById),
    { SCHEMA_FIELD_ForgetImageById_image, GQL_OBJECT_AT(struct mutation_result, object) },
    { SCHEMA_FIELD_PurgeImageById_image, GQL_OBJECT_AT(struct mutation_result, object) },
    MUTATION_RESULT(ClearImages),
    MUTATION_RESULT(AliasImage),
    MUTATION_RESULT(DealiasImage),
    MUTATION_RESULT(ModifyImage),
};
GQL_ENTRIES_END(image_mutation);
