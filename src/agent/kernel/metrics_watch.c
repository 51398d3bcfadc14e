/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_watch.c - see metrics_watch.h */
#include "agent/kernel/metrics_watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/kernel.h"
#include "agent/kernel/kernel_network.h"
#include "agent/probe/page_read.h"
#include "agent/probe/turns.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "http/defer.h"

#define PAGES_AT_ONCE 8
#define INTERVAL_MSEC 3000
#define FAILED_MSEC 10000

struct metrics_watch {
    struct agent_daemon *agent;
    struct turn_queue turns;
    struct map pages;    /* watched_page_key() -> struct watched_page */
    uint64_t generation; /* of the newest metrics.watch */
};

struct watched_page {
    struct metrics_watch *of;
    struct uuid kernel_id;
    struct arena arena; /* of what follows */
    struct page_target target;
    struct str_list names; /* of target.selectors */
    struct turn turn;
    struct defer *timer;       /* until the next reading; NULL then */
    struct page_read *reading; /* NULL = not under way */
    uint64_t generation;
};

/* ---- readings ---- */

static void watched_page_on_due(void *data)
{
    struct watched_page *page = data;

    page->timer = NULL;
    turn_wait(&page->turn);
}

static void watched_page_again(struct watched_page *page, unsigned msec)
{
    page->timer = defer_call(page->of->agent->loop, msec, watched_page_on_due, page);
}

/* What is wrong with a sum, for people; NULL = nothing. */
static const char *watched_page_judge(const struct exposition_sum *sum)
{
    return sum->broken             ? "has a line that cannot be read"
           : !sum->series          ? "is not on the page, or is NaN"
           : !isfinite(sum->value) ? "is infinite"
                                   : NULL;
}

static void watched_page_report(const struct watched_page *page, const struct exposition_sum *sums,
                                const char *text)
{
    struct msg_value values[EXPOSITION_SELECTORS_MAX];
    AQ_CLEANUP(aq_freep) char *words = NULL;
    struct message msg = { .type = MSG_METRICS_VALUES,
                           .metrics_values = { .kernel_id = page->kernel_id,
                                               .port = page->target.port,
                                               .path = page->target.path,
                                               .names = page->names,
                                               .values = values,
                                               .text = text } };

    for (size_t i = 0; sums && i < page->names.count; i++) {
        const char *wrong = watched_page_judge(&sums[i]);

        if (!wrong)
            values[msg.metrics_values.value_count++] = (struct msg_value){ .metric = (int64_t)i,
                                                                           .value = sums[i].value,
                                                                           .capacity = -1 };
        else if (!words)
            words = aq_format("GET %s on port %u: metric '%s' %s", page->target.path,
                              (unsigned)page->target.port, page->names.items[i], wrong);
    }
    if (words)
        msg.metrics_values.text = words;
    AQ_FAULT("agent.metrics.read");
    agent_send(page->of->agent, &msg);
}

static void watched_page_on_read(void *data, const struct exposition_sum *sums, const char *text)
{
    struct watched_page *page = data;

    page->reading = NULL;
    turn_over(&page->turn);
    watched_page_report(page, sums, text);
    watched_page_again(page, sums ? INTERVAL_MSEC : FAILED_MSEC);
}

static void watched_page_begin(struct turn *turn)
{
    struct watched_page *page = AQ_CONTAINER_OF(turn, struct watched_page, turn);
    struct agent_daemon *agent = page->of->agent;
    const struct local_kernel *k = kernel_find(agent, &page->kernel_id);
    AQ_CLEANUP(aq_closep) int ns = -1;
    struct aq_error err = { 0 };
    bool is_running = k && kernel_open_network(k, &ns, &err) == 0;

    if (is_running
        && page_read_start(agent->loop, ns, &page->target, watched_page_on_read, page,
                           &page->reading, &err)
               == 0)
        return;
    turn_over(turn);
    if (is_running)
        watched_page_report(page, NULL, err.text);
    watched_page_again(page, INTERVAL_MSEC);
}

/* ---- pages ---- */

static char *watched_page_key(const struct msg_metrics_page *from)
{
    char id[UUID_TEXT_MAX];

    return aq_format("%s:%lld%s", uuid_format(&from->kernel_id, id), (long long)from->port,
                     from->path);
}

static void watched_page_free(struct watched_page *page)
{
    defer_cancel(page->timer);
    page_read_cancel(page->reading);
    turn_over(&page->turn);
    arena_done(&page->arena);
    free(page);
}

static bool watched_page_has_names(const struct watched_page *page, const struct str_list *names)
{
    bool is_same = page->names.count == names->count;

    for (size_t i = 0; is_same && i < names->count; i++)
        is_same = strcmp(page->names.items[i], names->items[i]) == 0;
    return is_same;
}

static struct watched_page *watched_page_new(struct metrics_watch *watch,
                                             const struct msg_metrics_page *from)
{
    struct watched_page *page = aq_alloc(sizeof(*page));
    size_t most = AQ_MIN(from->names.count, (size_t)EXPOSITION_SELECTORS_MAX);
    struct exposition_selector *selectors;

    *page = (struct watched_page){ .of = watch, .kernel_id = from->kernel_id, .arena = ARENA_INIT };
    selectors = arena_array(&page->arena, most + 1, sizeof(*selectors));
    page->names.items = arena_array(&page->arena, most + 1, sizeof(char *));
    for (size_t i = 0; i < most; i++) {
        struct aq_error err = { 0 };

        if (exposition_selector_parse(from->names.items[i], &page->arena,
                                      &selectors[page->names.count], &err)
            < 0)
            log_warning("ignoring a metric that the manager asks for: %s", err.text);
        else
            page->names.items[page->names.count++] = arena_strdup(&page->arena,
                                                                  from->names.items[i]);
    }
    page->target = (struct page_target){ .port = (uint16_t)from->port,
                                         .path = arena_strdup(&page->arena, from->path),
                                         .selectors = selectors,
                                         .count = page->names.count };
    turn_init(&page->turn, &watch->turns, watched_page_begin);
    watched_page_again(page, 0);
    return page;
}

static void metrics_watch_take(struct metrics_watch *watch, const struct msg_metrics_page *from)
{
    AQ_CLEANUP(aq_freep) char *key = watched_page_key(from);
    struct watched_page *page = map_gets(&watch->pages, key);

    if (from->port > UINT16_MAX || from->path[0] != '/')
        return;
    if (page && !watched_page_has_names(page, &from->names)) {
        watched_page_free(map_removes(&watch->pages, key));
        page = NULL;
    }
    if (!page) {
        page = watched_page_new(watch, from);
        (void)map_sets(&watch->pages, key, page);
    }
    page->generation = watch->generation;
}

void metrics_watch_set(struct metrics_watch *watch, const struct msg_metrics_watch *msg)
{
    watch->generation++;
    for (size_t i = 0; i < msg->page_count; i++)
        metrics_watch_take(watch, &msg->pages[i]);
    for (size_t i = watch->pages.count; i-- > 0;) {
        const struct map_entry *entry = &watch->pages.entries[i];
        struct watched_page *page = entry->value;

        if (page->generation != watch->generation)
            watched_page_free(map_remove(&watch->pages, entry->key, entry->key_len));
    }
    AQ_FAULT("agent.metrics.watched");
}

/* ---- begin and end ---- */

struct metrics_watch *metrics_watch_new(struct agent_daemon *agent)
{
    struct metrics_watch *watch = aq_alloc(sizeof(*watch));

    watch->agent = agent;
    turns_init(&watch->turns, PAGES_AT_ONCE);
    return watch;
}

void metrics_watch_free(struct metrics_watch *watch)
{
    if (!watch)
        return;
    metrics_watch_set(watch, &(struct msg_metrics_watch){ .page_count = 0 });
    map_done(&watch->pages);
    free(watch);
}
