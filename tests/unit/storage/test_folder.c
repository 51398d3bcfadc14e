/* SPDX-License-Identifier: Apache-2.0 */
/* What the manager asks, on real files: the operations as they come, hostile paths, deep and wide
 * trees.
 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json_load.h"
#include "storage/folder.h"
#include "storage/ops.h"
#include "storage/tree.h"
#include "storage/upload.h"
#include "storage/volume.h"
#include "transfer/beneath.h"
#include "transfer/volume_layout.h"

#define ID "8f14e45f-ceea-4671-a3b2-0123456789ab"
#define USER "6f1c0b1e-58a4-4c52-9d5e-1d3c2f7b9a10"
#define PLACE "8f/14/e45fceea4671a3b20123456789ab"
#define WIDE 100000
#define DEEP 3000

struct place {
    char path[64], seen[80];
    char folder[128]; /* of ID */
    struct settings settings;
    struct storage storage;
    struct volume volume;
    struct aq_error err;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    char url[] = "http://files.example";

    (void)snprintf(p->path, sizeof(p->path), "/tmp/aliquot-storage-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    (void)snprintf(p->seen, sizeof(p->seen), "%s.seen", p->path);
    (void)snprintf(p->folder, sizeof(p->folder), "%s/" PLACE, p->path);
    p->settings.common.public_url = strdup(url);
    p->settings.token_usec = 3600 * USEC_PER_SEC;
    p->storage.settings = &p->settings;
    p->storage.usage = usage_table_new();
    p->storage.http.is_closing = true; /* no manager is told */
    p->volume = (struct volume){ .storage = &p->storage,
                                 .name = "volume1",
                                 .dir = { .name = "v", .path = p->path, .seen = p->seen } };
    assert_non_null(p->storage.usage);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    char *name = strrchr(p->path, '/') + 1;
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(tree_remove(tmp, name, NULL, NULL), 0);
    (void)unlink(p->seen);
    aq_closep(&tmp);
    usage_table_free(p->storage.usage);
    free(p->settings.common.public_url);
    free(p);
    return 0;
}

static void on_ready(struct usage_hold *hold, const struct aq_error *err)
{
    struct place *p = hold->data;

    if (err)
        p->err = *err;
}

/* Count the folder first, where an operation needs that. */
static void hold(struct place *p, const char *op, const json_t *args, struct usage_hold *ret)
{
    int64_t age_usec = op_count_age(op, args);
    struct uuid id;
    uv_loop_t loop;

    if (age_usec < 0)
        return;
    ret->data = p;
    assert_int_equal(uuid_parse(ID, &id), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    work_lanes_init(p->volume.lanes, &loop);
    (void)usage_hold(p->storage.usage, &p->volume, &id, NULL, age_usec, ret, on_ready, &p->err);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* The answer, json_decref(); NULL = it failed with p->err. Quotes are written as '. */
static json_t *ask(struct place *p, const char *op, const char *args)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    struct usage_hold held = { .entry = NULL };
    json_t *tree, *answer = NULL;

    strbuf_addf(&text, "{'id':'" ID "','user':'" USER "','key':'KEY'%s%s}", *args ? "," : "", args);
    for (char *c = text.data; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    tree = json_load_string(text.data, 0);
    assert_non_null(tree);
    p->err = (struct aq_error){ 0 };
    hold(p, op, tree, &held);
    if (!p->err.code
        && op_run(&p->volume, op, tree, &(struct op_progress){ 0 }, &out, &p->err) == 0)
        answer = json_load_string(out.data, 0);
    else
        assert_int_not_equal(p->err.code, 0);
    usage_release(p->storage.usage, &held);
    json_decref(tree);
    return answer;
}

static void succeed(struct place *p, const char *op, const char *args)
{
    json_t *answer = ask(p, op, args);

    assert_row(answer, "%s %s: %s", op, args, p->err.text);
    json_decref(answer);
}

static void fail_as(struct place *p, const char *op, const char *args, int code, const char *field)
{
    assert_row(!ask(p, op, args) && p->err.code == code && strcmp(p->err.field, field) == 0,
               "%s %s: %d %s (%s)", op, args, p->err.code, p->err.text, p->err.field);
}

static void make_file(const struct place *p, const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", p->folder, name);
    assert_int_equal(fs_overwrite(AT_FDCWD, path, text, strlen(text), 0644, NULL), 0);
}

/* Nothing is left but the mark, without which it is none any more. */
static void check_empty(struct place *p)
{
    char mark[128];

    (void)snprintf(mark, sizeof(mark), "%s/" VOLUME_MARK, p->path);
    assert_int_equal(unlink(mark), 0);
    fail_as(p, "purge", "", ENODEV, "");
    fail_as(p, "create", "", ENODEV, "");
    assert_int_equal(rmdir(p->path), 0);
    fail_as(p, "purge", "", ENODEV, "");
    assert_int_equal(mkdir(p->path, 0700), 0);
}

static bool exists(const struct place *p, const char *name)
{
    char path[512];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/%s", p->folder, name);
    return lstat(path, &st) == 0;
}

static void test_operations(void **state)
{
    struct place *p = *state;
    json_t *answer, *items;

    fail_as(p, "list", "", ENOENT, "");
    succeed(p, "create", "");
    fail_as(p, "create", "", EEXIST, "");
    succeed(p, "mkdir", "'path':'a/b','parents':true");
    fail_as(p, "mkdir", "'path':'a/b'", EEXIST, "path");
    succeed(p, "mkdir", "'path':'a/b','exist_ok':true");
    fail_as(p, "mkdir", "'path':'x/y'", ENOENT, "path");
    assert_non_null(strstr(p->err.text, "parents"));
    make_file(p, "a/file", "four");
    succeed(p, "move", "'src':'a/file','dst':'new/place/file'");
    fail_as(p, "move", "'src':'a/file','dst':'b'", ENOENT, "src");
    fail_as(p, "move", "'src':'new','dst':'new/place/under'", EINVAL, "dst");
    succeed(p, "rename", "'path':'new/place/file','new_name':'renamed'");
    fail_as(p, "rename", "'path':'new/place/renamed','new_name':'a/b'", EINVAL, "new_name");
    fail_as(p, "rename", "'path':'new/place/renamed','new_name':'..'", EINVAL, "new_name");
    assert_true(exists(p, "new/place/renamed"));
    answer = ask(p, "usage", "");
    assert_int_equal(json_integer_value(json_object_get(answer, "files")), 1);
    assert_int_equal(json_integer_value(json_object_get(answer, "bytes")), 4);
    json_decref(answer);
    answer = ask(p, "list", "'path':'new/place'");
    items = json_object_get(answer, "items");
    assert_int_equal(json_array_size(items), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(items, 0), "name")),
                        "renamed");
    assert_string_equal(json_string_value(json_object_get(json_array_get(items, 0), "type")),
                        "FILE");
    assert_true(json_is_false(json_object_get(answer, "more")));
    json_decref(answer);
    answer = ask(p, "list", "'path':'new/place/renamed'");
    assert_true(json_is_true(json_object_get(answer, "is_file")));
    assert_int_equal(json_array_size(json_object_get(answer, "items")), 1);
    json_decref(answer);
    fail_as(p, "list", "'path':'new/place/renamed/below'", ENOTDIR, "path");
    fail_as(p, "list", "'path':'none'", ENOENT, "path");
    answer = ask(p, "list", "'path':'none','missing_ok':true");
    assert_true(json_is_true(json_object_get(answer, "is_missing")));
    json_decref(answer);
    fail_as(p, "delete", "'files':['new']", EISDIR, "files");
    fail_as(p, "delete", "'files':['a','none'],'recursive':true", ENOENT, "files");
    succeed(p, "delete", "'files':['new'],'recursive':true");
    assert_false(exists(p, "new"));
    fail_as(p, "delete", "'files':['.'],'recursive':true", EINVAL, "files");
    fail_as(p, "sing", "", EOPNOTSUPP, "");
    succeed(p, "purge", "");
    succeed(p, "purge", ""); /* it was lost, and is asked again */
    fail_as(p, "list", "", ENOENT, "");
    assert_int_equal(volume_purge(&p->volume.dir, true, NULL), 0);
    check_empty(p);
}

static void check_read(struct place *p, const char *args, const char *want)
{
    json_t *answer = ask(p, "read", args);
    const char *text = json_string_value(json_object_get(answer, "text"));

    assert_row(text && strcmp(text, want) == 0, "%s: %s (%s)", args, text ? text : "nothing",
               p->err.text);
    json_decref(answer);
}

static void test_small_files_are_read(void **state)
{
    struct place *p = *state;
    char path[512];
    char *large;

    succeed(p, "create", "");
    succeed(p, "mkdir", "'path':'a'");
    make_file(p, "a/model.yml", "models:\n- name: \"\xc3\xa9\"\n");
    make_file(p, "empty", "");
    check_read(p, "'path':'a/model.yml'", "models:\n- name: \"\xc3\xa9\"\n");
    check_read(p, "'path':'empty'", "");
    (void)snprintf(path, sizeof(path), "%s/inside", p->folder);
    assert_int_equal(symlink("a/model.yml", path), 0);
    check_read(p, "'path':'inside'", "models:\n- name: \"\xc3\xa9\"\n");
    (void)snprintf(path, sizeof(path), "%s/outside", p->folder);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    fail_as(p, "read", "'path':'outside'", EINVAL, "path");
    (void)snprintf(path, sizeof(path), "%s/pipe", p->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    fail_as(p, "read", "'path':'pipe'", EINVAL, "path");
    fail_as(p, "read", "'path':'a'", EISDIR, "path");
    fail_as(p, "read", "'path':'none'", ENOENT, "path");
    fail_as(p, "read", "'path':'../x'", EINVAL, "path");
    fail_as(p, "read", "", EINVAL, "path");
    make_file(p, "latin", "caf\xe9");
    fail_as(p, "read", "'path':'latin'", EINVAL, "path");
    large = malloc(FOLDER_READ_MAX + 2);
    assert_non_null(large);
    memset(large, 'x', FOLDER_READ_MAX + 1);
    large[FOLDER_READ_MAX + 1] = '\0';
    make_file(p, "large", large);
    fail_as(p, "read", "'path':'large'", EFBIG, "path");
    free(large);
}

static void test_a_clone_has_what_the_folder_has(void **state)
{
#define COPY "11223344-ceea-4671-a3b2-0123456789ab"
    struct place *p = *state;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[256], link[256];

    succeed(p, "create", "");
    succeed(p, "mkdir", "'path':'a/b','parents':true");
    make_file(p, "a/b/file", "some text");
    (void)snprintf(link, sizeof(link), "%s/a/link", p->folder);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    fail_as(p, "clone", "'to':'x'", EINVAL, "to");
    succeed(p, "clone", "'to':'" COPY "'");
    fail_as(p, "clone", "'to':'" COPY "'", EEXIST, "");
    fail_as(p, "clone", "'to':'" ID "'", EEXIST, "");
    (void)snprintf(path, sizeof(path), "%s/11/22/3344ceea4671a3b20123456789ab/a/b/file", p->path);
    assert_int_equal(fs_read(AT_FDCWD, path, 100, &text, NULL), 0);
    assert_string_equal(text.data, "some text");
    (void)snprintf(path, sizeof(path), "%s/11/22/3344ceea4671a3b20123456789ab/a/link", p->path);
    memset(link, 0, sizeof(link));
    assert_true(readlink(path, link, sizeof(link) - 1) > 0); /* as it is */
    assert_string_equal(link, "/etc/passwd");
    (void)snprintf(path, sizeof(path), "%s/.copy-half", p->path); /* of a process that was killed */
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(volume_purge(&p->volume.dir, false, NULL), 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(volume_purge(&p->volume.dir, true, NULL), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

#ifdef AQ_FAULTS
/* A process of its own that is killed at a fault point of the operation. */
static void die_at(struct place *p, const char *point, const char *op, const char *args)
{
    int status = 0;
    char want[80];
    pid_t pid = fork();

    if (pid == 0) {
        (void)snprintf(want, sizeof(want), "%s:any", point);
        (void)setenv("ALIQUOT_FAULT", want, 1);
        if (strcmp(op, "purged") == 0)
            (void)volume_purge(&p->volume.dir, true, NULL);
        else
            json_decref(ask(p, op, args));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)uuid_random(); /* the child had the one that would have been next here */
    assert_row(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s", point);
}

/* What was asked for and not answered is asked for again; nothing deleted comes back, nothing half
 * is there.
 */
static void test_kills(void **state)
{
    struct place *p = *state;
    char place[256];
    struct stat st;

    succeed(p, "create", "");
    succeed(p, "mkdir", "'path':'a'");
    make_file(p, "a/one", "1");
    make_file(p, "a/two", "2");
    (void)snprintf(place, sizeof(place), "%s/11/22/3344ceea4671a3b20123456789ab", p->path);
    die_at(p, "storage.copy.file", "clone", "'to':'" COPY "'");
    assert_int_not_equal(lstat(place, &st), 0);
    die_at(p, "storage.clone.copied", "clone", "'to':'" COPY "'");
    assert_int_not_equal(lstat(place, &st), 0);
    succeed(p, "clone", "'to':'" COPY "'");
    die_at(p, "storage.delete.begun", "delete", "'files':['a'],'recursive':true");
    succeed(p, "delete", "'files':['a'],'recursive':true");
    die_at(p, "storage.folder.dropped", "purge", "");
    fail_as(p, "list", "", ENOENT, "");
    succeed(p, "purge", "");
    die_at(p, "storage.purge.removed", "purged", "");
    assert_int_equal(volume_purge(&p->volume.dir, true, NULL), 0);
    assert_int_equal(tree_remove(AT_FDCWD, place, NULL, NULL), 0);
    (void)snprintf(place, sizeof(place), "%s/8f/14", p->path);
    (void)rmdir(place);
    *strrchr(place, '/') = '\0';
    (void)rmdir(place);
    (void)snprintf(place, sizeof(place), "%s/11/22", p->path);
    (void)rmdir(place);
    *strrchr(place, '/') = '\0';
    (void)rmdir(place);
    check_empty(p);
}
#endif

static void test_tokens_are_given_for_what_can_be_done(void **state)
{
    struct place *p = *state;
    struct token token;
    struct uuid user;
    json_t *answer;

    succeed(p, "create", "");
    succeed(p, "mkdir", "'path':'dir'");
    fail_as(p, "upload", "'path':'dir','size':1", EISDIR, "");
    fail_as(p, "upload", "'path':'file'", EINVAL, "size");
    fail_as(p, "upload", "'path':'file','size':-1", EINVAL, "size");
    fail_as(p, "upload", "'path':'file','size':11,'quota_bytes':10", EDQUOT, "");
    succeed(p, "upload", "'path':'empty','size':0");
    assert_true(exists(p, "empty"));
    fail_as(p, "download", "'path':'dir'", EISDIR, "path");
    fail_as(p, "download", "'path':'none'", ENOENT, "path");
    succeed(p, "download", "'path':'dir','archive':true");
    answer = ask(p, "upload", "'path':'deep/file','size':7,'quota_bytes':100");
    assert_string_equal(json_string_value(json_object_get(answer, "url")),
                        "http://files.example/upload");
    assert_int_equal(token_read(p->storage.key, json_string_value(json_object_get(answer, "token")),
                                true, &token, NULL),
                     0);
    assert_string_equal(token.path, "deep/file");
    assert_int_equal(token.size, 7);
    assert_int_equal(token.quota_bytes, 100);
    assert_int_equal(uuid_parse(USER, &user), 0);
    assert_true(uuid_equals(&token.user_id, &user));
    assert_string_equal(token.access_key, "KEY");
    assert_true(token.issued_usec > 0);
    fail_as(p, "download", "'path':'dir','archive':true,'user':''", EINVAL, "user");
    json_decref(answer);
}

/* As mv(1): into a directory that is there. Nothing is ever replaced. */
static void test_moving_into_a_directory(void **state)
{
    struct place *p = *state;
    char link[160];

    succeed(p, "create", "");
    succeed(p, "mkdir", "'path':'dir/sub','parents':true");
    make_file(p, "one", "1");
    make_file(p, "two", "2");
    succeed(p, "move", "'src':'one','dst':'dir'");
    assert_true(exists(p, "dir/one"));
    make_file(p, "one", "other");
    fail_as(p, "move", "'src':'one','dst':'dir'", EEXIST, "dst");
    assert_non_null(strstr(p->err.text, "'dir/one' exists"));
    assert_true(exists(p, "one"));
    fail_as(p, "move", "'src':'one','dst':'two'", EEXIST, "dst");
    fail_as(p, "move", "'src':'two','dst':'dir/one'", EEXIST, "dst");
    succeed(p, "move", "'src':'dir/sub','dst':'.'");
    assert_true(exists(p, "sub"));
    succeed(p, "move", "'src':'sub','dst':'dir/'");
    assert_true(exists(p, "dir/sub"));
    fail_as(p, "move", "'src':'dir','dst':'dir'", EINVAL, "dst");
    fail_as(p, "move", "'src':'dir','dst':'dir/sub'", EINVAL, "dst");
    assert_non_null(strstr(p->err.text, "into itself"));
    fail_as(p, "move", "'src':'two'", EINVAL, "dst");
    (void)snprintf(link, sizeof(link), "%s/to", p->folder);
    assert_int_equal(symlink("dir/sub", link), 0);
    succeed(p, "move", "'src':'two','dst':'to'");
    assert_true(exists(p, "dir/sub/two"));
    succeed(p, "move", "'src':'to','dst':'dir'"); /* the link itself */
    assert_true(exists(p, "dir/to"));
    make_file(p, "dir/.aliquot-uploads", "x");
    fail_as(p, "move", "'src':'dir/.aliquot-uploads','dst':'/'", EINVAL, "dst");
    fail_as(p, "rename", "'path':'one','new_name':'dir'", EEXIST, "new_name");
}

static void test_hostile_paths(void **state)
{
    static const char *const paths[] = { "../x", "a/../../x", "out/x", "up/x", "up", "loop/x" };
    struct place *p = *state;
    char args[256], link[160];

    succeed(p, "create", "");
    make_file(p, "file", "x");
    (void)snprintf(link, sizeof(link), "%s/out", p->folder);
    assert_int_equal(symlink("/tmp", link), 0);
    (void)snprintf(link, sizeof(link), "%s/up", p->folder);
    assert_int_equal(symlink("../..", link), 0);
    (void)snprintf(link, sizeof(link), "%s/loop", p->folder);
    assert_int_equal(symlink("loop", link), 0);
    for (size_t i = 0; i < AQ_COUNT(paths); i++) {
        (void)snprintf(args, sizeof(args), "'src':'file','dst':'%s%s'", paths[i],
                       strchr(paths[i], '/') ? "" : "/x");
        fail_as(p, "move", args, EINVAL, "dst");
        (void)snprintf(args, sizeof(args), "'path':'%s'", paths[i]);
        fail_as(p, "list", args, EINVAL, "path");
        (void)snprintf(args, sizeof(args), "'path':'%s/sub','parents':true", paths[i]);
        fail_as(p, "mkdir", args, EINVAL, "path");
    }
    fail_as(p, "list", "'path':'.aliquot-uploads'", EINVAL, "path");
    fail_as(p, "mkdir", "'path':'./.aliquot-uploads/x'", EINVAL, "path");
    succeed(p, "delete", "'files':['up','out','loop']"); /* the links themselves */
    assert_true(exists(p, "file"));
}

/* Whoever renames a directory and a link to and fro gets nothing out. */
struct race {
    int root;
    atomic_bool is_over;
};

static void *rename_to_and_fro(void *data)
{
    struct race *race = data;

    while (!atomic_load(&race->is_over))
        (void)renameat2(race->root, "real", race->root, "link", RENAME_EXCHANGE);
    return NULL;
}

static void test_a_race_of_renames_leads_nowhere(void **state)
{
    struct place *p = *state;
    struct race race = { .root = -1 };
    char outside[96], link[160];
    pthread_t thread;

    succeed(p, "create", "");
    (void)snprintf(outside, sizeof(outside), "%s/outside", p->path);
    assert_int_equal(mkdir(outside, 0755), 0);
    (void)snprintf(link, sizeof(link), "%s/link", p->folder);
    assert_int_equal(symlink(outside, link), 0);
    succeed(p, "mkdir", "'path':'real'");
    race.root = open(p->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(pthread_create(&thread, NULL, rename_to_and_fro, &race), 0);
    for (int i = 0; i < 3000; i++) {
        json_decref(ask(p, "mkdir", "'path':'real/made','exist_ok':true"));
        json_decref(ask(p, "move", "'src':'real/made','dst':'real/moved'"));
        json_decref(ask(p, "delete", "'files':['real/moved'],'recursive':true"));
    }
    atomic_store(&race.is_over, true);
    (void)pthread_join(thread, NULL);
    aq_closep(&race.root);
    assert_int_equal(rmdir(outside), 0); /* nothing was made in it */
}

static long long cpu_msec(const struct rusage *use)
{
    return (use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000
           + (use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1000;
}

static void test_a_wide_folder_is_listed_in_pages(void **state)
{
    struct place *p = *state;
    char name[64], after[64] = "", args[160];
    struct rusage before, now;
    int64_t began;
    size_t seen = 0;
    bool is_more = true;
    int root;

    succeed(p, "create", "");
    root = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < WIDE; i++) {
        int fd;

        (void)snprintf(name, sizeof(name), "file-%06d", (i * 7919) % WIDE);
        fd = openat(root, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        aq_closep(&fd);
    }
    (void)getrusage(RUSAGE_SELF, &before);
    began = clock_monotonic_usec();
    while (is_more) {
        json_t *answer, *items, *last;

        (void)snprintf(args, sizeof(args), "'limit':10000,'after':'%s'", after);
        answer = ask(p, "list", args);
        items = json_object_get(answer, "items");
        assert_true(json_array_size(items) > 0);
        last = json_array_get(items, json_array_size(items) - 1);
        seen += json_array_size(items);
        (void)snprintf(after, sizeof(after), "%s",
                       json_string_value(json_object_get(last, "name")));
        is_more = json_is_true(json_object_get(answer, "more"));
        json_decref(answer);
    }
    (void)getrusage(RUSAGE_SELF, &now);
    print_message("%zu names in %lld ms, of them %lld ms of a processor; %ld KB more\n", seen,
                  (long long)(clock_monotonic_usec() - began) / 1000,
                  cpu_msec(&now) - cpu_msec(&before), now.ru_maxrss - before.ru_maxrss);
    assert_int_equal(seen, WIDE);
    (void)snprintf(name, sizeof(name), "file-%06d", WIDE - 1);
    assert_string_equal(after, name);
    aq_closep(&root);
}

/* Deeper than a path can be, as a program in a session can make it. */
static void test_a_deep_tree_is_removed(void **state)
{
    struct place *p = *state;
    struct tree_usage usage;
    struct aq_error err = { 0 };
    int fd, next, root;

    succeed(p, "create", "");
    root = fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        if (fd != root)
            aq_closep(&fd);
        fd = next;
    }
    aq_closep(&fd);
    assert_int_equal(tree_count(root, NULL, &usage, &err), -ELOOP);
    assert_int_equal(tree_remove(root, "d", NULL, &err), 0);
    assert_false(exists(p, "d"));
    assert_int_equal(tree_count(root, NULL, &usage, &err), 0);
    assert_int_equal(usage.files, 0);
    aq_closep(&root);
}

/* A folder that something arrived in is counted, also when those who asked meanwhile have gone. */
static void test_a_touched_folder_is_counted(void **state)
{
    struct place *p = *state;
    struct usage_hold first = { .entry = NULL }, second = { .entry = NULL };
    struct tree_usage usage;
    struct uuid id, other, user;
    uv_loop_t loop;

    succeed(p, "create", "");
    make_file(p, "file", "four");
    assert_int_equal(uuid_parse(ID, &id), 0);
    assert_int_equal(uuid_parse(COPY, &other), 0);
    assert_int_equal(uuid_parse(USER, &user), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    work_lanes_init(p->volume.lanes, &loop);
    p->volume.lanes[WORK_COUNT].active_max = 1; /* so that the second waits */
    first.data = second.data = p;
    usage_touch(p->storage.usage, &p->volume, &id, &user);
    assert_int_equal(
        usage_hold(p->storage.usage, &p->volume, &other, &user, USAGE_NOW, &first, on_ready, NULL),
        0);
    assert_int_equal(
        usage_hold(p->storage.usage, &p->volume, &id, &user, USAGE_NOW, &second, on_ready, NULL),
        0);
    usage_release(p->storage.usage, &second);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(usage_read(p->storage.usage, &id, &usage));
    assert_int_equal(usage.bytes, 4);
    usage_release(p->storage.usage, &first);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* /dev/full has no room; a descriptor for reading stands for any other failure. */
static void test_failed_writes_are_told_apart(void **state)
{
    static const struct {
        int code, reported;
        const char *kind, *text;
    } cases[] = {
        { ENOSPC, ENOSPC, "disk-full", "is full" },
        { EDQUOT, ENOSPC, "disk-full", "quota" },
        { EROFS, EROFS, "file-failed", "read-only" },
        { EIO, EIO, "file-failed", "Input/output" },
    };
    const struct token token = { .path = "file" };
    struct upload upload = { .fd = open("/dev/full", O_RDWR | O_CLOEXEC), .size = 4 };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(upload_write(&upload, &token, "abcd", 4, &err), -ENOSPC);
    assert_string_equal(err.kind, "disk-full");
    aq_closep(&upload.fd);
    upload.fd = open("/dev/full", O_RDONLY | O_CLOEXEC);
    assert_int_equal(upload_write(&upload, &token, "abcd", 4, &err), -EBADF);
    assert_string_equal(err.kind, "file-failed");
    aq_closep(&upload.fd);
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        assert_int_equal(beneath_fail(&err, cases[i].code, "file"), -cases[i].reported);
        assert_string_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_operations, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokens_are_given_for_what_can_be_done, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_small_files_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_clone_has_what_the_folder_has, setup, teardown),
#ifdef AQ_FAULTS
        cmocka_unit_test_setup_teardown(test_kills, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_a_touched_folder_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moving_into_a_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_race_of_renames_leads_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wide_folder_is_listed_in_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deep_tree_is_removed, setup, teardown),
        cmocka_unit_test(test_failed_writes_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
