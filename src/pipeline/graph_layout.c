/* SPDX-License-Identifier: Apache-2.0 */
/* graph_layout.c - grouping tasks into boxes, and placing the boxes */
#include "pipeline/graph_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define LAYOUT_ROUNDS_MAX 8 /* of both directions; a graph that needs more shares no boxes */
#define LAYOUT_NAME_MIN 2   /* characters that names of a shared box begin with alike */

struct layout_lists { /* places of tasks, for each task */
    size_t *counts, **items;
};

struct layout {
    const struct pipeline *p;
    struct arena *arena;
    struct layout_lists users; /* the tasks that need it */
    size_t *class_of;          /* of each task */
    size_t class_count;
};

static int layout_compare(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

/* Sorts, and drops what is there twice. */
static size_t layout_unique(size_t *items, size_t count)
{
    size_t kept = 0;

    qsort(items, count, sizeof(*items), layout_compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || items[kept - 1] != items[i])
            items[kept++] = items[i];
    return kept;
}

static void layout_find_users(struct layout *in)
{
    const struct pipeline *p = in->p;

    in->users.counts = arena_array(in->arena, p->task_count, sizeof(*in->users.counts));
    in->users.items = arena_array(in->arena, p->task_count, sizeof(*in->users.items));
    for (size_t i = 0; i < p->task_count; i++)
        for (size_t k = 0; k < p->tasks[i].need_count; k++)
            in->users.counts[p->tasks[i].needs[k]]++;
    for (size_t i = 0; i < p->task_count; i++) {
        in->users.items[i] = arena_array(in->arena, in->users.counts[i] + 1, sizeof(size_t));
        in->users.counts[i] = 0;
    }
    for (size_t i = 0; i < p->task_count; i++)
        for (size_t k = 0; k < p->tasks[i].need_count; k++) {
            size_t needed = p->tasks[i].needs[k];

            in->users.items[needed][in->users.counts[needed]++] = i;
        }
}

/* ---- which tasks share a box ---- */

/* Numbers classes anew: tasks stay together if their class and the classes of the tasks on one
 * side are the same. Each task is visited after its neighbours of that side, so that a difference
 * passes through the whole graph in one round.
 */
static void layout_refine(struct layout *in, bool by_users)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    size_t count = in->p->task_count;
    struct map classes = MAP_INIT;
    uintptr_t next = 0;

    for (size_t step = 0; step < count; step++) {
        size_t i = by_users ? count - 1 - step : step, side_count;
        const struct pipeline_task *task = &in->p->tasks[i];
        const size_t *side = by_users ? in->users.items[i] : task->needs;
        size_t *key;
        uintptr_t class_number;

        side_count = by_users ? in->users.counts[i] : task->need_count;
        arena_clear(&arena, SIZE_MAX);
        key = arena_array(&arena, side_count + 1, sizeof(*key));
        for (size_t k = 0; k < side_count; k++)
            key[k + 1] = in->class_of[side[k]];
        side_count = layout_unique(key + 1, side_count);
        key[0] = in->class_of[i];
        class_number = (uintptr_t)map_get(&classes, key, (side_count + 1) * sizeof(*key));
        if (!class_number) {
            class_number = ++next;
            (void)map_set(&classes, key, (side_count + 1) * sizeof(*key), (void *)class_number);
        }
        /* Numbers of this round do not meet those of the last one. */
        in->class_of[i] = count + class_number;
    }
    for (size_t i = 0; i < count; i++)
        in->class_of[i] -= count + 1;
    in->class_count = (size_t)next;
    map_done(&classes);
}

/* Begins with columns, and divides them until neighbours agree. False = each task is one. */
static bool layout_classify(struct layout *in)
{
    const struct pipeline *p = in->p;
    size_t before = 0;

    in->class_of = arena_array(in->arena, p->task_count, sizeof(*in->class_of));
    for (size_t i = 0; i < p->task_count; i++)
        in->class_of[i] = p->tasks[i].layer;
    for (int round = 0; p->task_count > GRAPH_TASKS_PLAIN && round < LAYOUT_ROUNDS_MAX; round++) {
        layout_refine(in, false);
        layout_refine(in, true);
        if (in->class_count == before)
            return true;
        before = in->class_count;
    }
    return false;
}

/* "align-*" of "align-1" and "align-2", "*" if they begin differently. */
static const char *layout_name(const struct layout *in, const size_t *tasks, size_t count)
{
    const char *first = in->p->tasks[tasks[0]].name;
    size_t len = strlen(first);
    char *name;

    if (count == 1)
        return arena_strdup(in->arena, first);
    for (size_t i = 1; i < count; i++) {
        const char *other = in->p->tasks[tasks[i]].name;
        size_t same = 0;

        while (same < len && first[same] == other[same])
            same++;
        len = same;
    }
    if (len < LAYOUT_NAME_MIN)
        len = 0;
    name = arena_alloc(in->arena, len + 2);
    memcpy(name, first, len);
    memcpy(name + len, "*", 2);
    return name;
}

static struct graph_box *layout_add_box(const struct layout *in, struct graph_layout *ret,
                                        const size_t *tasks, size_t count)
{
    struct graph_box *box = &ret->boxes[ret->box_count++];

    *box = (struct graph_box){
        .name = layout_name(in, tasks, count),
        .tasks = tasks,
        .task_count = count,
        .column = in->p->tasks[tasks[0]].layer,
    };
    for (size_t i = 0; i < count; i++)
        box->node_count += in->p->tasks[tasks[i]].node_count;
    ret->columns = AQ_MAX(ret->columns, box->column + 1);
    return box;
}

/* In the order of their first tasks; 'box_of' gets the box of each task. */
static void layout_make_boxes(struct layout *in, struct graph_layout *ret, size_t *box_of)
{
    const struct pipeline *p = in->p;
    bool may_share = layout_classify(in);
    size_t **members = arena_array(in->arena, in->class_count + 1, sizeof(*members));
    size_t *counts = arena_array(in->arena, in->class_count + 1, sizeof(*counts));

    ret->boxes = arena_array(in->arena, p->task_count + 1, sizeof(*ret->boxes));
    for (size_t i = 0; may_share && i < p->task_count; i++)
        counts[in->class_of[i]]++;
    for (size_t i = 0; i < p->task_count; i++) {
        size_t class_number = may_share ? in->class_of[i] : 0;
        bool is_shared = may_share && counts[class_number] > GRAPH_SHARE_MIN;
        size_t count = 0;
        size_t *tasks;

        if (is_shared && members[class_number]) {
            box_of[i] = *members[class_number];
            continue;
        }
        tasks = arena_array(in->arena, is_shared ? counts[class_number] : 1, sizeof(*tasks));
        for (size_t k = i; k < (is_shared ? p->task_count : i + 1); k++)
            if (k == i || in->class_of[k] == class_number)
                tasks[count++] = k;
        box_of[i] = ret->box_count;
        members[class_number] = &box_of[i];
        (void)layout_add_box(in, ret, tasks, count);
    }
}

static void layout_connect(const struct layout *in, struct graph_layout *ret, const size_t *box_of)
{
    for (size_t b = 0; b < ret->box_count; b++) {
        struct graph_box *box = &ret->boxes[b];
        size_t count = 0;
        size_t *needs;

        for (size_t i = 0; i < box->task_count; i++)
            count += in->p->tasks[box->tasks[i]].need_count;
        needs = arena_array(in->arena, count + 1, sizeof(*needs));
        count = 0;
        for (size_t i = 0; i < box->task_count; i++) {
            const struct pipeline_task *task = &in->p->tasks[box->tasks[i]];

            for (size_t k = 0; k < task->need_count; k++)
                needs[count++] = box_of[task->needs[k]];
        }
        box->need_count = layout_unique(needs, count);
        box->needs = needs;
    }
}

/* ---- rows ---- */

struct layout_wish {
    double row; /* the mean of those that it needs */
    size_t box;
};

static int layout_compare_wishes(const void *a, const void *b)
{
    const struct layout_wish *x = a, *y = b;

    if (x->row < y->row || x->row > y->row)
        return x->row < y->row ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

/* Boxes of a column are in the order of what they need, so that fewer lines cross. */
static void layout_place(struct graph_layout *ret)
{
    struct layout_wish *wishes = arena_array(&ret->arena, ret->box_count + 1, sizeof(*wishes));

    for (size_t column = 0; column < ret->columns; column++) {
        size_t count = 0;

        for (size_t b = 0; b < ret->box_count; b++) {
            const struct graph_box *box = &ret->boxes[b];
            double sum = 0;

            if (box->column != column)
                continue;
            for (size_t k = 0; k < box->need_count; k++)
                sum += (double)ret->boxes[box->needs[k]].row;
            wishes[count++] = (struct layout_wish){
                .row = box->need_count ? sum / (double)box->need_count : 0, .box = b
            };
        }
        qsort(wishes, count, sizeof(*wishes), layout_compare_wishes);
        for (size_t row = 0; row < count; row++)
            ret->boxes[wishes[row].box].row = row;
        ret->rows = AQ_MAX(ret->rows, count);
    }
}

/* ---- all ---- */

void graph_layout_init(const struct pipeline *p, struct graph_layout *ret)
{
    struct layout in = { .p = p, .arena = &ret->arena };
    size_t *box_of;

    *ret = (struct graph_layout){ .arena = ARENA_INIT };
    box_of = arena_array(&ret->arena, p->task_count + 1, sizeof(*box_of));
    layout_find_users(&in);
    layout_make_boxes(&in, ret, box_of);
    layout_connect(&in, ret, box_of);
    layout_place(ret);
}

void graph_layout_done(struct graph_layout *layout)
{
    arena_done(&layout->arena);
}

/* Nodes of a task are next to each other; so are those of tasks that follow one another. */
static void layout_write_nodes(const struct graph_box *box, const struct pipeline *p,
                               struct jsonw *w)
{
    jsonw_key(w, "nodes");
    jsonw_array_begin(w);
    for (size_t i = 0; i < box->task_count;) {
        const struct pipeline_task *task = &p->tasks[box->tasks[i]];
        size_t end = task->node;

        for (; i < box->task_count && p->tasks[box->tasks[i]].node == end; i++)
            end += p->tasks[box->tasks[i]].node_count;
        jsonw_array_begin(w);
        jsonw_int(w, (int64_t)task->node);
        jsonw_int(w, (int64_t)(end - task->node));
        jsonw_array_end(w);
    }
    jsonw_array_end(w);
}

void graph_layout_write(const struct graph_layout *layout, const struct pipeline *p,
                        struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_int(w, "columns", (int64_t)layout->columns);
    jsonw_member_int(w, "rows", (int64_t)layout->rows);
    jsonw_key(w, "boxes");
    jsonw_array_begin(w);
    for (size_t b = 0; b < layout->box_count; b++) {
        const struct graph_box *box = &layout->boxes[b];

        jsonw_object_begin(w);
        jsonw_member_str(w, "name", box->name);
        jsonw_member_int(w, "column", (int64_t)box->column);
        jsonw_member_int(w, "row", (int64_t)box->row);
        jsonw_member_int(w, "tasks", (int64_t)box->task_count);
        layout_write_nodes(box, p, w);
        jsonw_key(w, "needs");
        jsonw_array_begin(w);
        for (size_t k = 0; k < box->need_count; k++)
            jsonw_int(w, (int64_t)box->needs[k]);
        jsonw_array_end(w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}
