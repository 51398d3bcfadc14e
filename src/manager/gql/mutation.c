/* Mutations of images, as Backend.AI's clients send them. Each answers {ok msg};
 * what fails is ok: false with the reason, not an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/api/aliases.h"
#include "manager/api/image.h"
#include "manager/gql/mutation.h"
#include "model/reference.h"

int mutation_finish(struct gql_call *call, bool ok, const char *msg, const struct uuid *task_id)
{
    struct outcome *outcome = arena_alloc(call->arena, sizeof(*outcome));
    const char *kept = arena_strdup(call->arena, msg), *id = NULL;
    char text[UUID_TEXT_MAX];

    if (task_id)
        id = arena_strdup(call->arena, uuid_format(task_id, text));
    if (!outcome || !kept || (task_id && !id))
        return gql_call_fail(call, "out of memory");
    *outcome = (struct outcome){ ok, kept, id };
    call->results[0] = gql_object(outcome);
    return GQL_DONE;
}

static int finish(struct gql_call *call, bool ok, const char *msg)
{
    return mutation_finish(call, ok, msg, NULL);
}

struct api *mutation_api(const struct gql_call *call)
{
    return ((const struct gql_context *)call->context)->api;
}

bool mutation_may(struct gql_call *call)
{
    char msg[128];

    if (principal_is_superadmin(((const struct gql_context *)call->context)->who))
        return true;
    (void)snprintf(msg, sizeof(msg), "no permission to execute %s", call->field->name);
    (void)finish(call, false, msg);
    return false;
}

/* ---- aliases ---- */

static void on_aliased(void *data, int r, const struct aq_error *err)
{
    struct gql_call *call = data;

    (void)finish(call, r == 0, r == 0 ? "success" : err->text);
    gql_call_done(call);
}

static int change_alias(struct gql_call *call, const char *alias, const char *image)
{
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (aliases_change(mutation_api(call), alias ? alias : "", image, on_aliased, call, &err) < 0)
        return finish(call, false, err.text);
    return GQL_LATER;
}

static int alias_image(struct gql_call *call)
{
    const char *target = gql_arg_text(call, SCHEMA_ARG_Mutation_alias_image_target);

    return change_alias(call, gql_arg_text(call, SCHEMA_ARG_Mutation_alias_image_alias),
                        target ? target : "");
}

static int dealias_image(struct gql_call *call)
{
    return change_alias(call, gql_arg_text(call, SCHEMA_ARG_Mutation_dealias_image_alias), NULL);
}

/* ---- orders to agents ---- */

/* Of one mutation; lives until the last agent has answered. */
struct orders {
    struct gql_call *call;
    size_t waiting, done, failed;
    bool is_starting;
    char why[400];         /* of the first that failed */
};

static void settle(struct orders *orders)
{
    char msg[432];

    if (orders->waiting || orders->is_starting)
        return;
    (void)snprintf(msg, sizeof(msg), "%s%s", orders->failed ? orders->why : "success",
                   orders->failed > 1 ? " (and others)" : "");
    (void)finish(orders->call, orders->failed == 0, msg);
    gql_call_done(orders->call);
    free(orders);
}

static void note_failure(struct orders *orders, const char *agent, const char *image,
                         const char *why)
{
    if (orders->failed++ == 0)
        (void)snprintf(orders->why, sizeof(orders->why), "%s on agent %s: %s", image, agent, why);
}

static void on_status(void *data, const struct core_image_status *status)
{
    struct orders *orders = data;

    if (!status->is_final)
        return;
    orders->waiting--;
    if (strcmp(status->state, "ready") == 0)
        orders->done++;
    else
        note_failure(orders, status->agent_id, status->image,
                     status->error_text ? status->error_text : "failed");
    settle(orders);
}

static void order(struct orders *orders, struct core *core, const char *agent_id,
                  const char *image)
{
    struct msg_image_order msg = { .action = "remove", .image = image };
    struct core_image_job *job;
    struct aq_error err = { 0 };

    if (core_order_image(core, agent_id, &msg, on_status, orders, &job, &err) == 0)
        orders->waiting++;
    else
        note_failure(orders, agent_id, image, err.text);
}

static struct orders *orders_new(struct gql_call *call)
{
    struct orders *orders = calloc(1, sizeof(*orders));

    if (orders) {
        orders->call = call;
        orders->is_starting = true;
    }
    return orders;
}

/* ---- removing by name ---- */

/* Remove each image from each of these agents; none = all that are connected. */
static void order_all(struct orders *orders, const struct api *api,
                      const struct gql_value *images, const struct gql_value *agents)
{
    for (uint32_t i = 0; i < images->count; i++) {
        const char *image = aliases_resolve(api, images->items[i].text);
        const struct agent *agent;

        for (uint32_t k = 0; k < agents->count; k++)
            order(orders, api->core, agents->items[k].text, image);
        for (size_t k = 0; !agents->count && (agent = core_get_agent(api->core, k)); k++)
            if (core_agent_is_connected(api->core, agent->id))
                order(orders, api->core, agent->id, image);
    }
}

const char *mutation_check_lists(struct gql_call *call, const struct gql_value *images,
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
            || !core_find_agent(mutation_api(call)->core, agents->items[i].text))
            return "No such agent instance.";
    return images->count ? NULL : "no image is named";
}

static int start(struct orders *orders)
{
    struct gql_call *call = orders->call;

    orders->is_starting = false;
    if (orders->waiting)
        return GQL_LATER;
    (void)finish(call, orders->failed == 0, orders->failed ? orders->why : "success");
    free(orders);
    return GQL_DONE;
}

static int unload_image(struct gql_call *call)
{
    const struct gql_value *images = &call->args[SCHEMA_ARG_Mutation_unload_image_references];
    const struct gql_value *agents = &call->args[SCHEMA_ARG_Mutation_unload_image_target_agents];
    const char *wrong;
    struct orders *orders;

    if (!mutation_may(call))
        return GQL_DONE;
    if ((wrong = mutation_check_lists(call, images, agents)))
        return finish(call, false, wrong);
    if (!(orders = orders_new(call)))
        return gql_call_fail(call, "out of memory");
    order_all(orders, mutation_api(call), images, agents);
    return start(orders);
}

/* ---- forgetting: wherever it is ---- */

/* Which names of the inventory go: this one, or all of a registry. */
struct choice {
    const char *reference, *registry;
};

static bool is_chosen(const struct choice *choice, const char *name)
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
static size_t order_chosen(struct orders *orders, struct core *core, const struct choice *choice)
{
    json_auto_t *images = NULL;
    const json_t *image, *name, *agent;
    size_t i, k, a, count = 0;

    if (image_inventory(core, NULL, &images) < 0)
        return 0;
    json_array_foreach(images, i, image)
        json_array_foreach(json_object_get(image, "names"), k, name) {
            if (!is_chosen(choice, json_string_value(name)))
                continue;
            count++;
            json_array_foreach(json_object_get(image, "agents"), a, agent)
                order(orders, core, json_string_value(agent), json_string_value(name));
        }
    return count;
}

static int forget_image(struct gql_call *call)
{
    const char *name = gql_arg_text(call, SCHEMA_ARG_Mutation_forget_image_reference);
    struct reference ref;
    struct aq_error err = { 0 };
    struct orders *orders;
    size_t count;

    if (!mutation_may(call))
        return GQL_DONE;
    if (reference_parse(aliases_resolve(mutation_api(call), name ? name : ""), NULL, &ref, &err) < 0)
        return finish(call, false, err.text);
    orders = orders_new(call);
    count = orders ? order_chosen(orders, mutation_api(call)->core,
                                  &(const struct choice){ .reference = ref.text }) : 0;
    reference_done(&ref);
    if (!orders)
        return gql_call_fail(call, "out of memory");
    if (!count) {
        free(orders);
        return finish(call, false, "No such environment image.");
    }
    return start(orders);
}

static int clear_images(struct gql_call *call)
{
    const struct choice choice = {
        .registry = gql_arg_text(call, SCHEMA_ARG_Mutation_clear_images_registry),
    };
    struct orders *orders;

    if (!mutation_may(call))
        return GQL_DONE;
    if (!choice.registry)
        return finish(call, false, "name the registry whose images are to go");
    if (!(orders = orders_new(call)))
        return gql_call_fail(call, "out of memory");
    (void)order_chosen(orders, mutation_api(call)->core, &choice);
    return start(orders);
}

/* There is no list of a registry's images that could be out of date. */
static int rescan_images(struct gql_call *call)
{
    if (!mutation_may(call))
        return GQL_DONE;
    return finish(call, false, "nothing is to be rescanned: any image of a registry can be used by "
                               "its name, and agents say by themselves which they have");
}

#define OUTCOME(type)                                                                              \
    { SCHEMA_FIELD_##type##_ok, GQL_BOOL_AT(struct outcome, ok) },                                 \
    { SCHEMA_FIELD_##type##_msg, GQL_TEXT_AT(struct outcome, msg) }

const struct gql_entry mutation_entries[] = {
    { SCHEMA_FIELD_Mutation_rescan_images, GQL_CALL(rescan_images) },
    { SCHEMA_FIELD_Mutation_preload_image, GQL_CALL(preload_image) },
    { SCHEMA_FIELD_Mutation_unload_image, GQL_CALL(unload_image) },
    { SCHEMA_FIELD_Mutation_forget_image, GQL_CALL(forget_image) },
    { SCHEMA_FIELD_Mutation_clear_images, GQL_CALL(clear_images) },
    { SCHEMA_FIELD_Mutation_alias_image, GQL_CALL(alias_image) },
    { SCHEMA_FIELD_Mutation_dealias_image, GQL_CALL(dealias_image) },
    OUTCOME(RescanImages),
    { SCHEMA_FIELD_RescanImages_task_id, GQL_ALWAYS_NULL },
    OUTCOME(PreloadImage),
    { SCHEMA_FIELD_PreloadImage_task_id, GQL_TEXT_AT(struct outcome, task_id) },
    OUTCOME(UnloadImage),
    { SCHEMA_FIELD_UnloadImage_task_id, GQL_ALWAYS_NULL },
    OUTCOME(ForgetImage),
    OUTCOME(ClearImages),
    OUTCOME(AliasImage),
    OUTCOME(DealiasImage),
};
GQL_ENTRIES_END(mutation);
