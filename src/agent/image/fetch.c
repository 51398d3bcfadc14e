/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - runs skopeo for manifests, configurations and blobs, and explains its failures */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/image/store_layout.h"
#include "agent/settings/image_registries.h"
#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fs.h"

#define ARGS_MAX 24
#define POLICY_DEFAULT "/etc/containers/policy.json"

/* ---- registries.conf ---- */

int fetch_write_registries(struct images *images, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = images_path(images, "registries.conf");

    image_registries_write(images->settings, &text);
    if (!path || !strbuf_ok(&text))
        return aq_fail_oom(err);
    return text.len ? fs_write_quick(AT_FDCWD, path, text.data, text.len, 0600, err)
                    : fs_remove_tree(AT_FDCWD, path, err);
}

/* ---- logins ---- */

#define FETCH_LOGINS "logins.json"

int images_set_logins(struct images *images, const char *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = images_path(images, FETCH_LOGINS);

    if (!path)
        return aq_fail_oom(err);
    return text ? fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, err)
                : fs_remove_tree(AT_FDCWD, path, err);
}

/* ---- skopeo's arguments ---- */

struct fetch_command {
    const char *args[ARGS_MAX];
    size_t count;
    char *owned[ARGS_MAX];
    size_t owned_count;
    bool failed;
};

static void fetch_add(struct fetch_command *command, const char *arg)
{
    if (command->count < ARGS_MAX - 1)
        command->args[command->count++] = arg;
    else
        command->failed = true;
}

static void fetch_add_owned(struct fetch_command *command, char *arg)
{
    if (!arg || command->owned_count == ARGS_MAX) {
        free(arg);
        command->failed = true;
        return;
    }
    command->owned[command->owned_count++] = arg;
    fetch_add(command, arg);
}

static void fetch_command_done(struct fetch_command *command)
{
    for (size_t i = 0; i < command->owned_count; i++)
        free(command->owned[i]);
}

/* What skopeo calls it. With a digest, exactly that one of a registry. */
static char *fetch_source_of(const struct reference *ref, const char *digest)
{
    if (ref->form != REFERENCE_REGISTRY)
        return strdup(ref->text);
    if (digest || ref->digest)
        return aq_format("docker://%s/%s@%s", ref->registry, ref->repository,
                         digest ? digest : ref->digest);
    return aq_format("docker://%s/%s:%s", ref->registry, ref->repository, ref->tag);
}

/* An option with a file of the store, if it is there. */
static void fetch_add_file(struct images *images, struct fetch_command *command, const char *option,
                           const char *name)
{
    char *path = images_path(images, name);

    if (path && access(path, R_OK) == 0) {
        fetch_add(command, option);
        fetch_add_owned(command, path);
    } else {
        command->failed |= !path;
        free(path);
    }
}

static void fetch_begin(struct images *images, struct fetch_command *command, const char *verb)
{
    const struct settings *settings = images->settings;

    fetch_add(command, settings->image_skopeo ? settings->image_skopeo : "skopeo");
    fetch_add_owned(command, aq_format("--command-timeout=%llds",
                                       (long long)(settings->image_timeout_usec / USEC_PER_SEC)));
    fetch_add_file(images, command, "--registries-conf", "registries.conf");
    if (settings->image_policy) {
        fetch_add(command, "--policy");
        fetch_add(command, settings->image_policy);
    } else if (access(POLICY_DEFAULT, R_OK) < 0) {
        fetch_add(command, "--insecure-policy");
    }
    fetch_add(command, verb);
    fetch_add(command, "--retry-times=2");
    if (settings->image_auth) {
        fetch_add(command, "--authfile");
        fetch_add(command, settings->image_auth);
    } else {
        fetch_add_file(images, command, "--authfile", FETCH_LOGINS);
    }
}

static int fetch_run(struct images *images, struct fetch_command *command,
                     const struct tool_events *events, void *data, struct tool **ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *tmpdir = images_path(images, "pulls");
    int r = command->failed || !tmpdir ? aq_fail_oom(err)
                                       : tool_start(images->loop, command->args, tmpdir,
                                                    images->pull_group, events, data, ret, err);

    fetch_command_done(command);
    return r;
}

int fetch_manifest(struct images *images, const struct reference *ref, const char *digest,
                   const struct tool_events *events, void *data, struct tool **ret,
                   struct aq_error *err)
{
    struct fetch_command command = { .count = 0 };

    fetch_begin(images, &command, "inspect");
    fetch_add(&command, "--raw");
    fetch_add_owned(&command, fetch_source_of(ref, digest));
    return fetch_run(images, &command, events, data, ret, err);
}

int fetch_config(struct images *images, const struct reference *ref, const char *digest,
                 const struct tool_events *events, void *data, struct tool **ret,
                 struct aq_error *err)
{
    struct fetch_command command = { .count = 0 };

    fetch_begin(images, &command, "inspect");
    fetch_add(&command, "--raw");
    fetch_add(&command, "--config");
    fetch_add_owned(&command, fetch_source_of(ref, digest));
    return fetch_run(images, &command, events, data, ret, err);
}

int fetch_blobs(struct images *images, const struct reference *ref, const char *digest,
                const char *view, const char *directory, const struct tool_events *events,
                void *data, struct tool **ret, struct aq_error *err)
{
    struct fetch_command command = { .count = 0 };

    fetch_begin(images, &command, "copy");
    fetch_add(&command, "--quiet");
    fetch_add(&command, "--dest-oci-accept-uncompressed-layers");
    fetch_add_owned(&command,
                    view ? aq_format("oci:%s:image", view) : fetch_source_of(ref, digest));
    fetch_add_owned(&command, aq_format("oci:%s:image", directory));
    return fetch_run(images, &command, events, data, ret, err);
}

/* ---- what went wrong ---- */

#define LOGIN_ADVICE "'aliquot admin registry' keeps logins of registries"

static const struct {
    const char *words;
    int code;
    const char *kind, *advice;
} complaints[] = {
    { "failed to execute", ENOENT, "image-pull-failed", "install skopeo on this node" },
    { "manifest unknown", ENOENT, "image-not-found", "check name and tag" },
    { "name unknown", ENOENT, "image-not-found", "check the repository's name" },
    { "repository not known", ENOENT, "image-not-found", "check the repository's name" },
    { "no such file or directory", ENOENT, "image-not-found", "check the path on the node" },
    { "unauthorized", EACCES, "image-unauthorized", LOGIN_ADVICE },
    { "authentication required", EACCES, "image-unauthorized", LOGIN_ADVICE },
    { "denied", EACCES, "image-unauthorized", LOGIN_ADVICE },
    { "no space left", ENOSPC, "image-no-space", "make room or remove images" },
    { "HTTP response to HTTPS client", EPROTO, "image-registry",
      "the registry has no TLS: [image] insecure admits that" },
    { "certificate", EPROTO, "image-registry", "the registry's certificate is not trusted" },
    { "connection refused", EHOSTUNREACH, "image-registry", "is the registry running?" },
    { "no such host", EHOSTUNREACH, "image-registry", "check the registry's name" },
    { "timeout", EHOSTUNREACH, "image-registry", "is the registry reachable from this node?" },
    { "deadline exceeded", EHOSTUNREACH, "image-registry",
      "is the registry reachable from this node?" },
};

/* The text of the last msg="…" that skopeo logged, else the last line. */
static char *fetch_last_message(const char *complaint)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *at = NULL;

    for (const char *found = complaint; (found = strstr(found, "msg=\"")); found += 5)
        at = found + 5;
    for (; at && *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        strbuf_addc(&text, *at);
    }
    if (!at)
        strbuf_adds(&text, complaint);
    while (text.len && text.data[text.len - 1] == '\n')
        strbuf_truncate(&text, text.len - 1);
    return strbuf_steal(&text);
}

/* skopeo repeats the name that it was given. */
static const char *fetch_without_name(const char *text)
{
    const char *end = strncmp(text, "Error parsing image name \"", 26) == 0
                          ? strstr(text + 26, "\": ")
                          : NULL;

    return end ? end + 3 : text;
}

int fetch_failed(const struct reference *ref, int status, const char *complaint,
                 struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *message = fetch_last_message(complaint);
    const char *text = fetch_without_name(message ? message : "");

    for (size_t i = 0; i < AQ_COUNT(complaints); i++)
        if (strcasestr(text, complaints[i].words))
            return aq_fail_as(err, complaints[i].code, complaints[i].kind, "image",
                              "image '%.80s': %.160s: %s", ref->text, text, complaints[i].advice);
    return aq_fail_as(err, EIO, "image-pull-failed", "image",
                      "image '%.80s' could not be fetched: %.180s%s", ref->text, text,
                      status > 128 ? " (skopeo was killed)" : "");
}

void image_hide_failure(const char *name, const struct aq_error *failure, struct aq_error *ret)
{
    const char *kind = failure->kind ? failure->kind : "";

    *ret = *failure;
    if (strcmp(kind, "image-registry") == 0 || strcmp(kind, "image-pull-failed") == 0)
        (void)aq_fail_as(
            ret, EIO, "image-pull-failed", "image",
            "image '%.80s' could not be fetched from its registry: check its name; the "
            "agent's log says what happened",
            name);
    else if (strcmp(kind, "image-not-found") == 0)
        (void)aq_fail_as(ret, ENOENT, failure->kind, "image",
                         "image '%.80s' was not found: check its name and tag", name);
    else if (strcmp(kind, "image-unauthorized") == 0)
        (void)aq_fail_as(ret, EACCES, failure->kind, "image",
                         "image '%.80s': the agents may not fetch it, or it is not there", name);
}
