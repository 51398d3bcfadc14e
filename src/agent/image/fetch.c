/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - runs skopeo and aliquot-fetch, and explains their failures */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/image/store_layout.h"
#include "agent/settings/image_registries.h"
#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"

#define ARGS_MAX 24
#define INSPECT_USEC (600 * USEC_PER_SEC) /* with pauses that the registry asks skopeo for */
#define POLICY_DEFAULT "/etc/containers/policy.json"

/* ---- registries.conf ---- */

int fetch_write_registries(struct images *images, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, former = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = images_path(images, "registries.conf");

    image_registries_write(images->settings, &text);
    if (text.len && fs_read(AT_FDCWD, path, text.len, &former, NULL) == 0
        && strcmp(former.data, text.data) == 0)
        return 0; /* the disk may be full */
    return text.len ? fs_write_quick(AT_FDCWD, path, text.data, text.len, 0600, err)
                    : fs_remove_tree(AT_FDCWD, path, err);
}

/* ---- logins ---- */

#define FETCH_LOGINS "logins.json"

int images_set_logins(struct images *images, const char *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = images_path(images, FETCH_LOGINS);

    return text ? fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, err)
                : fs_remove_tree(AT_FDCWD, path, err);
}

/* ---- skopeo's arguments ---- */

struct fetch_command {
    const char *args[ARGS_MAX];
    size_t count;
    char *owned[ARGS_MAX];
    size_t owned_count;
};

static void fetch_add(struct fetch_command *command, const char *arg)
{
    command->args[command->count++] = arg;
}

static void fetch_add_owned(struct fetch_command *command, char *arg)
{
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
        return aq_strdup(ref->text);
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

    if (access(path, R_OK) == 0) {
        fetch_add(command, option);
        fetch_add_owned(command, path);
    } else {
        free(path);
    }
}

static void fetch_add_logins(struct images *images, struct fetch_command *command)
{
    if (images->settings->image_auth) {
        fetch_add(command, "--authfile");
        fetch_add(command, images->settings->image_auth);
    } else {
        fetch_add_file(images, command, "--authfile", FETCH_LOGINS);
    }
}

static void fetch_begin(struct images *images, struct fetch_command *command, const char *verb)
{
    const struct settings *settings = images->settings;
    bool is_small = strcmp(verb, "inspect") == 0;
    int64_t limit_usec = is_small ? AQ_MIN(INSPECT_USEC, settings->image_timeout_usec / 4)
                                  : settings->image_timeout_usec;

    fetch_add(command, settings->image_skopeo ? settings->image_skopeo : "skopeo");
    fetch_add_owned(command, aq_format("--command-timeout=%llds",
                                       (long long)AQ_MAX(limit_usec / USEC_PER_SEC, 1)));
    fetch_add_file(images, command, "--registries-conf", "registries.conf");
    if (settings->image_policy) {
        fetch_add(command, "--policy");
        fetch_add(command, settings->image_policy);
    } else if (access(POLICY_DEFAULT, R_OK) < 0) {
        fetch_add(command, "--insecure-policy");
    }
    fetch_add(command, verb);
    fetch_add_logins(images, command);
}

static int fetch_run(struct images *images, struct fetch_command *command,
                     const struct tool_events *events, void *data, struct tool **ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *tmpdir = images_path(images, "pulls");
    int r = tool_start(images->loop, command->args, tmpdir, images->pull_group, events, data, ret,
                       err);

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

int fetch_layers(struct images *images, const struct reference *ref, const char *directory,
                 const struct tool_events *events, void *data, struct tool **ret,
                 struct aq_error *err)
{
    int64_t limit_sec = images->settings->image_timeout_usec / USEC_PER_SEC;
    struct fetch_command command = { .count = 0 };

    fetch_add(&command, images->fetch_program);
    fetch_add_owned(&command, aq_format("--timeout=%lld", (long long)AQ_MAX(limit_sec, 1)));
    if (image_registries_may_lack_tls(images->settings, ref))
        fetch_add(&command, "--insecure");
    fetch_add_logins(images, &command);
    fetch_add(&command, "--registry");
    fetch_add(&command, ref->registry);
    fetch_add(&command, "--repository");
    fetch_add(&command, ref->repository);
    fetch_add(&command, "--directory");
    fetch_add(&command, directory);
    return fetch_run(images, &command, events, data, ret, err);
}

/* ---- what went wrong ---- */

#define LOGIN_ADVICE "'aliquot admin registry' keeps logins of registries"
#define REACH_ADVICE "is the registry reachable from this node?"

/* The first whose words are in what skopeo says. Of the kind "image-registry" each has a code of
 * its own, by which users are told the cause, but not what answered.
 */
static const struct fetch_complaint {
    const char *words;
    int code;
    const char *kind, *cause, *advice;
} complaints[] = {
    { "failed to execute", ENOENT, "image-pull-failed", "skopeo is missing",
      "install skopeo on this node" },
    { "manifest unknown", ENOENT, "image-not-found", "not found", "check name and tag" },
    { "name unknown", ENOENT, "image-not-found", "not found", "check the repository's name" },
    { "repository not known", ENOENT, "image-not-found", "not found",
      "check the repository's name" },
    { "status code from registry 404", ENODATA, "image-registry",
      "the registry lacks a part of the image", "push it again" },
    { "StatusCode: 404", ENOENT, "image-not-found", "not found", "check name and tag" },
    { "no such file or directory", ENOENT, "image-not-found", "not found",
      "check the path on the node" },
    { "unauthorized", EACCES, "image-unauthorized", "a login is needed", LOGIN_ADVICE },
    { "authentication required", EACCES, "image-unauthorized", "a login is needed", LOGIN_ADVICE },
    { "denied", EACCES, "image-unauthorized", "access is denied", LOGIN_ADVICE },
    { "StatusCode: 403", EACCES, "image-unauthorized", "access is denied", LOGIN_ADVICE },
    { "403 (Forbidden)", EACCES, "image-unauthorized", "access is denied", LOGIN_ADVICE },
    { "rejected by policy", EPERM, "image-registry", "the node's policy for signatures rejects it",
      "policy in [image] of agent.toml" },
    { "no space left", ENOSPC, "image-no-space", "the disk is full", "make room or remove images" },
    { "disk quota exceeded", ENOSPC, "image-no-space", "a quota of the disk is exceeded",
      "raise it or remove images" },
    { "toomanyrequests", EBUSY, "image-registry", "the registry limits how often it is asked",
      "try later; " LOGIN_ADVICE },
    { "too many requests", EBUSY, "image-registry", "the registry limits how often it is asked",
      "try later; " LOGIN_ADVICE },
    { "parsing manifest", EBADMSG, "image-registry",
      "the registry says another type of it than it has", "push it again with a current tool" },
    { "HTTP response to HTTPS client", EPROTONOSUPPORT, "image-registry", "the registry has no TLS",
      "[image] insecure admits that" },
    { "certificate", EPROTO, "image-registry", "the registry's certificate is not trusted",
      "the node has to know who signed it" },
    { "connection refused", ECONNREFUSED, "image-registry", "connection refused",
      "is the registry running?" },
    { "no such host", ENXIO, "image-registry", "no such host", "check the registry's name" },
    { "server misbehaving", ENXIO, "image-registry", "no such host",
      "the node's name servers do not know it" },
    { "no route to host", EHOSTUNREACH, "image-registry", "no route to the registry",
      REACH_ADVICE },
    { "network is unreachable", EHOSTUNREACH, "image-registry", "no route to the registry",
      REACH_ADVICE },
    { "connection reset", ECONNRESET, "image-registry", "the connection broke", REACH_ADVICE },
    { "unexpected EOF", EPIPE, "image-registry", "the registry closed the connection early",
      REACH_ADVICE },
    { "\": EOF", EPIPE, "image-registry", "the registry closed the connection early",
      REACH_ADVICE },
    { "stream error", EPIPE, "image-registry", "the registry closed the connection early",
      REACH_ADVICE },
    { "StatusCode: 408", ETIMEDOUT, "image-registry", "the registry does not answer in time",
      REACH_ADVICE },
    { "timeout", ETIMEDOUT, "image-registry", "the registry does not answer in time",
      REACH_ADVICE },
    { "deadline exceeded", ETIMEDOUT, "image-registry", "the registry does not answer in time",
      REACH_ADVICE },
    { "StatusCode: 5", EREMOTEIO, "image-registry", "the registry has an error of its own",
      "try later, or see its log" },
    { "HTTP status: 5", EREMOTEIO, "image-registry", "the registry has an error of its own",
      "try later, or see its log" },
    { "status code from registry 5", EREMOTEIO, "image-registry",
      "the registry has an error of its own", "try later, or see its log" },
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
    const char *text = fetch_without_name(message);

    for (size_t i = 0; i < AQ_COUNT(complaints); i++)
        if (strcasestr(text, complaints[i].words))
            return aq_fail_as(err, complaints[i].code, complaints[i].kind, "image",
                              "image '%.80s': %s: %s (%.130s)", ref->text, complaints[i].cause,
                              complaints[i].advice, text);
    return aq_fail_as(err, EIO, "image-pull-failed", "image",
                      "image '%.80s' could not be fetched: %.180s%s", ref->text, text,
                      status > 128 ? " (skopeo was killed)" : "");
}

int fetch_fail_code(const struct reference *ref, int code, const char *text, struct aq_error *err)
{
    if (fs_is_full(code))
        code = ENOSPC;
    if (code == EAGAIN)
        code = EBUSY;
    if (code == EBADMSG)
        return aq_fail_as(err, code, "image-damaged", "image", "image '%.80s': %.230s", ref->text,
                          text);
    for (size_t i = 0; i < AQ_COUNT(complaints); i++)
        if (complaints[i].code == code)
            return aq_fail_as(err, code, complaints[i].kind, "image",
                              "image '%.80s': %s: %s (%.130s)", ref->text, complaints[i].cause,
                              complaints[i].advice, text);
    return aq_fail_as(err, code, "image-pull-failed", "image",
                      "image '%.80s' could not be fetched: %.180s", ref->text, text);
}

/* ---- what users are told ---- */

struct fetch_search {
    const struct reference *ref;
    bool is_named;
};

static void fetch_compare_registry(void *data, const char *host, uint16_t port)
{
    struct fetch_search *search = data;
    size_t len = strlen(host);
    const char *rest = search->ref->registry + len;

    if (strncmp(search->ref->registry, host, len) == 0
        && ((*rest == '\0' && (port == 0 || port == 443))
            || (*rest == ':' && strtoul(rest + 1, NULL, 10) == (port ? port : 443))))
        search->is_named = true;
}

/* May they know how the registry fails? What a container can find out, too, is no secret, nor
 * that of a registry that the administrator has named; what else listens in the node's network is.
 */
static bool fetch_may_tell(const struct images *images, const struct reference *ref, int code)
{
    struct fetch_search search = { .ref = ref };

    image_registries_each(images->settings, fetch_compare_registry, &search);
    return images->pull_group || code == ENXIO || search.is_named
           || strcmp(ref->registry, REFERENCE_REGISTRY_DEFAULT) == 0;
}

static const char *fetch_cause(int code)
{
    for (size_t i = 0; i < AQ_COUNT(complaints); i++)
        if (complaints[i].code == code && strcmp(complaints[i].kind, "image-registry") == 0)
            return complaints[i].cause;
    return NULL;
}

void image_hide_failure(const struct images *images, const char *name,
                        const struct aq_error *failure, struct aq_error *ret)
{
    const char *kind = failure->kind ? failure->kind : "", *cause = fetch_cause(failure->code);
    AQ_CLEANUP(reference_done) struct reference ref = { .form = REFERENCE_HOST };

    *ret = *failure;
    if (reference_parse(name, images->settings->image_registry, &ref, NULL) < 0
        || ref.form != REFERENCE_REGISTRY)
        return;
    if (strcmp(kind, "image-registry") == 0 && cause && fetch_may_tell(images, &ref, failure->code))
        (void)aq_fail_as(ret, failure->code, failure->kind, "image",
                         "image '%.80s' could not be fetched from its registry: %s; an "
                         "administrator sees more by 'aliquot image pull'",
                         name, cause);
    else if (strcmp(kind, "image-registry") == 0 || strcmp(kind, "image-pull-failed") == 0)
        (void)aq_fail_as(ret, EIO, "image-pull-failed", "image",
                         "image '%.80s' could not be fetched from its registry; an administrator "
                         "can find the cause by 'aliquot image pull'",
                         name);
    else if (strcmp(kind, "image-not-found") == 0)
        (void)aq_fail_as(ret, ENOENT, failure->kind, "image",
                         "image '%.80s' was not found: check its name and tag", name);
    else if (strcmp(kind, "image-unauthorized") == 0)
        (void)aq_fail_as(ret, EACCES, failure->kind, "image",
                         "image '%.80s': the registry refuses it (401, 403): the agents may not "
                         "fetch it, or it is not there; " LOGIN_ADVICE,
                         name);
}
