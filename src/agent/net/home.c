#include "agent/net/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/uuid.h"

/* FNV-1a, folded to 24 bits: the same in every process. */
static void make_tag(const char *identity, char tag[RULES_TAG_MAX])
{
    uint32_t hash = UINT32_C(2166136261);

    for (const char *at = identity; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    (void)snprintf(tag, RULES_TAG_MAX, "%06x", (hash >> 24 ^ hash) & 0xffffffu);
}

static bool is_tag(const char *name)
{
    return strlen(name) == RULES_TAG_MAX - 1 && name[strspn(name, "0123456789abcdef")] == '\0';
}

static int open_lock(int folder, bool wait, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = openat(folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0)
        return aq_fail_errno(err, "lock");
    return AQ_TAKE_FD(fd);
}

/* ---- the folders in a folder ---- */

static int each_name(int folder, int (*fn)(void *data, const char *name), void *data)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!dir) {
        aq_closep(&copy);
        return -errno;
    }
    while (r == 0 && (entry = readdir(dir)))
        r = fn(data, entry->d_name);
    (void)closedir(dir);
    return r;
}

struct walk {
    int (*fn)(void *data, const char *name);
    void *data;
};

static int if_endpoint(void *data, const char *name)
{
    const struct walk *walk = data;
    struct uuid id;

    return uuid_parse(name, &id) == 0 ? walk->fn(walk->data, name) : 0;
}

int home_each(const struct home *home, int (*fn)(void *data, const char *name), void *data)
{
    struct walk walk = { .fn = fn, .data = data };

    return each_name(home->own, if_endpoint, &walk);
}

static int count_one(void *data, const char *name)
{
    struct uuid id;

    *(unsigned *)data += uuid_parse(name, &id) == 0;
    return 0;
}

static bool has_endpoints(int folder)
{
    unsigned count = 0;

    return each_name(folder, count_one, &count) < 0 || count > 0;
}

/* ---- slices ---- */

static int read_slice(int folder, struct range *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(folder, "slice", 64, &text, NULL);

    return r < 0 ? r : range_parse(text.data, ret, NULL);
}

/* What choosing a slice goes by: those of the others. */
struct choice {
    struct home *home;
    struct strbuf *nft;
    struct range taken[256];
    size_t taken_count;
};

static void clear(struct choice *choice, const char *tag, int folder)
{
    AQ_CLEANUP(aq_closep) int lock = open_lock(folder, false, NULL);

    if (lock < 0 || has_endpoints(folder))
        return;
    rules_add_removal(choice->nft, tag);
    (void)fs_remove_tree(choice->home->all, tag, NULL);
}

static int look_at(void *data, const char *name)
{
    struct choice *choice = data;
    AQ_CLEANUP(aq_closep) int folder = -1;
    struct range slice;

    if (!is_tag(name) || strcmp(name, choice->home->tag) == 0)
        return 0;
    folder = openat(choice->home->all, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return 0;
    clear(choice, name, folder);
    if (read_slice(folder, &slice) == 0 && choice->taken_count < AQ_COUNT(choice->taken))
        choice->taken[choice->taken_count++] = slice;
    return 0;
}

static bool is_taken(const struct choice *choice, const struct range *slice)
{
    for (size_t i = 0; i < choice->taken_count; i++)
        if (range_overlaps(&choice->taken[i], slice))
            return true;
    return false;
}

static int choose(struct choice *choice, const struct range *pool, struct aq_error *err)
{
    struct range slice = { pool->first, AQ_MAX(pool->bits, HOME_SLICE_BITS) }, own;
    uint64_t count = range_size(pool) / range_size(&slice);
    char text[RANGE_TEXT_MAX];

    /* the one it had, as long as that is in the pool: kernels may live there */
    if (read_slice(choice->home->own, &own) == 0 && own.bits >= pool->bits
        && range_overlaps(&own, pool) && !is_taken(choice, &own)) {
        choice->home->slice = own;
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        slice.first = pool->first + (uint32_t)(i * range_size(&slice));
        if (is_taken(choice, &slice))
            continue;
        choice->home->slice = slice;
        (void)range_format(&slice, text);
        return fs_write_quick(choice->home->own, "slice", text, strlen(text), 0600, err);
    }
    return aq_fail_field(err, ENOSPC, "pool",
                         "other agents of this machine use all of %s; give this one another "
                         "network pool", range_format(pool, text));
}

static int take_slice(struct home *home, const struct range *pool, struct strbuf *nft,
                      struct aq_error *err)
{
    struct choice choice = { .home = home, .nft = nft };
    int r = each_name(home->all, look_at, &choice);

    return r < 0 ? aq_fail(err, -r, "list the networks of this machine: %s", strerror(-r))
                 : choose(&choice, pool, err);
}

static int open_folders(const char *run_dir, struct home *home, struct aq_error *err)
{
    int r;

    (void)snprintf(home->path, sizeof(home->path), "%s/net/%s", run_dir, home->tag);
    if (strlen(home->path) >= sizeof(home->path) - 64)
        return aq_fail(err, ENAMETOOLONG, "'%s' is too long for a runtime folder", run_dir);
    r = fs_mkdirs(home->path, 0711, err);
    if (r < 0)
        return r;
    home->own = open(home->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home->own < 0)
        return aq_fail_errno(err, "open '%s'", home->path);
    home->all = openat(home->own, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return home->all < 0 ? aq_fail_errno(err, "open '%s/net'", run_dir) : 0;
}

/* Its own lock first: a folder without a holder may be cleared by anyone who
 * has the lock of all, so that one is held meanwhile.
 */
int home_open(const char *run_dir, const char *identity, const struct range *pool,
              struct home *ret, struct strbuf *nft, struct aq_error *err)
{
    struct home home = HOME_CLOSED;
    AQ_CLEANUP(aq_closep) int all_lock = -1;
    AQ_CLEANUP(aq_freep) char *all_path = aq_format("%s/net", run_dir);
    AQ_CLEANUP(aq_closep) int all = -1;
    int r = all_path ? fs_mkdirs(all_path, 0711, err) : aq_fail(err, ENOMEM, "networks");

    if (r < 0)
        return r;
    make_tag(identity, home.tag);
    all = open(all_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all < 0)
        return aq_fail_errno(err, "open '%s'", all_path);
    all_lock = open_lock(all, true, err);
    if (all_lock < 0)
        return all_lock;
    r = open_folders(run_dir, &home, err);
    if (r == 0) {
        home.lock = open_lock(home.own, false, err);
        if (home.lock < 0)
            r = home.lock == -EWOULDBLOCK
                    ? aq_fail(err, EBUSY, "another agent of this identity runs here")
                    : home.lock;
    }
    if (r == 0)
        r = take_slice(&home, pool, nft, err);
    if (r < 0)
        home_close(&home);
    else
        *ret = home;
    return r;
}

static int count_tag(void *data, const char *name)
{
    *(unsigned *)data += is_tag(name);
    return 0;
}

bool home_remove(struct home *home)
{
    AQ_CLEANUP(aq_closep) int all_lock = open_lock(home->all, true, NULL);
    unsigned others = 0;

    (void)fs_remove_tree(home->all, home->tag, NULL);
    return all_lock >= 0 && each_name(home->all, count_tag, &others) == 0 && others == 0;
}

void home_close(struct home *home)
{
    aq_closep(&home->lock);
    aq_closep(&home->own);
    aq_closep(&home->all);
}
