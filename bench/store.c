/* bench/store - durable creations of sessions per second through store_commit()
 *
 * Each batch holds one session of one kernel. For each number of outstanding
 * batches, a fresh database. The last line is one JSON object.
 *
 *     bench/store [--dir FOLDER] [--count SESSIONS]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "store/fixture.h"
#include "store/store.h"

struct run {
    struct store *store;
    struct uuid user_id, group_id;
    size_t count, sent, done;
    int result;
};

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch);

static struct event_batch *make_batch(const struct run *run)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = batch ? event_batch_add(batch, EVENT_SESSION_CREATED, 1) : NULL;
    struct session *s;

    if (!e)
        return NULL;
    s = &e->session;
    *s = (struct session){ .id = uuid_random(), .type = SESSION_BATCH, .priority = 10,
        .user_id = run->user_id, .group_id = run->group_id, .access_key = "AKIAIOSFODNN7EXAMPLE",
        .domain = strdup("default"), .resource_group = strdup("default"),
        .spec = strdup("{\"image\":\"\",\"command\":\"true\",\"environ\":{},\"cluster_size\":1}"),
        .created_usec = clock_realtime_usec(), .kernels = calloc(1, sizeof(*s->kernels)),
        .kernel_count = 1 };
    (void)snprintf(s->name, sizeof(s->name), "bench-%zu", run->sent);
    s->status_changed_usec = s->created_usec;
    if (!s->kernels)
        return batch;
    s->kernels[0] = (struct kernel){ .id = uuid_random(), .role = "main", .index = 1,
                                     .status_changed_usec = s->created_usec };
    if (slots_set(&s->kernels[0].requested, slot_name_intern("cpu", 3), AMOUNT_ONE) < 0
        || slots_set(&s->kernels[0].requested, slot_name_intern("mem", 3), 1 << 30) < 0)
        abort();
    return batch;
}

static void send_one(struct run *run)
{
    struct event_batch *batch = make_batch(run);

    run->sent++;
    if (!batch || store_commit(run->store, batch, on_committed, run) < 0)
        abort();
}

static void on_committed(void *data, int result, const struct aq_error *err,
                         struct event_batch *batch)
{
    struct run *run = data;

    if (result < 0 && run->result == 0) {
        (void)fprintf(stderr, "bench/store: %s\n", err->text);
        run->result = result;
    }
    event_batch_free(batch);
    run->done++;
    if (run->sent < run->count && run->result == 0)
        send_one(run);
}

static int find_people(void *data, struct event *e, struct aq_error *err)
{
    struct run *run = data;

    (void)err;
    if (e->kind == EVENT_GROUP_SAVED)
        run->group_id = e->group.id;
    if (e->kind == EVENT_USER_SAVED)
        run->user_id = e->user.user.id;
    return 0;
}

/* Sessions per second, or a negative errno. */
static double measure(const char *dir, size_t count, size_t outstanding, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%zu.db", dir, outstanding);
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct run run = { .count = count };
    int64_t began;
    int r = store_open(&(struct store_conf){ .path = path }, &store, err);

    if (r == 0)
        r = store_init_dev(store, err);
    if (r == 0)
        r = store_load(store, find_people, &run, err);
    if (r < 0)
        return r;
    run.store = store;
    began = clock_monotonic_usec();
    while (run.sent < outstanding)
        send_one(&run);
    store_flush(store);
    return run.result < 0 ? run.result
                          : (double)run.done * 1e6 / (double)(clock_monotonic_usec() - began);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
           + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    static const size_t outstanding[] = { 1, 4, 64 };
    char dir[4096] = ".";
    size_t count = 20000;
    struct aq_error err = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    double cpu;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            (void)snprintf(dir, sizeof(dir) - 32, "%s", argv[i + 1]);
        else if (strcmp(argv[i], "--count") == 0)
            count = (size_t)strtoul(argv[i + 1], NULL, 10);
    }
    (void)strncat(dir, "/bench-store-XXXXXX", 32);
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    strbuf_addf(&out, "{\"bench\":\"store\",\"sessions\":%zu", count);
    cpu = cpu_seconds();
    for (size_t i = 0; i < AQ_COUNT(outstanding); i++) {
        double rate = measure(dir, count, outstanding[i], &err);

        if (rate < 0) {
            (void)fprintf(stderr, "bench/store: %s\n", err.text);
            (void)fs_remove_tree(AT_FDCWD, dir, NULL);
            return 1;
        }
        strbuf_addf(&out, ",\"created_per_s_%zu\":%.0f", outstanding[i], rate);
    }
    strbuf_addf(&out, ",\"cpu_usec_per_session\":%.1f}",
                (cpu_seconds() - cpu) * 1e6 / (double)(count * AQ_COUNT(outstanding)));
    (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    puts(out.data);
    return 0;
}
