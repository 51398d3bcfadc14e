/* SPDX-License-Identifier: Apache-2.0 */
/* Users take turns in a lane of work; what a folder holds is known while it changes. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "storage/storage.h"

#define ID "8f14e45f-ceea-4671-a3b2-0123456789ab"
#define PLACE "8f/14/e45fceea4671a3b20123456789ab"
#define MANY 6000
#define QUOTA 100
#define WRITERS 8

static const struct uuid alice = { .bytes = { 1 } }, bob = { .bytes = { 2 } };

/* ---- lanes ---- */

struct step {
    struct work work;
    struct steps *steps;
    size_t ended_at; /* 1 = as the first one; 0 = not yet */
};

struct steps {
    uv_loop_t loop;
    struct work_lane lanes[WORK_LANES];
    uv_sem_t go;
    size_t ended;
    struct step items[MANY];
};

static void step_run(struct work *work)
{
    struct step *step = AQ_CONTAINER_OF(work, struct step, work);

    if (step == step->steps->items)
        uv_sem_wait(&step->steps->go);
}

static void step_done(struct work *work)
{
    struct step *step = AQ_CONTAINER_OF(work, struct step, work);

    step->ended_at = ++step->steps->ended;
}

static struct steps *steps_new(void)
{
    struct steps *s = calloc(1, sizeof(*s));

    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(uv_sem_init(&s->go, 0), 0);
    work_lanes_init(s->lanes, &s->loop);
    for (size_t i = 0; i < MANY; i++)
        s->items[i].steps = s;
    return s;
}

static int steps_submit(struct steps *s, enum work_lane_kind lane, size_t i,
                        const struct uuid *user)
{
    return work_submit(&s->lanes[lane], &s->items[i].work, user, step_run, step_done, NULL);
}

static void steps_end(struct steps *s)
{
    uv_sem_post(&s->go);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    uv_sem_destroy(&s->go);
}

static void test_users_take_turns(void **state)
{
    struct steps *s = steps_new();

    (void)state;
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(steps_submit(s, WORK_PURGE, i, &alice), 0);
    for (size_t i = 50; i < 53; i++)
        assert_int_equal(steps_submit(s, WORK_PURGE, i, &bob), 0);
    steps_end(s);
    assert_int_equal(s->ended, 53);
    for (size_t i = 50; i < 53; i++)
        assert_in_range(s->items[i].ended_at, 2 * (i - 50) + 2, 2 * (i - 50) + 4);
    free(s);
}

static void test_no_user_has_all_threads(void **state)
{
    struct steps *s = steps_new();

    (void)state;
    for (size_t i = 0; i < 10; i++) /* the first one waits for the second user's */
        assert_int_equal(steps_submit(s, WORK_COUNT, i, &alice), 0);
    assert_int_equal(steps_submit(s, WORK_COUNT, 10, &bob), 0);
    while (!s->items[10].ended_at)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    assert_int_equal(s->ended, 1);
    steps_end(s);
    assert_int_equal(s->ended, 11);
    free(s);
}

static void test_what_waits_has_an_end(void **state)
{
    struct steps *s = steps_new();
    size_t taken = 0;

    (void)state;
    while (taken < MANY - 2 && steps_submit(s, WORK_PURGE, taken, &alice) == 0)
        taken++;
    assert_in_range(taken, 5000, MANY - 3);
    assert_int_equal(steps_submit(s, WORK_PURGE, taken, &alice), -EAGAIN);
    assert_int_equal(steps_submit(s, WORK_PURGE, MANY - 1, &bob), 0);
    for (size_t i = 1; i < taken; i++)
        assert_true(work_withdraw(&s->items[i].work));
    assert_false(work_withdraw(&s->items[0].work)); /* it runs */
    steps_end(s);
    assert_int_equal(s->ended, 2);
    assert_int_equal(s->items[1].ended_at, 0);
    free(s);
}

/* ---- sizes ---- */

struct place {
    char path[64], seen[80], file[160];
    uv_loop_t loop;
    struct storage storage;
    struct volume volume;
    struct uuid folder;
    struct usage_hold hold;
    unsigned ready;
};

static void place_write(const struct place *p, size_t size)
{
    AQ_CLEANUP(aq_closep) int fd = open(p->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
}

static struct place *place_new(void)
{
    struct place *p = calloc(1, sizeof(*p));

    (void)snprintf(p->path, sizeof(p->path), "/tmp/aliquot-shares-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    (void)snprintf(p->seen, sizeof(p->seen), "%s/seen", p->path);
    (void)snprintf(p->file, sizeof(p->file), "%s/" PLACE, p->path);
    assert_int_equal(fs_mkdirs(p->file, 0700, NULL), 0);
    (void)snprintf(p->file, sizeof(p->file), "%s/" PLACE "/file", p->path);
    assert_int_equal(uuid_parse(ID, &p->folder), 0);
    assert_int_equal(uv_loop_init(&p->loop), 0);
    p->storage.usage = usage_table_new();
    p->storage.http.is_closing = true; /* no manager is told */
    p->volume = (struct volume){ .storage = &p->storage,
                                 .name = "volume1",
                                 .dir = { .name = "v", .path = p->path, .seen = p->seen } };
    work_lanes_init(p->volume.lanes, &p->loop);
    return p;
}

static void place_free(struct place *p)
{
    usage_release(p->storage.usage, &p->hold);
    usage_table_free(p->storage.usage);
    assert_int_equal(uv_loop_close(&p->loop), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, p->path, NULL), 0);
    free(p);
}

static void place_on_ready(struct usage_hold *hold, const struct aq_error *err)
{
    assert_null(err);
    AQ_CONTAINER_OF(hold, struct place, hold)->ready++;
}

static void place_count(struct place *p)
{
    unsigned before = p->ready;

    usage_release(p->storage.usage, &p->hold);
    assert_int_equal(usage_hold(p->storage.usage, &p->volume, &p->folder, &alice, USAGE_NOW,
                                &p->hold, place_on_ready, NULL),
                     0);
    (void)uv_run(&p->loop, UV_RUN_DEFAULT);
    assert_int_equal(p->ready, before + 1);
}

static int place_take(struct place *p, uint64_t bytes)
{
    return usage_take(p->storage.usage, &p->folder, QUOTA, bytes, NULL);
}

static void test_a_size_runs_along(void **state)
{
    struct place *p = place_new();
    struct tree_usage usage;

    (void)state;
    assert_int_equal(place_take(p, 1), -EAGAIN); /* nobody has counted it */
    place_write(p, 60);
    place_count(p);
    assert_int_equal(place_take(p, 40), 0);
    assert_int_equal(place_take(p, 1), -EDQUOT);
    assert_int_equal(usage_check(p->storage.usage, &p->folder, QUOTA, 0, NULL), 0);
    usage_give(p->storage.usage, &p->folder, 10);
    assert_int_equal(place_take(p, 11), -EDQUOT);
    assert_int_equal(place_take(p, 10), 0);
    assert_int_equal(usage_take(p->storage.usage, &p->folder, 0, 1000, NULL), 0); /* no quota */
    place_write(p, 70); /* what is there, is there */
    place_count(p);
    assert_true(usage_read(p->storage.usage, &p->folder, &usage));
    assert_int_equal(usage.bytes, 70);
    assert_int_equal(usage.files, 1);
    assert_int_equal(place_take(p, 31), -EDQUOT);
    assert_int_equal(place_take(p, 30), 0);
    place_free(p);
}

static void take_all(void *data)
{
    struct place *p = data;

    for (int i = 0; i < QUOTA; i++)
        (void)place_take(p, 1);
}

static void test_writers_at_one_time_keep_the_quota(void **state)
{
    struct place *p = place_new();
    uv_thread_t threads[WRITERS];
    struct tree_usage usage;

    (void)state;
    place_write(p, 1);
    place_count(p);
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(uv_thread_create(&threads[i], take_all, p), 0);
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(uv_thread_join(&threads[i]), 0);
    assert_true(usage_read(p->storage.usage, &p->folder, &usage));
    assert_int_equal(usage.bytes, QUOTA);
    place_free(p);
}

static void test_equal_counts_are_one(void **state)
{
    struct place *p = place_new();
    struct usage_hold others[20] = { { .entry = NULL } };
    struct usage_table *table = p->storage.usage;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(others); i++)
        assert_int_equal(usage_hold(table, &p->volume, &p->folder, &alice, USAGE_NOW, &others[i],
                                    place_on_ready, NULL),
                         0);
    assert_int_equal(usage_get_counts(table).begun, 1);
    for (size_t i = 0; i < AQ_COUNT(others); i++)
        usage_release(table, &others[i]); /* nobody waits any more */
    (void)uv_run(&p->loop, UV_RUN_DEFAULT);
    assert_int_equal(p->ready, 0);
    place_count(p);
    assert_int_equal(usage_get_counts(table).begun, 2);
    place_free(p);
}

/* ---- removing ---- */

#define NOBODY 65534
#define ROUNDS 2000

static _Atomic bool is_over;

static void swap(void *data)
{
    const int *root = data;

    while (!is_over)
        (void)renameat2(*root, "a", *root, "b", RENAME_EXCHANGE);
}

/* As a user who has no rights to a directory of its own, which gives way to a link. 0 = the file that
 * the link leads to has its mode.
 */
static int remove_while_links_come(int root)
{
    uv_thread_t thread;
    struct stat st;
    int r = 0;

    if (setresuid(NOBODY, NOBODY, NOBODY) < 0 || mknodat(root, "victim", S_IFREG | 0640, 0) < 0
        || fchmodat(root, "victim", 0640, 0) < 0 || uv_thread_create(&thread, swap, &root) < 0)
        return 1;
    for (int i = 0; i < ROUNDS && r == 0; i++) {
        if ((mkdirat(root, "a", 0) < 0 && errno != EEXIST)
            || (symlinkat("victim", root, "b") < 0 && errno != EEXIST))
            r = 1;
        (void)tree_remove(root, "a", NULL, NULL);
        (void)tree_remove(root, "b", NULL, NULL);
    }
    is_over = true;
    (void)uv_thread_join(&thread);
    if (r == 0
        && (fstatat(root, "victim", &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & 0777) != 0640))
        r = 2;
    if (r == 0 && (mkdirat(root, "c", 0) < 0 || tree_remove(root, "c", NULL, NULL) < 0))
        r = 3;
    return r;
}

static void test_removing_follows_no_link(void **state)
{
    char path[] = "/tmp/aliquot-shares-XXXXXX";
    AQ_CLEANUP(aq_closep) int root = -1;
    int status;
    pid_t child;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(path));
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(remove_while_links_come(root));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, path, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_take_turns),
        cmocka_unit_test(test_no_user_has_all_threads),
        cmocka_unit_test(test_what_waits_has_an_end),
        cmocka_unit_test(test_a_size_runs_along),
        cmocka_unit_test(test_writers_at_one_time_keep_the_quota),
        cmocka_unit_test(test_equal_counts_are_one),
        cmocka_unit_test(test_removing_follows_no_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
