/* SPDX-License-Identifier: Apache-2.0 */
/* Level by level: call resolvers for batches, make batches of what they give. */
#include "graphql/request.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Objects of one type that a field gave, while they are gathered. */
struct gather {
    struct gql_request *request;
    struct batch *batch; /* the parents */
    struct plan_field *field;
    struct batch *children[4]; /* the last ones used */
    unsigned next_child;
};

static void execute_enqueue(struct gql_request *r, struct batch *batch)
{
    if (r->queue_last)
        r->queue_last->next = batch;
    else
        r->queue = batch;
    r->queue_last = batch;
}

static struct batch *execute_find_child(struct gather *g, const struct gql_type *type)
{
    struct batch *child;

    for (size_t i = 0; i < AQ_COUNT(g->children); i++)
        if (g->children[i] && g->children[i]->plan->type == type)
            return g->children[i];
    child = request_alloc(g->request, 1, sizeof(*child));
    child->plan = plan_find(g->request, g->field, type);
    g->children[g->next_child++ % AQ_COUNT(g->children)] = child;
    execute_enqueue(g->request, child);
    return child;
}

/* Room for 'more' further objects, within the request's memory. */
static bool execute_grow_batch(struct gql_request *r, struct batch *batch, uint32_t more)
{
    size_t need = (size_t)batch->count + more, cap;
    const void **grown;

    if (need <= batch->cap)
        return true;
    cap = AQ_MAX(need, (size_t)batch->cap * 2);
    if (cap > UINT32_MAX || !arena_has_room(&r->arena, cap, sizeof(*grown)))
        return !(r->arena.had_no_room = true);
    grown = request_alloc(r, cap, sizeof(*grown));
    if (batch->count)
        memcpy(grown, batch->objects, batch->count * sizeof(*grown));
    batch->objects = grown;
    batch->cap = (uint32_t)cap;
    return true;
}

static struct gql_value execute_gather_object(struct gather *g, const struct gql_type *type,
                                              const void *object)
{
    struct batch *child = execute_find_child(g, type);

    if (!execute_grow_batch(g->request, child, 1))
        return gql_null();
    ((const void **)child->objects)[child->count] = object;
    return (struct gql_value){ .kind = GQL_OBJECT, .count = child->count++, .object = child };
}

/* A list of rows: their array is the batch's when it can be. */
static struct gql_value execute_gather_rows(struct gather *g, struct gql_value value)
{
    struct gql_request *r = g->request;
    struct batch *child = execute_find_child(g, g->field->def->type.type);
    struct span *span = request_alloc(r, 1, sizeof(*span));
    uint32_t live = 0;

    request_count_work(r, value.count);
    for (uint32_t i = 0; i < value.count; i++)
        live += value.rows[i] != NULL;
    *span = (struct span){ child, value.rows, child->count };
    if (child->count == 0 && live == value.count) {
        child->objects = value.rows;
        child->count = value.count;
    } else if (execute_grow_batch(r, child, live)) {
        for (uint32_t i = 0; i < value.count; i++)
            if (value.rows[i])
                ((const void **)child->objects)[child->count++] = value.rows[i];
    }
    return (struct gql_value){ .kind = GQL_SPAN, .count = value.count, .object = span };
}

/* The object type of a value where the schema says 'declared', or NULL with *ret_error. */
static const struct gql_type *execute_runtime_type(const struct gather *g, struct gql_value value,
                                                   struct gql_value *ret_error)
{
    const struct gql_schema *schema = g->request->engine->conf.schema;
    const struct gql_field_def *def = g->field->def;
    const struct gql_type *declared = def->type.type, *type;

    if (declared->kind == GQL_TYPE_OBJECT && value.count == 0)
        return declared;
    if (value.count == 0 || value.count > schema->type_count) {
        *ret_error = gql_error(
            &g->request->arena,
            "Abstract type \"%s\" must resolve to an Object type at runtime for field \"%s.%s\". "
            "Either the \"%s\" type should provide a \"resolveType\" function or each possible "
            "type should provide an \"isTypeOf\" function.",
            declared->name, g->batch->plan->type->name, def->name, declared->name);
        return NULL;
    }
    type = schema->types[value.count - 1];
    if (type->kind == GQL_TYPE_OBJECT && gql_type_is_subtype(type, declared))
        return type;
    *ret_error = gql_error(&g->request->arena,
                           "Runtime Object type \"%s\" is not a possible type for \"%s\".",
                           type->name, declared->name);
    return NULL;
}

static struct gql_value execute_gather_value(struct gather *g, struct gql_value value,
                                             struct gql_ref type);

static struct gql_value execute_gather_list(struct gather *g, struct gql_value value,
                                            struct gql_ref item)
{
    struct gql_value *items = request_alloc(g->request, value.count, sizeof(*items));

    for (uint32_t i = 0; i < value.count && !request_is_over(g->request); i++)
        items[i] = execute_gather_value(g, value.items[i], item);
    return gql_list(items, value.count);
}

/* The same value with its objects replaced by their places in batches. What
 * does not fit the type becomes an error.
 */
static struct gql_value execute_gather_value(struct gather *g, struct gql_value value,
                                             struct gql_ref type)
{
    const struct gql_field_def *def = g->field->def;
    struct gql_value error;
    const struct gql_type *object_type;

    type = gql_ref_nullable(type);
    if (value.kind == GQL_NULL || value.kind == GQL_ERROR)
        return value;
    if (gql_ref_is_list(type)) {
        struct gql_ref item = gql_ref_inner(type);

        if (value.kind == GQL_LIST)
            return execute_gather_list(g, value, item);
        if (value.kind == GQL_ROWS && !gql_ref_is_list(gql_ref_nullable(item))
            && item.type->kind == GQL_TYPE_OBJECT)
            return execute_gather_rows(g, value);
        return gql_error(&g->request->arena,
                         "Expected Iterable, but did not find one for field \"%s.%s\".",
                         g->batch->plan->type->name, def->name);
    }
    if (value.kind != GQL_OBJECT)
        return gql_error(&g->request->arena, "Expected an object for field \"%s.%s\".",
                         g->batch->plan->type->name, def->name);
    object_type = execute_runtime_type(g, value, &error);
    return object_type ? execute_gather_object(g, object_type, value.object) : error;
}

/* What a finished column of objects leads to. */
static void execute_expand(struct gql_request *r, struct batch *batch, uint32_t index)
{
    struct plan_field *field = &batch->plan->fields[index];
    struct gather g = { .request = r, .batch = batch, .field = field };
    struct gql_value *column = batch->columns[index];

    if (!type_is_composite(field->def->type.type))
        return;
    for (uint32_t i = 0; i < batch->count && !request_is_over(r); i++)
        column[i] = execute_gather_value(&g, column[i], field->def->type);
}

static void execute_start_call(struct gql_request *r, struct batch *batch, uint32_t index)
{
    struct plan_field *field = &batch->plan->fields[index];
    struct call *call = request_alloc(r, 1, sizeof(*call));

    call->call = (struct gql_call){
        .context = r->context,
        .field = field->def,
        .parents = batch->objects,
        .count = batch->count,
        .args = field->args,
        .results = batch->columns[index],
        .arena = &r->arena,
    };
    call->request = r;
    call->batch = batch;
    call->field = index;
    r->pending++;
    request_count_work(r, field->resolver->cost);
    if (field->resolver->call(&call->call) == GQL_DONE)
        call->done = true;
    call->returned = true;
    if (call->done) {
        r->pending--;
        execute_expand(r, batch, index);
    }
}

/* A member of a struct as the object of a field. */
static struct gql_value execute_read_object(struct gql_request *r, const struct plan_field *field,
                                            const void *object)
{
    const void *member = object ? (const char *)object + field->resolver->offset : NULL;

    switch (field->resolver->how) {
    case GQL_HOW_SELF:
        return gql_object(member);
    case GQL_HOW_OBJECT:
        return gql_object(*(const void *const *)member);
    case GQL_HOW_VALUE:
        return *(const struct gql_value *)member;
    case GQL_HOW_CONST:
        return field->resolver->value;
    case GQL_HOW_GET:
        r->get.field = field->def;
        r->get.args = field->args;
        r->get.offset = field->resolver->offset;
        return field->resolver->get(&r->get, object);
    default:
        return gql_error(&r->arena, "Expected an object for field \"%s\".", field->def->name);
    }
}

static void execute_resolve_field(struct gql_request *r, struct batch *batch, uint32_t index)
{
    struct plan_field *field = &batch->plan->fields[index];
    struct gql_value *column;

    if (!field->has_column || field->refusal.message)
        return;
    request_count_work(r, batch->count);
    if (!arena_has_room(&r->arena, batch->count, sizeof(*column)))
        return;
    column = batch->columns[index] = request_alloc(r, batch->count, sizeof(*column));
    if (field->resolver->how == GQL_HOW_CALL) {
        execute_start_call(r, batch, index);
        return;
    }
    for (uint32_t i = 0; i < batch->count && !request_is_over(r); i++)
        column[i] = execute_read_object(r, field, batch->objects[i]);
    execute_expand(r, batch, index);
}

static bool execute_open_batch(struct gql_request *r, struct batch *batch)
{
    batch->columns = request_alloc(r, batch->plan->count, sizeof(*batch->columns));
    return !batch->plan->refusal.message;
}

/* False if the turn ended before all fields were begun. */
static bool execute_resolve_batch(struct gql_request *r, struct batch *batch)
{
    if (!batch->columns && !execute_open_batch(r, batch))
        return true;
    while (batch->resolved < batch->plan->count && !request_is_over(r)) {
        if (request_turn_is_over(r))
            return false;
        execute_resolve_field(r, batch, batch->resolved++);
    }
    return true;
}

/* All that can be done until a call answers. */
static void execute_drain(struct gql_request *r)
{
    while (!request_is_over(r) && (r->queue || r->finished) && !request_turn_is_over(r)) {
        struct call *call = r->finished;
        struct batch *batch = r->queue;

        if (call) {
            r->finished = call->next;
            execute_expand(r, call->batch, call->field);
            continue;
        }
        if (!execute_resolve_batch(r, batch))
            break;
        r->queue = batch->next;
        if (!r->queue)
            r->queue_last = NULL;
    }
}

void request_free(struct gql_request *r)
{
    struct gql_engine *engine = r->engine;

    document_unref(r->doc);
    arena_clear(&r->arena, 256 << 10);
    arena_done(&engine->spare);
    engine->spare = r->arena;
    free(r);
}

/* In place of what was written. */
static void execute_write_too_large(struct gql_request *r)
{
    strbuf_truncate(r->out, r->start);
    r->writer = jsonw_make(r->out);
    r->errors = (struct errors){ .arena = &r->arena };
    (void)errors_add(&r->errors, UINT32_MAX,
                     "The reply would have more than %zu bytes: ask for fewer rows or fields.",
                     r->engine->conf.limits.reply);
    jsonw_object_begin(&r->writer);
    jsonw_key(&r->writer, "data");
    jsonw_null(&r->writer);
    errors_write(&r->errors, r->doc->text, r->doc->len, &r->writer);
    jsonw_object_end(&r->writer);
}

/* False if the turn ended first. */
static bool execute_finish(struct gql_request *r)
{
    struct gql_result result = { .executed = true };

    if (!request_is_over(r) && !write_end(r))
        return false;
    if (request_is_over(r)) {
        result.code = -ENOMEM;
        strbuf_truncate(r->out, r->start);
    } else if (r->is_too_large) {
        execute_write_too_large(r);
    }
    result.errors = r->errors.count;
    r->done(r->data, &result);
    return true;
}

/* ---- turns ---- */

void request_count_work(struct gql_request *r, size_t values)
{
    uint32_t more = (uint32_t)AQ_MIN(values, (size_t)UINT32_MAX / 4);

    r->turn_work = (uint32_t)AQ_MIN((uint64_t)r->turn_work + more, UINT32_MAX);
    r->unchecked_work = (uint32_t)AQ_MIN((uint64_t)r->unchecked_work + more, UINT32_MAX);
}

bool request_turn_is_over(struct gql_request *r)
{
    uint32_t limit = r->engine->conf.limits.turn;

    if (!r->pause || !limit || r->operation->kind == AST_MUTATION)
        return false;
    /* nothing was begun after the turn's share: what is past it was one step */
    assert(r->turn_work < limit || r->turn_work - r->unchecked_work < limit || r->is_turn_over);
    r->unchecked_work = 0;
    r->is_turn_over = r->turn_work >= limit;
    return r->is_turn_over;
}

static void execute_pause(struct gql_request *r)
{
    r->is_paused = true;
    r->pause(r->context, r);
}

/* Mutations: the next field, once all of the one before is done and written. */
static bool execute_start_next_mutation(struct gql_request *r)
{
    if (r->operation->kind != AST_MUTATION || request_is_over(r) || r->data_is_null)
        return false;
    if (r->next_field > 0)
        write_top_field(r, r->next_field - 1);
    if (r->data_is_null || r->next_field == r->top->plan->count)
        return false;
    execute_resolve_field(r, r->top, r->next_field++);
    return true;
}

/* Go on as far as possible; the end frees the request. */
static void execute_pump(struct gql_request *r)
{
    if (r->pumping || r->is_paused)
        return;
    r->turn_work = r->unchecked_work = 0;
    r->is_turn_over = false;
    r->pumping = true;
    do
        execute_drain(r);
    while (r->pending == 0 && !r->finished && execute_start_next_mutation(r));
    r->pumping = false;
    if (!request_is_over(r) && (r->queue || r->finished)) {
        execute_pause(r);
    } else if (r->pending == 0) {
        if (execute_finish(r))
            request_free(r);
        else
            execute_pause(r);
    }
}

void gql_resume(struct gql_request *r)
{
    r->is_paused = false;
    execute_pump(r);
}

void gql_call_done(struct gql_call *pub)
{
    struct call *call = (struct call *)(void *)pub;
    struct gql_request *r = call->request;

    call->done = true;
    if (!call->returned)
        return; /* execute_start_call() sees it */
    r->pending--;
    call->next = r->finished;
    r->finished = call;
    execute_pump(r);
}

int gql_call_fail(struct gql_call *call, const char *fmt, ...)
{
    char text[512];
    struct gql_value error;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error = gql_error(call->arena, "%s", text);
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = error;
    return GQL_DONE;
}

static bool execute_selects(struct gql_request *r, const struct ast_set *set, const char *name)
{
    struct refusal refusal = { NULL, 0 };

    for (const struct ast_selection *s = set ? set->first : NULL; s; s = s->next) {
        const struct ast_fragment *fragment = NULL;

        if (!plan_includes(r, s->directives, &refusal))
            continue;
        if (s->kind == AST_FIELD && strcmp(s->name.symbol->text, name) == 0)
            return true;
        if (s->kind == AST_SPREAD)
            fragment = s->name.symbol->fragment;
        if (s->kind == AST_INLINE && execute_selects(r, s->set, name))
            return true;
        if (fragment && r->fragment_marks[fragment->index] != r->mark) {
            r->fragment_marks[fragment->index] = r->mark;
            if (execute_selects(r, fragment->definition->set, name))
                return true;
        }
    }
    return false;
}

bool gql_call_selects(const struct gql_call *pub, const char *name)
{
    const struct call *call = (const struct call *)(const void *)pub;
    struct gql_request *r = call->request;

    r->mark++;
    for (const struct plan_node *n = call->batch->plan->fields[call->field].nodes; n; n = n->next)
        if (execute_selects(r, n->field->set, name))
            return true;
    return false;
}

void request_run(struct gql_request *r)
{
    struct batch *top = request_alloc(r, 1, sizeof(*top));
    const struct gql_type *root = r->operation->operation.root;

    r->get.context = r->context;
    r->get.arena = &r->arena;
    r->top = top;
    top->objects = &r->root;
    top->count = 1;
    top->plan = root ? plan_new(r, root, NULL, r->operation->set) : NULL;
    if (top->plan && r->operation->kind == AST_MUTATION)
        (void)execute_open_batch(r, top);
    else if (top->plan)
        execute_enqueue(r, top);
    write_begin(r);
    execute_pump(r);
}
