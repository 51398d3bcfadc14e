/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - loads one plugin and serves requests to it */
#include "accel/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "accel/results.h"
#include "base/arena.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"

/* ---- loading ---- */

static int host_check_plugin(const struct aq_accelerator *plugin, const char *path,
                             struct aq_error *err)
{
    if (plugin->abi != AQ_ACCELERATOR_ABI)
        return aq_fail(err, ENOEXEC,
                       "'%s' is made for version %u of the plugin interface, this is"
                       " version %u: rebuild it",
                       path, plugin->abi, AQ_ACCELERATOR_ABI);
    if (plugin->size != sizeof(*plugin))
        return aq_fail(err, ENOEXEC, "'%s': its description has %u bytes instead of %zu", path,
                       plugin->size, sizeof(*plugin));
    if (!plugin->open || !plugin->close || !plugin->describe || !plugin->attach)
        return aq_fail(err, ENOEXEC, "'%s' lacks one of open, close, describe, attach", path);
    return 0;
}

static void host_log_plugin(int level, const char *text)
{
    log_write(level <= LOG_LEVEL_ERR       ? LOG_LEVEL_ERR
              : level <= LOG_LEVEL_WARNING ? LOG_LEVEL_WARNING
              : level <= LOG_LEVEL_INFO    ? LOG_LEVEL_INFO
                                           : LOG_LEVEL_DEBUG,
              "%s", text ? text : "");
}

int host_open(const struct aq_accelerator *plugin, const char *path, const char *config,
              struct host *ret, struct aq_error *err)
{
    const char *root = getenv(ACCEL_ROOT_VARIABLE);
    struct aq_accelerator_out out;
    struct results results;
    int r = host_check_plugin(plugin, path, err);

    if (r < 0)
        return r;
    ret->plugin = plugin;
    ret->services = (struct aq_accelerator_host){ .abi = AQ_ACCELERATOR_ABI,
                                                  .size = sizeof(ret->services),
                                                  .root = root ? root : "",
                                                  .config = config,
                                                  .log = host_log_plugin };
    results_init(&results);
    out = results_out(&results);
    r = plugin->open(&ret->services, &out, &ret->self);
    if (r < 0)
        (void)aq_fail(err, -r, "%s", results.error[0] ? results.error : strerror(-r));
    results_done(&results);
    return r < 0 ? r : 0;
}

int host_load(const char *path, const char *config, struct host *ret, struct aq_error *err)
{
    const struct aq_accelerator *plugin;
    const char *why;

    ret->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    why = ret->handle ? NULL : dlerror();
    if (!ret->handle)
        return aq_fail(err, ENOEXEC, "cannot load it: %s", why ? why : path);
    plugin = dlsym(ret->handle, AQ_ACCELERATOR_SYMBOL);
    if (!plugin)
        return aq_fail(err, ENOEXEC, "'%s' is no accelerator plugin: it has no symbol '%s'", path,
                       AQ_ACCELERATOR_SYMBOL);
    /* what was loaded stays after a failure: the process ends, and destructors may crash */
    return host_open(plugin, path, config, ret, err);
}

/* ---- requests ---- */

static int host_read_grants(const json_t *list, struct arena *arena,
                            struct aq_accelerator_grant **ret, size_t *ret_count,
                            struct aq_error *err)
{
    size_t count = json_array_size(list);
    struct aq_accelerator_grant *grants = arena_array(arena, count + 1, sizeof(*grants));

    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);

        grants[i].slot = json_string_value(json_array_get(one, 0));
        grants[i].device = json_string_value(json_array_get(one, 1));
        grants[i].amount = json_integer_value(json_array_get(one, 2));
        if (!grants[i].slot || !grants[i].device)
            return aq_fail(err, EINVAL, "a grant is [slot, device, amount]");
    }
    *ret = grants;
    *ret_count = count;
    return 0;
}

static int host_attach(struct host *host, const json_t *request,
                       const struct aq_accelerator_out *out, struct arena *arena,
                       struct aq_error *err)
{
    struct aq_accelerator_grant *grants;
    size_t count;
    int r = host_read_grants(json_object_get(request, "grants"), arena, &grants, &count, err);

    return r < 0 ? r : host->plugin->attach(host->self, grants, count, out);
}

static int host_read_target(const json_t *from, struct arena *arena,
                            struct aq_accelerator_target *ret, struct aq_error *err)
{
    const json_t *list = json_object_get(from, "pids");
    size_t count = json_array_size(list);
    int32_t *pids = arena_array(arena, count + 1, sizeof(*pids));
    struct aq_accelerator_grant *grants;
    int r = host_read_grants(json_object_get(from, "grants"), arena, &grants, &ret->grant_count,
                             err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        pids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    ret->grants = grants;
    ret->pids = pids;
    ret->pid_count = count;
    return 0;
}

static int host_measure(struct host *host, const json_t *request,
                        const struct aq_accelerator_out *out, struct arena *arena,
                        struct aq_error *err)
{
    const json_t *list = json_object_get(request, "targets");
    size_t count = json_array_size(list);
    struct aq_accelerator_target *targets = arena_array(arena, count + 1, sizeof(*targets));
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = host_read_target(json_array_get(list, i), arena, &targets[i], err);
    if (r < 0 || !host->plugin->measure)
        return r;
    return host->plugin->measure(host->self, targets, count, out);
}

static int host_call(struct host *host, const json_t *request, struct results *results,
                     struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const char *name = json_string_value(json_object_get(request, "call"));
    const struct aq_accelerator_out out = results_out(results);
    int r;

    if (name && strcmp(name, ACCEL_DESCRIBE) == 0)
        r = host->plugin->describe(host->self, &out);
    else if (name && strcmp(name, ACCEL_ATTACH) == 0)
        r = host_attach(host, request, &out, &arena, err);
    else if (name && strcmp(name, ACCEL_MEASURE) == 0)
        r = host_measure(host, request, &out, &arena, err);
    else
        return aq_fail(err, ENOSYS, "there is no call '%.40s'", name ? name : "");
    if (r < 0 && !err->code)
        (void)aq_fail(err, -r, "%s", results->error[0] ? results->error : strerror(-r));
    return r < 0 ? r : 0;
}

static void host_write_error(struct strbuf *out, int64_t id, const struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "id", id);
    jsonw_member_str(&w, "error", err->text);
    jsonw_member_int(&w, "code", err->code);
    jsonw_object_end(&w);
}

int host_answer(struct host *host, const char *line, size_t len, struct strbuf *out,
                struct aq_error *err)
{
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    int64_t id = json_integer_value(json_object_get(request, "id"));
    struct aq_error failed = { 0 };
    struct results results;

    if (id <= 0) {
        json_decref(request);
        return aq_fail(err, EINVAL, "a request must be a JSON object with an id");
    }
    results_init(&results);
    if (host_call(host, request, &results, &failed) < 0) {
        host_write_error(out, id, &failed);
    } else {
        strbuf_addf(out, "{\"id\":%lld,\"result\":", (long long)id);
        results_write(&results, out);
        strbuf_addc(out, '}');
    }
    strbuf_addc(out, '\n');
    results_done(&results);
    json_decref(request);
    return 0;
}

/* Answer every whole line in 'in' and drop it. */
static int host_serve_lines(struct host *host, struct strbuf *in, int fd, struct aq_error *err)
{
    const char *end;

    while ((end = memchr(in->data, '\n', in->len))) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        size_t len = (size_t)(end - in->data);
        int r = host_answer(host, in->data, len, &out, err);

        if (r < 0)
            return r;
        r = fs_write_all(fd, out.data, out.len);
        if (r < 0)
            return aq_fail(err, -r, "answer: %s", strerror(-r));
        strbuf_consume(in, len + 1);
    }
    return in->len < ACCEL_LINE_MAX ? 0 : aq_fail(err, EMSGSIZE, "a request is too long");
}

int host_serve(struct host *host, int fd, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf in = STRBUF_INIT;
    int r = 0;

    while (r == 0) {
        ssize_t got;

        strbuf_reserve(&in, 65536);
        got = read(fd, in.data + in.len, 65536);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return 0;
        if (got < 0 && errno != EINTR)
            return aq_fail_errno(err, "read requests");
        if (got > 0) {
            in.len += (size_t)got;
            in.data[in.len] = '\0';
            r = host_serve_lines(host, &in, fd, err);
        }
    }
    return r;
}
