/* SPDX-License-Identifier: Apache-2.0 */
/* claims.c - what the agents of one machine have claimed for themselves */
#include "agent/resources/claims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "model/slot.h"

#define FILE_MAX_BYTES (8u << 20)
#define NAME_LEN 21 /* 16 digits and ".json" */

struct claims {
    char *id, *state;
    char name[NAME_LEN + 1]; /* of our file */
    int directory, file;     /* the file is locked as long as we run; -1 = none */
    char note[200];
};

/* FNV-1a: the same in every process. */
static void claims_make_name(const char *id, const char *state, char name[NAME_LEN + 1])
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (const char *at = id; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    hash = (hash ^ '\n') * UINT64_C(1099511628211);
    for (const char *at = state; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    (void)snprintf(name, NAME_LEN + 1, "%016" PRIx64 ".json", hash);
}

const char *claims_get_note(const struct claims *claims)
{
    return claims->note;
}

/* Directories of kernels below an agent's state directory; if in doubt there are. */
static bool claims_has_kernels(const char *state)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/kernels", state);
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct uuid id;
    bool found = false;

    while (dir && !found && (entry = readdir(dir)))
        found = uuid_parse(entry->d_name, &id) == 0;
    if (dir)
        (void)closedir(dir);
    return found;
}

static void claims_open_directory(struct claims *claims, const char *path)
{
    struct aq_error err = { 0 };

    claims->directory = fs_mkdirs(path, 0755, &err) < 0
                            ? -1
                            : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (claims->directory >= 0 && faccessat(claims->directory, ".", W_OK, 0) < 0)
        aq_closep(&claims->directory);
    if (claims->directory < 0)
        (void)snprintf(claims->note, sizeof(claims->note),
                       "what other agents of this machine offer is not looked at: %.100s cannot be "
                       "written",
                       path);
}

void claims_free(struct claims *claims)
{
    if (!claims)
        return;
    if (claims->file >= 0 && !claims_has_kernels(claims->state))
        (void)unlinkat(claims->directory, claims->name, 0);
    aq_closep(&claims->file);
    aq_closep(&claims->directory);
    free(claims->id);
    free(claims->state);
    free(claims);
}

int claims_new(const char *run_dir, const char *id, const char *state, struct claims **ret,
               struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/claims", run_dir);
    struct claims *claims = aq_alloc(sizeof(*claims));

    *claims = (struct claims){
        .id = aq_strdup(id), .state = realpath(state, NULL), .directory = -1, .file = -1
    };
    if (!claims->state) {
        int r = aq_fail_errno(err, "resolve '%s'", state);

        claims_free(claims);
        return r;
    }
    claims_make_name(id, state, claims->name);
    claims_open_directory(claims, path);
    *ret = claims;
    return 0;
}

/* ---- what others have ---- */

struct others {
    struct claims *claims;
    const struct claim *wanted;
    int64_t memory_bytes; /* sum of theirs */
    char memory_of[100];  /* one of them */
    struct aq_error *err;
};

static bool claims_is_locked(int file)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int claims_reject(const struct others *o, const json_t *theirs, const char *what,
                         const char *name)
{
    const char *id = json_string_value(json_object_get(theirs, "agent"));
    const char *state = json_string_value(json_object_get(theirs, "state"));

    return aq_fail_field(
        o->err, EBUSY, "resource.allocation-mode",
        "%s%s is of agent '%.64s' (%.100s) already; divide the machine with "
        "resource.allocation-mode, part, cores, mem and devices, or start all of its "
        "agents with --shared",
        what, name, id ? id : "", state ? state : "");
}

static int claims_compare_cores(const struct others *o, const json_t *theirs)
{
    const json_t *cores = json_object_get(theirs, "cores"), *core;
    char name[24];
    size_t i;

    json_array_foreach(cores, i, core)
        for (size_t k = 0; k < o->wanted->core_count; k++)
            if (json_integer_value(core) == o->wanted->cores[k]) {
                (void)snprintf(name, sizeof(name), "%d", o->wanted->cores[k]);
                return claims_reject(o, theirs, "core ", name);
            }
    return 0;
}

static int claims_compare_device(const struct others *o, const json_t *theirs, const char *slot,
                                 const char *id, int64_t amount)
{
    for (size_t i = 0; i < o->wanted->device_count; i++) {
        const struct claim_device *mine = &o->wanted->devices[i];
        size_t len = slot_name_device_len(mine->slot_name);

        if (strcmp(mine->id, id) != 0 || strncmp(mine->slot_name, slot, len) != 0
            || (slot[len] && slot[len] != '.'))
            continue;
        /* the same hardware: together no more than it is, and in one way */
        if (strcmp(mine->slot_name, slot) != 0 || amount > mine->whole - mine->amount)
            return claims_reject(o, theirs, "device ", id);
    }
    return 0;
}

static int claims_compare_devices(const struct others *o, const json_t *theirs)
{
    const json_t *devices = json_object_get(theirs, "devices"), *device;
    int r = 0;
    size_t i;

    json_array_foreach(devices, i, device) {
        const char *slot = json_string_value(json_array_get(device, 0));
        const char *id = json_string_value(json_array_get(device, 1));

        if (r == 0 && slot && id)
            r = claims_compare_device(o, theirs, slot, id,
                                      json_integer_value(json_array_get(device, 2)));
    }
    return r;
}

static int claims_compare(struct others *o, const json_t *theirs)
{
    int64_t bytes = json_integer_value(json_object_get(theirs, "memory"));
    bool is_shared = json_is_true(json_object_get(theirs, "shared"));
    const char *id = json_string_value(json_object_get(theirs, "agent"));
    int r;

    if (is_shared && o->wanted->is_shared)
        return 0;
    r = claims_compare_cores(o, theirs);
    if (r == 0)
        r = claims_compare_devices(o, theirs);
    if (__builtin_add_overflow(o->memory_bytes, bytes, &o->memory_bytes))
        o->memory_bytes = INT64_MAX;
    (void)snprintf(o->memory_of, sizeof(o->memory_of), "%s", id ? id : "");
    return r;
}

static int claims_look_at(struct others *o, const char *name)
{
    AQ_CLEANUP(aq_closep) int file = openat(o->claims->directory, name,
                                            O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *state;
    json_t *theirs;
    int r = 0;

    if (file < 0 || fs_read(o->claims->directory, name, FILE_MAX_BYTES, &text, NULL) < 0)
        return 0;
    theirs = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    state = json_string_value(json_object_get(theirs, "state"));
    if (claims_is_locked(file) || (state && claims_has_kernels(state)))
        r = claims_compare(o, theirs);
    else
        (void)unlinkat(o->claims->directory, name, 0);
    json_decref(theirs);
    return r;
}

static int claims_check_others(struct claims *claims, const struct claim *claim,
                               struct aq_error *err)
{
    struct others o = { .claims = claims, .wanted = claim, .err = err };
    int copy = openat(claims->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!dir) {
        aq_closep(&copy);
        return aq_fail_errno(err, "claims of agents");
    }
    while (r == 0 && (entry = readdir(dir)))
        if (strlen(entry->d_name) == NAME_LEN && strcmp(entry->d_name, claims->name) != 0)
            r = claims_look_at(&o, entry->d_name);
    (void)closedir(dir);
    if (r == 0 && o.memory_bytes > 0 && claim->memory_bytes > 0
        && claim->memory_bytes > claim->machine_bytes - o.memory_bytes)
        r = aq_fail_field(err, EBUSY, "resource.mem",
                          "of %" PRId64
                          " MiB of memory other agents of this machine ('%s') have %" PRId64
                          ", which leaves less than the %" PRId64 " wanted; set resource.mem "
                          "or part",
                          claim->machine_bytes >> 20, o.memory_of, o.memory_bytes >> 20,
                          claim->memory_bytes >> 20);
    return r;
}

/* ---- our own ---- */

static void claims_write_device(struct jsonw *w, const char *slot, const char *id, int64_t amount)
{
    jsonw_array_begin(w);
    jsonw_str(w, slot);
    jsonw_str(w, id);
    jsonw_int(w, amount);
    jsonw_array_end(w);
}

static void claims_write_former(struct jsonw *w, const json_t *former, const char *key)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(former, key), i, one) {
        if (json_is_integer(one))
            jsonw_int(w, json_integer_value(one));
        else if (json_is_string(json_array_get(one, 0)) && json_is_string(json_array_get(one, 1)))
            claims_write_device(w, json_string_value(json_array_get(one, 0)),
                                json_string_value(json_array_get(one, 1)),
                                json_integer_value(json_array_get(one, 2)));
    }
}

static void claims_write_claim(const struct claims *claims, const struct claim *claim,
                               const json_t *former, struct strbuf *out)
{
    int64_t before = json_integer_value(json_object_get(former, "memory"));
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "agent", claims->id);
    jsonw_member_str(&w, "state", claims->state);
    jsonw_key(&w, "shared");
    jsonw_bool(&w, claim->is_shared);
    jsonw_member_int(&w, "memory", AQ_MAX(claim->memory_bytes, before));
    jsonw_key(&w, "cores");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < claim->core_count; i++)
        jsonw_int(&w, claim->cores[i]);
    claims_write_former(&w, former, "cores");
    jsonw_array_end(&w);
    jsonw_key(&w, "devices");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < claim->device_count; i++)
        claims_write_device(&w, claim->devices[i].slot_name, claim->devices[i].id,
                            claim->devices[i].amount);
    claims_write_former(&w, former, "devices");
    jsonw_array_end(&w);
    jsonw_object_end(&w);
}

/* In place, as the lock is the file's. A crash in between leaves no JSON, and
 * such a file has nothing but stands for its agent's restart.
 */
static int claims_save(struct claims *claims, const struct strbuf *text, struct aq_error *err)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (claims->file < 0)
        claims->file = openat(claims->directory, claims->name,
                              O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (claims->file < 0 || fcntl(claims->file, F_OFD_SETLK, &lock) < 0
        || pwrite(claims->file, text->data, text->len, 0) != (ssize_t)text->len
        || ftruncate(claims->file, (off_t)text->len) < 0)
        return aq_fail_errno(err, "claim of this agent");
    return 0;
}

static json_t *claims_read_former(const struct claims *claims)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    return fs_read(claims->directory, claims->name, FILE_MAX_BYTES, &text, NULL) < 0
               ? NULL
               : json_loadb(text.data, text.len, 0, NULL);
}

int claims_set(struct claims *claims, const struct claim *claim, bool add, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int lock = -1;
    json_t *former = NULL;
    int r;

    if (claims->directory < 0)
        return 0;
    lock = openat(claims->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return aq_fail_errno(err, "claims of agents");
    r = claims_check_others(claims, claim, err);
    if (r < 0)
        return r;
    if (add && claims_has_kernels(claims->state))
        former = claims_read_former(claims);
    claims_write_claim(claims, claim, former, &text);
    json_decref(former);
    return claims_save(claims, &text, err);
}
