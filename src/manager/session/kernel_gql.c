/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeContainer. The objects are struct gql_container. */
#include "manager/session/kernel_gql.h"

#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/image/image.h"
#include "manager/call/graphql/node.h"
#include "manager/session/session_view.h"
#include "manager/session/session_feature.h"
#include "model/cluster_role.h"

#define FIELD(name) SCHEMA_FIELD_ComputeContainer_##name
#define NODE(name) SCHEMA_FIELD_KernelNode_##name

static struct gql_container *gql_kernel_list(struct arena *arena, const struct session_row *session,
                                             uint32_t *ret_count)
{
    size_t count = session->kernels ? session->kernel_count : 0;
    struct gql_container *items = arena_array(arena, count ? count : 1, sizeof(*items));

    for (size_t i = 0; i < count; i++)
        items[i] = (struct gql_container){ &session->kernels[i], session };
    *ret_count = (uint32_t)count;
    return items;
}

struct gql_value gql_containers(struct arena *arena, const struct session_row *session)
{
    uint32_t count;
    struct gql_container *items = gql_kernel_list(arena, session, &count);

    return gql_rows_of(arena, items, count, sizeof(*items));
}

struct gql_value gql_kernel_nodes(struct gql_call *call, const struct session_row *session)
{
    uint32_t count;
    struct gql_container *items = gql_kernel_list(call->arena, session, &count);

    return gql_node_connect(call, &kernel_node, items, sizeof(*items), count);
}

/* ---- compute_container(container_id) ---- */

struct find_kernel {
    struct gql_call *call;
    uint32_t type; /* where the schema says an interface; 0 = as declared */
    struct store_query query;
    const char *id;
    struct store_page *page;
};

static int gql_kernel_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct find_kernel *find = data;
    int r = gql_set_room(find->call->context, &find->query, err);

    return r < 0 ? r : store_find_sessions(tx, &find->query, find->id, &find->page, err);
}

static struct gql_value gql_kernel_pick(const struct find_kernel *find)
{
    struct uuid id;

    if (uuid_parse(find->id, &id) < 0)
        return gql_null();
    for (size_t s = 0; s < find->page->count; s++) {
        const struct session_row *session = &find->page->sessions[s];

        for (size_t k = 0; session->kernels && k < session->kernel_count; k++) {
            struct gql_container *found;

            if (!uuid_equals(&session->kernels[k].kernel.id, &id))
                continue;
            found = arena_alloc(find->call->arena, sizeof(*found));
            *found = (struct gql_container){ &session->kernels[k], session };
            return gql_object_of(find->type, found);
        }
    }
    return gql_null();
}

static void gql_kernel_on_read(void *data, int r, const struct aq_error *err)
{
    struct find_kernel *find = data;

    if (r < 0) {
        gql_call_fail(find->call, "%s", err->text);
    } else {
        gql_keep(find->call->context, find->call->arena, find->page);
        find->call->results[0] = gql_kernel_pick(find);
    }
    gql_call_done(find->call);
}

static int gql_kernel_find(struct gql_call *call, const char *id, uint32_t type)
{
    const struct gql_context *context = call->context;
    struct find_kernel *find = arena_alloc(call->arena, sizeof(*find));

    find->call = call;
    find->type = type;
    find->id = id;
    find->query.with_kernels = true;
    gql_scope(context, &find->query);
    return gql_read(call, gql_kernel_read, gql_kernel_on_read, find);
}

static int gql_kernel_get_one(struct gql_call *call)
{
    const char *id = gql_arg_text(call, SCHEMA_ARG_Queries_compute_container_container_id);

    if (!id && !(id = gql_arg_text(call, SCHEMA_ARG_Queries_compute_container_id)))
        return gql_call_fail(call, "container_id: is required");
    return gql_kernel_find(call, id, 0);
}

/* ---- compute_container_list(session_id) ---- */

struct list_kernels {
    struct gql_call *call;
    struct store_query session; /* the one */
    int64_t limit, offset;
    const char *role; /* NULL = any */
    struct store_page *page;
};

static int gql_kernel_read_session(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct list_kernels *list = data;
    int r = gql_set_room(list->call->context, &list->session, err);

    return r < 0 ? r : store_list_sessions(tx, &list->session, &list->page, err);
}

static struct gql_value gql_kernel_page_of(const struct list_kernels *list)
{
    struct arena *arena = list->call->arena;
    const struct session_row *session = list->page->count ? &list->page->sessions[0] : NULL;
    struct gql_rows_page *page = arena_alloc(arena, sizeof(*page));
    struct gql_container *items = NULL;
    uint32_t count = 0, shown = 0;

    if (session)
        items = gql_kernel_list(arena, session, &count);
    for (uint32_t i = 0; i < count; i++)
        if ((!list->role || strcmp(items[i].row->kernel.role, list->role) == 0)
            && page->total++ >= list->offset && shown < list->limit)
            items[shown++] = items[i];
    page->items = gql_rows_of(arena, items, shown, sizeof(*items));
    return gql_object(page);
}

static void gql_kernel_on_session(void *data, int r, const struct aq_error *err)
{
    struct list_kernels *list = data;

    if (r < 0) {
        gql_call_fail(list->call, "%s", err->text);
    } else {
        gql_keep(list->call->context, list->call->arena, list->page);
        list->call->results[0] = gql_kernel_page_of(list);
    }
    gql_call_done(list->call);
}

static int gql_kernel_list_of_session(struct gql_call *call)
{
    struct gql_fetch *args = gql_fetch_new(call, GQL_PAGE, NULL, 0);
    struct list_kernels *list = arena_alloc(call->arena, sizeof(*list));
    struct aq_error err = { 0 };

    if (gql_fetch_page_args(args, GQL_PAGE_MAX, &err) < 0
        || gql_node_set_id(
               args, gql_arg_text(call, SCHEMA_ARG_Queries_compute_container_list_session_id), &err)
               < 0)
        return gql_fetch_fail(args, &err);
    if (args->query.filter || args->query.order)
        return gql_call_fail(call, "%s: takes no filter and no order", call->field->name);
    *list = (struct list_kernels){
        .call = call,
        .session = { .ids = args->query.ids, .id_count = 1, .with_kernels = true },
        .limit = args->query.limit,
        .offset = args->query.offset,
        .role = gql_arg_text(call, SCHEMA_ARG_Queries_compute_container_list_role),
    };
    gql_scope(call->context, &list->session);
    return gql_read(call, gql_kernel_read_session, gql_kernel_on_session, list);
}

static const char *gql_kernel_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct gql_container *)row)->row->kernel.id, scratch);
}

const struct gql_node kernel_node = {
    .type = SCHEMA_TYPE_KernelNode,
    .id_of = gql_kernel_id_of,
    .get = gql_kernel_find,
};

/* ---- values ---- */

static const struct kernel *gql_kernel_of(const void *parent)
{
    return &((const struct gql_container *)parent)->row->kernel;
}

static struct gql_value gql_kernel_get_id(struct gql_get *get, const void *parent)
{
    return gql_text(uuid_format(&gql_kernel_of(parent)->id, get->scratch));
}

static struct gql_value gql_kernel_get_session_id(struct gql_get *get, const void *parent)
{
    const struct gql_container *container = parent;

    return gql_text(uuid_format(&container->row->session_id, get->scratch));
}

static struct gql_value gql_kernel_get_index(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_int(gql_kernel_of(parent)->index);
}

static struct gql_value gql_kernel_get_rank(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_int(gql_kernel_of(parent)->rank);
}

static struct gql_value gql_kernel_get_role(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(gql_kernel_of(parent)->role);
}

static struct gql_value gql_kernel_get_hostname(struct gql_get *get, const void *parent)
{
    _Static_assert(KERNEL_HOSTNAME_MAX <= sizeof(get->scratch), "room for a host name");
    return gql_text(kernel_hostname(gql_kernel_of(parent), get->scratch));
}

/* Names and images of the session's roles, parsed once for its kernels, which come together: all of
 * a role may be large.
 */
static void gql_kernel_find_roles(struct gql_context *context, const char *text,
                                  struct arena *arena)
{
    AQ_CLEANUP(arena_donep) struct arena whole = ARENA_INIT;
    struct cluster_role *roles = NULL, *kept;
    size_t count = 0;

    if (context->roles.text == text)
        return;
    if (cluster_roles_parse(text, &whole, &roles, &count, NULL) < 0)
        count = 0;
    kept = arena_array(arena, count + 1, sizeof(*kept));
    for (size_t i = 0; i < count; i++)
        kept[i] = (struct cluster_role){ .name = arena_strdup(arena, roles[i].name),
                                         .image = arena_strdup(arena, roles[i].image) };
    context->roles.text = text;
    context->roles.items = kept;
    context->roles.count = count;
}

/* That of its role; NULL = not known. */
static const char *gql_kernel_image(struct gql_context *context,
                                    const struct gql_container *container, struct arena *arena)
{
    const struct session *session = container->session ? &container->session->session : NULL;
    struct session_spec spec = { .image = session ? session->image : NULL };

    if (session && session->spec && session->spec->roles) {
        gql_kernel_find_roles(context, session->spec->roles, arena);
        cluster_role_apply(context->roles.items, context->roles.count,
                           gql_kernel_of(container)->role, &spec);
    }
    return spec.image;
}

static struct gql_value gql_kernel_get_image(struct gql_get *get, const void *parent)
{
    return gql_text(gql_kernel_image(get->context, parent, get->arena));
}

/* The images are looked up once a request: of each list of kernels there would be as many. */
static int gql_kernel_images(struct gql_call *call)
{
    struct gql_context *context = call->context;

    if (!context->images) {
        struct gql_images *images = arena_alloc(call->arena, sizeof(*images));

        gql_images_load(call, images);
        context->images = images;
    }
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const char *name = gql_kernel_image(context, call->parents[i], call->arena);

        call->results[i] = gql_object(gql_images_find(call, context->images, name));
    }
    return GQL_DONE;
}

static struct gql_value gql_kernel_get_status(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;

    return gql_text(kernel_view_status(context->who, gql_kernel_of(parent)->status));
}

static struct gql_value gql_kernel_get_reason(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(((const struct gql_container *)parent)->row->reason);
}

static struct gql_value gql_kernel_get_agent(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(gql_kernel_of(parent)->agent_id);
}

/* A container is called by its kernel's id, in the OCI runtime and to its
 * monitor; a process of the node has none, nor has what was never started.
 */
static struct gql_value gql_kernel_get_container_id(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct gql_container *container = parent;
    const struct kernel *kernel = gql_kernel_of(parent);
    const char *image = container->session ? container->session->session.image : NULL, *notes;
    const char *runtime;

    if (!image || strcmp(image, IMAGE_OF_PROCESSES) == 0 || !kernel_granted(kernel)
        || !kernel->agent_id)
        return gql_null();
    runtime = core_agent_get_runtime(core, kernel->agent_id, &notes);
    return runtime && strcmp(runtime, "process") == 0 ? gql_null() : gql_kernel_get_id(get, parent);
}

static struct gql_value gql_kernel_get_exit_code(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_kernel_of(parent)->has_exit ? gql_int(gql_kernel_of(parent)->exit_code) : gql_null();
}

static struct gql_value gql_kernel_get_slots(struct gql_get *get, const void *parent)
{
    return gql_slots(get, &gql_kernel_of(parent)->requested);
}

static struct gql_value gql_kernel_get_service_ports(struct gql_get *get, const void *parent)
{
    const char *ports = gql_kernel_of(parent)->service_ports;

    (void)get;
    return gql_text(ports ? ports : "[]");
}

/* The session opens the same in all of its kernels. */
static struct gql_value gql_kernel_get_opened(struct gql_get *get, const void *parent)
{
    const struct session_row *row = ((const struct gql_container *)parent)->session;
    const struct int_list *ports = row && row->session.spec ? &row->session.spec->ports : NULL;
    struct gql_value *items;

    if (!ports)
        return gql_list(NULL, 0);
    items = arena_array(get->arena, ports->count + 1, sizeof(*items));
    for (size_t i = 0; i < ports->count; i++)
        items[i] = gql_int(ports->items[i]);
    return gql_list(items, (uint32_t)ports->count);
}

static struct gql_value gql_kernel_time_value(struct gql_get *get, int64_t usec)
{
    _Static_assert(CLOCK_ISO_MAX <= sizeof(get->scratch), "room for a time");
    return usec ? gql_text(clock_format_iso(usec, get->scratch)) : gql_null();
}

static struct gql_value gql_kernel_get_changed(struct gql_get *get, const void *parent)
{
    return gql_kernel_time_value(get, gql_kernel_of(parent)->status_changed_usec);
}

static struct gql_value gql_kernel_get_created(struct gql_get *get, const void *parent)
{
    const struct gql_container *container = parent;

    return gql_kernel_time_value(get,
                                 container->session ? container->session->session.created_usec : 0);
}

static struct gql_value gql_kernel_get_started(struct gql_get *get, const void *parent)
{
    const struct gql_container *container = parent;

    return gql_kernel_time_value(get,
                                 container->session ? container->session->session.starts_usec : 0);
}

static struct gql_value gql_kernel_get_terminated(struct gql_get *get, const void *parent)
{
    return gql_kernel_time_value(get, ((const struct gql_container *)parent)->row->terminated_usec);
}

static struct gql_value gql_kernel_get_last_stat(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(((const struct gql_container *)parent)->row->last_stat);
}

/* Of one that has ended, what it was at the end. */
static struct gql_value gql_kernel_get_live_stat(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct measured *m = core_kernel_measured(core, &gql_kernel_of(parent)->id);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (!m)
        return gql_kernel_get_last_stat(get, parent);
    measured_write(m, &w);
    return gql_copy(get, text.data);
}

static const struct gql_entry kernel_entries[] = {
    { SCHEMA_FIELD_Queries_compute_container, GQL_CALL_COST(gql_kernel_get_one, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_compute_container_list,
      GQL_CALL_COST(gql_kernel_list_of_session, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_ComputeContainerList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_ComputeContainerList_total_count, GQL_PAGE_TOTAL },
    { FIELD(id), GQL_GET(gql_kernel_get_id) },
    { FIELD(kernel_id), GQL_GET(gql_kernel_get_id) },
    { FIELD(idx), GQL_GET(gql_kernel_get_index) },
    { FIELD(role), GQL_GET(gql_kernel_get_role) },
    { FIELD(hostname), GQL_GET(gql_kernel_get_hostname) },
    { FIELD(cluster_role), GQL_GET(gql_kernel_get_role) },
    { FIELD(cluster_idx), GQL_GET(gql_kernel_get_index) },
    { FIELD(local_rank), GQL_GET(gql_kernel_get_rank) },
    { FIELD(cluster_hostname), GQL_GET(gql_kernel_get_hostname) },
    { FIELD(session_id), GQL_GET(gql_kernel_get_session_id) },
    { FIELD(image), GQL_GET(gql_kernel_get_image) },
    { FIELD(image_object),
      GQL_CALL_COST(gql_kernel_images, GQL_COST_WALK / 4 / GQL_ROWS_WHOLE, 1) },
    { FIELD(architecture), GQL_FIXED_TEXT("x86_64") },
    { FIELD(registry), GQL_ALWAYS_NULL },
    { FIELD(status), GQL_GET(gql_kernel_get_status) },
    { FIELD(status_changed), GQL_GET(gql_kernel_get_changed) },
    { FIELD(status_info), GQL_GET(gql_kernel_get_reason) },
    { FIELD(status_data), GQL_ALWAYS_NULL },
    { FIELD(status_history), GQL_ALWAYS_NULL },
    { FIELD(created_at), GQL_GET(gql_kernel_get_created) },
    { FIELD(terminated_at), GQL_GET(gql_kernel_get_terminated) },
    { FIELD(starts_at), GQL_GET(gql_kernel_get_started) },
    { FIELD(occupied_slots), GQL_GET_COST(gql_kernel_get_slots, GQL_COST_MADE) },
    { FIELD(agent), GQL_GET(gql_kernel_get_agent) },
    { FIELD(container_id), GQL_GET(gql_kernel_get_container_id) },
    { FIELD(resource_opts), GQL_FIXED_TEXT("{}") },
    { FIELD(preopen_ports), GQL_GET_COST(gql_kernel_get_opened, GQL_COST_MADE) },
    { FIELD(service_ports), GQL_GET_COST(gql_kernel_get_service_ports, GQL_COST_MADE) },
    { FIELD(live_stat), GQL_GET_COST(gql_kernel_get_live_stat, GQL_COST_TEXT) },
    { FIELD(last_stat), GQL_GET_COST(gql_kernel_get_last_stat, GQL_COST_TEXT) },
    { FIELD(exit_code), GQL_GET(gql_kernel_get_exit_code) },
    { NODE(row_id), GQL_GET(gql_kernel_get_id) },
    { NODE(image), GQL_CALL_COST(gql_kernel_images, GQL_COST_WALK / 4 / GQL_ROWS_WHOLE, 1) },
    { NODE(image_reference), GQL_GET(gql_kernel_get_image) },
    { NODE(agent_id), GQL_GET(gql_kernel_get_agent) },
};
GQL_ENTRIES_END(kernel);
