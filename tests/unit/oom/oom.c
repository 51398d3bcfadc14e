/* SPDX-License-Identifier: Apache-2.0 */
/* oom.c - the walk through all failures of a failing allocator */
#include "oom.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "failing_allocator.h"

#define DIED 70 /* as core_die() ends */
#define NEAR_FRAMES 6
#define ALL_FRAMES 38
#define SAMPLED \
    10 /* with sanitizers one way of so many is walked; ./check unit walks all without */

static struct failing_record *record;

void oom_check(const char *what, int r, const struct aq_error *err)
{
    if (r >= 0 || (r == -ENOMEM && err->code == ENOMEM && strstr(err->text, "out of memory")))
        return;
    (void)fprintf(stderr, "%s: %d is no error of short memory: %s\n", what, r, err->text);
    (void)fflush(NULL);
    _exit(4);
}

/* ---- the walk ---- */

struct run_result {
    int status; /* as of waitpid() */
    char output[16384];
};

static char root[] = "/dev/shm/aliquot-oom-XXXXXX";

/* One file, or a directory with all that is in it. */
static void copy_tree(int from_dir, const char *from, int to_dir, const char *to)
{
    int in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), out;
    struct stat st;
    struct dirent *entry;
    DIR *dir;

    if (in < 0 || fstat(in, &st) < 0)
        abort();
    if (!S_ISDIR(st.st_mode)) {
        out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
        if (out < 0 || sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size)
            abort();
        (void)close(in);
        (void)close(out);
        return;
    }
    if (mkdirat(to_dir, to, 0700) < 0 || !(dir = fdopendir(in))
        || (out = openat(to_dir, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        abort();
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            copy_tree(in, entry->d_name, out, entry->d_name);
    (void)closedir(dir);
    (void)close(out);
}

static struct run_result run_in_child(void (*function)(const char *dir), const char *dir)
{
    struct run_result result = { .status = -1 };
    char path[128];
    int fd;
    ssize_t n;
    pid_t pid;

    (void)snprintf(path, sizeof(path), "%s/output", root);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)fflush(NULL);
    if ((pid = fork()) == 0) {
        (void)dup2(fd, STDERR_FILENO);
        (void)dup2(fd, STDOUT_FILENO);
        (void)alarm(60);
        json_set_alloc_funcs(__wrap_malloc, __wrap_free);
        function(dir);
        (void)fflush(NULL);
        _exit(0);
    }
    if (fd < 0 || pid < 0 || waitpid(pid, &result.status, 0) != pid)
        abort();
    if ((n = pread(fd, result.output, sizeof(result.output) - 1, 0)) < 0)
        n = 0;
    result.output[n] = '\0';
    (void)close(fd);
    return result;
}

static struct run_result run_with(const struct oom_scenario *s, struct failing_plan plan)
{
    char base[96], dir[96];
    struct run_result r, again;

    (void)snprintf(base, sizeof(base), "%s/base", root);
    (void)snprintf(dir, sizeof(dir), "%s/run", root);
    (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    copy_tree(AT_FDCWD, base, AT_FDCWD, dir);
    failing_allocator_plan(&plan, record);
    r = run_in_child(s->run, dir);
    if (WIFEXITED(r.status) && WEXITSTATUS(r.status) == DIED && s->recover
        && strstr(r.output, "out of memory: ")) {
        again = run_in_child(s->recover, dir);
        if (again.status == 0)
            return r;
        again.status = -1;
        return again;
    }
    return r;
}

struct tally {
    long runs, passed, died, wrong;
};

static void judge(const struct oom_scenario *s, struct failing_plan plan, struct tally *t)
{
    struct run_result r = run_with(s, plan);
    const char *leak;

    t->runs++;
    if (r.status == 0) {
        t->passed++;
        return;
    }
    if (WIFEXITED(r.status) && WEXITSTATUS(r.status) == DIED) {
        t->died++;
        if (getenv("AQ_OOM_DEATHS"))
            printf("# %s: died at %ld\n%s\n", s->name, plan.fail_at, r.output);
        return;
    }
    t->wrong++;
    printf("# %s: allocation %ld%s: status 0x%x\n", s->name, plan.fail_at,
           plan.mode == FAILING_FOREVER ? " and all after it" : "", (unsigned)r.status);
    printf("%s\n", r.output);
    if ((leak = strstr(r.output, "leaked: allocation "))) {
        plan.trace_at = atol(leak + strlen("leaked: allocation "));
        r = run_with(s, plan);
        if ((leak = strstr(r.output, "leaked allocation ")))
            printf("%s\n", leak);
    }
}

static void judge_once(const struct oom_scenario *s, long at, struct tally *t)
{
    judge(s, (struct failing_plan){ .mode = FAILING_ONCE, .fail_at = at }, t);
}

static void judge_forever(const struct oom_scenario *s, long at, struct tally *t)
{
    judge(s, (struct failing_plan){ .mode = FAILING_FOREVER, .fail_at = at }, t);
}

/* Count the scenario's allocations, and add its sites to the record. False: it fails by itself. */
static bool count_sites(const struct oom_scenario *s, bool is_short)
{
    const struct failing_plan plan = { .mode = FAILING_RECORD,
                                       .frames = is_short ? NEAR_FRAMES : ALL_FRAMES };
    struct run_result r;
    char base[96];

    (void)snprintf(base, sizeof(base), "%s/base", root);
    (void)fs_remove_tree(AT_FDCWD, base, NULL);
    (void)mkdir(base, 0700);
    if (s->prepare && (r = run_in_child(s->prepare, base)).status != 0) {
        printf("# %s: cannot be prepared\n%s\n", s->name, r.output);
        return false;
    }
    r = run_with(s, plan);
    if (r.status != 0)
        printf("# %s: fails with all its memory: 0x%x\n%s\n", s->name, (unsigned)r.status,
               r.output);
    return r.status == 0;
}

/* The calls of the sites from 'begin' on, for AQ_OOM_SITES. */
static void write_callers(FILE *file, long begin)
{
    extern const char __executable_start[]; /* by the linker */

    for (long i = begin; i < record->site_count; i++)
        for (int k = 0; k < FAILING_CALLERS && record->sites[i].callers[k]; k++)
            (void)fprintf(file, "%td\n",
                          (const char *)record->sites[i].callers[k] - __executable_start);
}

static struct tally walk(const struct oom_scenario *s, FILE *sites)
{
    const char *wanted = getenv("AQ_OOM"), *first = getenv("AQ_OOM_FIRST"),
               *most = getenv("AQ_OOM_MOST");
    struct tally t = { 0 };
    bool all = wanted && strcmp(wanted, "all") == 0;
    long begin, total, end, wrong_max = most ? atol(most) : 10;

    if (wanted)
        record->site_count = 0;
    begin = record->site_count; /* what other scenarios have walked is behind us */
    if (!count_sites(s, !wanted && !sites)) {
        t.wrong++;
        return t;
    }
    total = record->calls;
    end = record->site_count;
    if (sites) {
        write_callers(sites, begin);
        return t;
    }
    if (wanted && atol(wanted) > 0) {
        judge_once(s, atol(wanted), &t);
        judge_forever(s, atol(wanted), &t);
        return t;
    }
    for (long i = begin + (first ? atol(first) : 0); i < (all ? total : end) && t.wrong < wrong_max;
         i += wanted || !FAILING_SANITIZED ? 1 : SAMPLED) {
        long at = all ? i + 1 : record->sites[i].call;

        judge_once(s, at, &t);
        if (wanted || i % 8 == 0)
            judge_forever(s, at, &t);
    }
    printf("# %s: %ld allocations, %ld ways to them; %ld runs: %ld answered, %ld ended and came "
           "back, %ld wrong\n",
           s->name, total, end - begin, t.runs, t.passed, t.died, t.wrong);
    return t;
}

int oom_main(const struct oom_scenario *scenarios, int count)
{
    const char *path = getenv("AQ_OOM_SITES");
    FILE *sites = NULL;
    int wrong = 0;

    if (path && !(sites = fopen(path, "we")))
        return 1;
    record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (record == MAP_FAILED || !mkdtemp(root))
        return 1;
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        struct tally t = walk(&scenarios[i], sites);

        printf("%s %d - %s\n", t.wrong ? "not ok" : "ok", i + 1, scenarios[i].name);
        (void)fflush(stdout);
        wrong += t.wrong != 0;
    }
    (void)fs_remove_tree(AT_FDCWD, root, NULL);
    if (sites && fclose(sites) != 0)
        return 1;
    return wrong != 0;
}
