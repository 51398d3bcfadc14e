/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of images, as Backend.AI's clients send them. Each answers {ok msg};
 * what fails is ok: false with the reason, not an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/request/image_aliases.h"
#include "manager/view/image_inventory.h"
#include "manager/gql/image_mutation.h"
#include "model/reference.h"

int image_mutation_finish(struct gql_call *call, bool ok, const char *msg,
                          const struct uuid *task_id)
{
    struct image_mutation_result *outcome = arena_alloc(call->arena, sizeof(*outcome));
    const char *kept = arena_strdup(call->arena, msg), *id = NULL;
    char text[UUID_TEXT_MAX];

    if (task_id)
        id = arena_strdup(call->arena, uuid_format(task_id, text));
    if (!outcome || !kept || (task_id && !id))
        return gql_call_fail(call, "out of memory");
    *outcome = (struct image_mutation_result){ ok, kept, id };
    call->results[0] = gql_object(outcome);
    return GQL_DONE;
}

static int image_mutation_finish_plain(struct gql_call *call, bool ok, const char *msg)
{
    return image_mutation_finish(call, ok, msg, NULL);
}

struct api *image_mutation_api(const struct gql_call *call)
{
    return ((const struct gql_context *)call->context)->api;
}

bool image_mutation_may(struct gql_call *call)
{
    char msg[128];

    if (principal_is_superadmin(((const struct gql_context *)call->context)->who))
        return true;
    (void)snprintf(msg, sizeof(msg), "no permission to execute %s", call->field->name);
    (void)image_mutation_finish_plain(call, false, msg);
    return false;
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

    if (!image_mutation_may(call))
        return GQL_DONE;
    if (image_aliases_change(image_mutation_api(call), alias ? alias : "", image,
                             image_mutation_on_aliased, call, &err)
        < 0)
        return image_mutation_finish_plain(call, false, err.text);
    return GQL_LATER;
}

static int image_mutation_alias(struct gql_call *call)
{
    const char *target = gql_arg_text(call, SCHEMA_ARG_Mutation_alias_image_target);

    return image_mutation_change_alias(
        call, gql_arg_text(call, SCHEMA_ARG_Mutation_alias_image_alias), target ? target : "");
}

static int image_mutation_dealias(struct gql_call *call)
{
    return image_mutation_change_alias(
        call, gql_arg_text(call, SCHEMA_ARG_Mutation_dealias_image_alias), NULL);
}

/* ---- commands to agents ---- */

/* Of one mutation; lives until the last agent has answered. */
struct mutation_commands {
    struct gql_call *call;
    size_t waiting, done, failed;
    bool is_starting;
    char why[400]; /* of the first that failed */
};

static void image_mutation_settle(struct mutation_commands *commands)
{
    char msg[432];

    if (commands->waiting || commands->is_starting)
        return;
    (void)snprintf(msg, sizeof(msg), "%s%s", commands->failed ? commands->why : "success",
                   commands->failed > 1 ? " (and others)" : "");
    (void)image_mutation_finish_plain(commands->call, commands->failed == 0, msg);
    gql_call_done(commands->call);
    free(commands);
}

static void image_mutation_note_failure(struct mutation_commands *commands, const char *agent,
                                        const char *image, const char *why)
{
    if (commands->failed++ == 0)
        (void)snprintf(commands->why, sizeof(commands->why), "%s on agent %s: %s", image, agent,
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
    struct mutation_commands *commands = calloc(1, sizeof(*commands));

    if (commands) {
        commands->call = call;
        commands->is_starting = true;
    }
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

    for (uint32_t i = 0; i < images->count; i++) {
        const char *name = images->items[i].kind == GQL_STRING ? images->items[i].text : "";

        if (digest_is_valid(name))
            continue;
        if (reference_parse(name, NULL, &ref, &err) < 0)
            return arena_strdup(call->arena, err.text);
        reference_done(&ref);
    }
    for (uint32_t i = 0; i < agents->count; i++)
        if (agents->items[i].kind != GQL_STRING
            || !core_find_agent(image_mutation_api(call)->core, agents->items[i].text))
            return "No such agent instance.";
    return images->count ? NULL : "no image is named";
}

static int image_mutation_start(struct mutation_commands *commands)
{
    struct gql_call *call = commands->call;

    commands->is_starting = false;
    if (commands->waiting)
        return GQL_LATER;
    (void)image_mutation_finish_plain(call, commands->failed == 0,
                                      commands->failed ? commands->why : "success");
    free(commands);
    return GQL_DONE;
}

static int image_mutation_unload(struct gql_call *call)
{
    const struct gql_value *images = &call->args[SCHEMA_ARG_Mutation_unload_image_references];
    const struct gql_value *agents = &call->args[SCHEMA_ARG_Mutation_unload_image_target_agents];
    const char *wrong;
    struct mutation_commands *commands;

    if (!image_mutation_may(call))
        return GQL_DONE;
    if ((wrong = image_mutation_check_lists(call, images, agents)))
        return image_mutation_finish_plain(call, false, wrong);
    if (!(commands = image_mutation_commands_new(call)))
        return gql_call_fail(call, "out of memory");
    image_mutation_send_commands(commands, image_mutation_api(call), images, agents);
    return image_mutation_start(commands);
}

/* ---- forgetting: wherever it is ---- */

/* Which names of the inventory go: this one, or all of a registry. */
struct mutation_choice {
    const char *reference, *registry;
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

/* How many names there were. */
static size_t image_mutation_send_to_chosen(struct mutation_commands *commands, struct core *core,
                                            const struct mutation_choice *choice)
{
    json_auto_t *images = NULL;
    const json_t *image, *name, *agent;
    size_t i, k, a, count = 0;

    if (image_inventory(core, NULL, &images) < 0)
        return 0;
    json_array_foreach(images, i, image)
        json_array_foreach(json_object_get(image, "names"), k, name) {
            if (!image_mutation_is_chosen(choice, json_string_value(name)))
                continue;
            count++;
            json_array_foreach(json_object_get(image, "agents"), a, agent)
                image_mutation_send_command(commands, core, json_string_value(agent),
                                            json_string_value(name));
        }
    return count;
}

static int image_mutation_forget(struct gql_call *call)
{
    const char *name = gql_arg_text(call, SCHEMA_ARG_Mutation_forget_image_reference);
    struct reference ref;
    struct aq_error err = { 0 };
    struct mutation_commands *commands;
    size_t count;

    if (!image_mutation_may(call))
        return GQL_DONE;
    if (reference_parse(image_aliases_resolve(image_mutation_api(call), name ? name : ""), NULL,
                        &ref, &err)
        < 0)
        return image_mutation_finish_plain(call, false, err.text);
    commands = image_mutation_commands_new(call);
    count = commands ? image_mutation_send_to_chosen(
                commands, image_mutation_api(call)->core,
                &(const struct mutation_choice){ .reference = ref.text })
                     : 0;
    reference_done(&ref);
    if (!commands)
        return gql_call_fail(call, "out of memory");
    if (!count) {
        free(commands);
        return image_mutation_finish_plain(call, false, "No such environment image.");
    }
    return image_mutation_start(commands);
}

static int image_mutation_clear(struct gql_call *call)
{
    const struct mutation_choice choice = {
        .registry = gql_arg_text(call, SCHEMA_ARG_Mutation_clear_images_registry),
    };
    struct mutation_commands *commands;

    if (!image_mutation_may(call))
        return GQL_DONE;
    if (!choice.registry)
        return image_mutation_finish_plain(call, false, "name the registry whose images are to go");
    if (!(commands = image_mutation_commands_new(call)))
        return gql_call_fail(call, "out of memory");
    (void)image_mutation_send_to_chosen(commands, image_mutation_api(call)->core, &choice);
    return image_mutation_start(commands);
}

/* There is no list of a registry's images that could be out of date. */
static int image_mutation_rescan(struct gql_call *call)
{
    if (!image_mutation_may(call))
        return GQL_DONE;
    return image_mutation_finish_plain(
        call, false,
        "nothing is to be rescanned: any image of a registry can be used by "
        "its name, and agents say by themselves which they have");
}

/* clang-format off */
#define OUTCOME(type)                                                                              \
    { SCHEMA_FIELD_##type##_ok, GQL_BOOL_AT(struct image_mutation_result, ok) },                                 \
    { SCHEMA_FIELD_##type##_msg, GQL_TEXT_AT(struct image_mutation_result, msg) }
/* clang-format on */

const struct gql_entry image_mutation_entries[] = {
    { SCHEMA_FIELD_Mutation_rescan_images, GQL_CALL(image_mutation_rescan) },
    { SCHEMA_FIELD_Mutation_preload_image, GQL_CALL(image_preload) },
    { SCHEMA_FIELD_Mutation_unload_image, GQL_CALL(image_mutation_unload) },
    { SCHEMA_FIELD_Mutation_forget_image, GQL_CALL(image_mutation_forget) },
    { SCHEMA_FIELD_Mutation_clear_images, GQL_CALL(image_mutation_clear) },
    { SCHEMA_FIELD_Mutation_alias_image, GQL_CALL(image_mutation_alias) },
    { SCHEMA_FIELD_Mutation_dealias_image, GQL_CALL(image_mutation_dealias) },
    OUTCOME(RescanImages),
    { SCHEMA_FIELD_RescanImages_task_id, GQL_ALWAYS_NULL },
    OUTCOME(PreloadImage),
    { SCHEMA_FIELD_PreloadImage_task_id, GQL_TEXT_AT(struct image_mutation_result, task_id) },
    OUTCOME(UnloadImage),
    { SCHEMA_FIELD_UnloadImage_task_id, GQL_ALWAYS_NULL },
    OUTCOME(ForgetImage),
    OUTCOME(ClearImages),
    OUTCOME(AliasImage),
    OUTCOME(DealiasImage),
};
GQL_ENTRIES_END(image_mutation);
