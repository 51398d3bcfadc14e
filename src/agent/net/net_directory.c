/* SPDX-License-Identifier: Apache-2.0 */
/* net_directory.c - this agent's directory below RUN/net, and its subnet of the pool */
#include "agent/net/net_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/net/cluster_setup.h"
#include "base/fs.h"
#include "base/uuid.h"

/* FNV-1a, folded to 24 bits: the same in every process. */
static void net_directory_make_tag(const char *identity, char tag[NFT_RULES_TAG_MAX])
{
    uint32_t hash = UINT32_C(2166136261);

    for (const char *at = identity; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    (void)snprintf(tag, NFT_RULES_TAG_MAX, "%06x", (hash >> 24 ^ hash) & 0xffffffu);
}

static bool net_directory_is_tag(const char *name)
{
    return strlen(name) == NFT_RULES_TAG_MAX - 1 && name[strspn(name, "0123456789abcdef")] == '\0';
}

static int net_directory_open_lock(int directory, bool wait, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = openat(directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0)
        return aq_fail_errno(err, "lock");
    return AQ_TAKE_FD(fd);
}

/* ---- the directories in a directory ---- */

static int net_directory_each_name(int directory, void (*fn)(void *data, const char *name),
                                   void *data)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!dir) {
        aq_closep(&copy);
        return -errno;
    }
    while ((entry = readdir(dir)))
        fn(data, entry->d_name);
    (void)closedir(dir);
    return 0;
}

struct net_directory_walk {
    void (*fn)(void *data, const char *name);
    void *data;
};

static void net_directory_if_endpoint(void *data, const char *name)
{
    const struct net_directory_walk *walk = data;
    struct uuid id;

    if (uuid_parse(name, &id) == 0)
        walk->fn(walk->data, name);
}

int net_directory_each(const struct net_directory *directory,
                       void (*fn)(void *data, const char *name), void *data)
{
    struct net_directory_walk walk = { .fn = fn, .data = data };

    return net_directory_each_name(directory->own, net_directory_if_endpoint, &walk);
}

static void net_directory_count_one(void *data, const char *name)
{
    struct uuid id;

    *(unsigned *)data += uuid_parse(name, &id) == 0;
}

static bool net_directory_has_endpoints(int directory)
{
    unsigned count = 0;

    return net_directory_each_name(directory, net_directory_count_one, &count) < 0 || count > 0;
}

/* ---- subnets ---- */

static int net_directory_read_subnet(int directory, struct range *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(directory, "slice", 64, &text, NULL);

    return r < 0 ? r : range_parse(text.data, ret, NULL);
}

/* What choosing a subnet goes by: those of the others. */
struct subnet_choice {
    struct net_directory *directory;
    struct strbuf *nft;
    struct range taken[256];
    size_t taken_count;
};

static void net_directory_clear(struct subnet_choice *choice, const char *tag, int directory)
{
    AQ_CLEANUP(aq_closep) int lock = net_directory_open_lock(directory, false, NULL);
    AQ_CLEANUP(aq_freep) char *path = NULL;

    if (lock < 0 || net_directory_has_endpoints(directory))
        return;
    nft_rules_add_removal(choice->nft, tag);
    path = aq_format("/proc/self/fd/%d", directory);
    cluster_setup_remove(path, tag);
    (void)fs_remove_tree(choice->directory->all, tag, NULL);
}

static void net_directory_check_other(void *data, const char *name)
{
    struct subnet_choice *choice = data;
    AQ_CLEANUP(aq_closep) int directory = -1;
    struct range subnet;

    if (!net_directory_is_tag(name) || strcmp(name, choice->directory->tag) == 0)
        return;
    directory = openat(choice->directory->all, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    net_directory_clear(choice, name, directory);
    if (net_directory_read_subnet(directory, &subnet) == 0
        && choice->taken_count < AQ_COUNT(choice->taken))
        choice->taken[choice->taken_count++] = subnet;
}

static bool net_directory_is_taken(const struct subnet_choice *choice, const struct range *subnet)
{
    for (size_t i = 0; i < choice->taken_count; i++)
        if (range_overlaps(&choice->taken[i], subnet))
            return true;
    return false;
}

static int net_directory_choose_subnet(struct subnet_choice *choice, const struct range *pool,
                                       struct aq_error *err)
{
    struct range subnet = { pool->first, AQ_MAX(pool->bits, NET_DIRECTORY_SUBNET_BITS) }, own;
    uint64_t count = range_size(pool) / range_size(&subnet);
    char text[RANGE_TEXT_MAX];

    /* the one it had, as long as that is in the pool: kernels may live there */
    if (net_directory_read_subnet(choice->directory->own, &own) == 0 && own.bits >= pool->bits
        && range_overlaps(&own, pool) && !net_directory_is_taken(choice, &own)) {
        choice->directory->subnet = own;
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        subnet.first = pool->first + (uint32_t)(i * range_size(&subnet));
        if (net_directory_is_taken(choice, &subnet))
            continue;
        choice->directory->subnet = subnet;
        (void)range_format(&subnet, text);
        return fs_write_quick(choice->directory->own, "slice", text, strlen(text), 0600, err);
    }
    return aq_fail_field(err, ENOSPC, "pool",
                         "other agents of this machine use all of %s; give this one another "
                         "network pool",
                         range_format(pool, text));
}

static int net_directory_take_subnet(struct net_directory *directory, const struct range *pool,
                                     struct strbuf *nft, struct aq_error *err)
{
    struct subnet_choice choice = { .directory = directory, .nft = nft };
    int r = net_directory_each_name(directory->all, net_directory_check_other, &choice);

    return r < 0 ? aq_fail(err, -r, "list the networks of this machine: %s", strerror(-r))
                 : net_directory_choose_subnet(&choice, pool, err);
}

static int net_directory_open_directories(const char *run_dir, struct net_directory *directory,
                                          struct aq_error *err)
{
    int r;

    (void)snprintf(directory->path, sizeof(directory->path), "%s/net/%s", run_dir, directory->tag);
    if (strlen(directory->path) >= sizeof(directory->path) - 64)
        return aq_fail(err, ENAMETOOLONG, "'%s' is too long for a runtime folder", run_dir);
    r = fs_mkdirs(directory->path, 0711, err);
    if (r < 0)
        return r;
    directory->own = open(directory->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory->own < 0)
        return aq_fail_errno(err, "open '%s'", directory->path);
    directory->all = openat(directory->own, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return directory->all < 0 ? aq_fail_errno(err, "open '%s/net'", run_dir) : 0;
}

/* Its own lock first: a directory without a holder may be cleared by anyone who
 * has the lock of all, so that one is held meanwhile.
 */
int net_directory_open(const char *run_dir, const char *identity, const struct range *pool,
                       struct net_directory *ret, struct strbuf *nft, struct aq_error *err)
{
    struct net_directory directory = NET_DIRECTORY_CLOSED;
    AQ_CLEANUP(aq_closep) int all_lock = -1;
    AQ_CLEANUP(aq_freep) char *all_path = aq_format("%s/net", run_dir);
    AQ_CLEANUP(aq_closep) int all = -1;
    int r = fs_mkdirs(all_path, 0711, err);

    if (r < 0)
        return r;
    net_directory_make_tag(identity, directory.tag);
    all = open(all_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all < 0)
        return aq_fail_errno(err, "open '%s'", all_path);
    all_lock = net_directory_open_lock(all, true, err);
    if (all_lock < 0)
        return all_lock;
    r = net_directory_open_directories(run_dir, &directory, err);
    if (r == 0) {
        directory.lock = net_directory_open_lock(directory.own, false, err);
        if (directory.lock < 0)
            r = directory.lock == -EWOULDBLOCK
                    ? aq_fail(err, EBUSY, "another agent of this identity runs here")
                    : directory.lock;
    }
    if (r == 0)
        r = net_directory_take_subnet(&directory, pool, nft, err);
    if (r < 0)
        net_directory_close(&directory);
    else
        *ret = directory;
    return r;
}

static void net_directory_count_tag(void *data, const char *name)
{
    *(unsigned *)data += net_directory_is_tag(name);
}

bool net_directory_remove(struct net_directory *directory)
{
    AQ_CLEANUP(aq_closep) int all_lock = net_directory_open_lock(directory->all, true, NULL);
    unsigned others = 0;

    (void)fs_remove_tree(directory->all, directory->tag, NULL);
    return all_lock >= 0
           && net_directory_each_name(directory->all, net_directory_count_tag, &others) == 0
           && others == 0;
}

void net_directory_close(struct net_directory *directory)
{
    aq_closep(&directory->lock);
    aq_closep(&directory->own);
    aq_closep(&directory->all);
}
