/* SPDX-License-Identifier: Apache-2.0 */
/* Image references as users write them. */
#include "model/reference.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"

#define LOWER_ALNUM "abcdefghijklmnopqrstuvwxyz0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define TAG_MAX 128
#define REPOSITORY_MAX 255

static const struct {
    const char *prefix;
    enum reference_form form;
} local_forms[] = {
    { "oci-archive:", REFERENCE_OCI_ARCHIVE },
    { "docker-archive:", REFERENCE_DOCKER_ARCHIVE },
    { "oci:", REFERENCE_OCI_LAYOUT },
    { "rootfs:", REFERENCE_ROOTFS },
};

static int reference_fail(struct aq_error *err, const char *text, const char *why)
{
    return aq_fail_field(err, EINVAL, "image", "image '%.100s': %s", text, why);
}

bool digest_is_valid(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strspn(text + 7, "0123456789abcdef") == 64
           && text[71] == '\0';
}

/* ---- local forms ---- */

/* Absolute, without "." and ".." parts, empty parts and control characters,
 * so that equal paths look equal and patterns mean what they say.
 */
static bool reference_is_plain_path(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    for (const char *part = path + 1;; part += strcspn(part, "/") + 1) {
        size_t len = strcspn(part, "/");

        if ((len == 0 && path[1]) || (len == 1 && part[0] == '.')
            || (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (part[len] == '\0')
            return true;
    }
}

static int reference_parse_local(const char *text, const char *rest, struct reference *ref,
                                 struct aq_error *err)
{
    const char *colon = ref->form == REFERENCE_ROOTFS ? NULL : strchr(rest, ':');
    size_t len = colon ? (size_t)(colon - rest) : strlen(rest);

    /* overlayfs parts its directories by ':' and reads '\' as an escape */
    if (strpbrk(rest, "\\") || (!colon && strchr(rest, ':')))
        return reference_fail(err, text, "a path may not have ':' or '\\'");
    ref->path = aq_strndup(rest, len);
    ref->name = colon ? aq_strdup(colon + 1) : NULL;
    ref->text = aq_strdup(text);
    if (!reference_is_plain_path(ref->path))
        return reference_fail(err, text,
                              "the path must be absolute and without '.', '..' and '//'");
    if (colon && (!colon[1] || colon[1] == '-' || strpbrk(colon + 1, "@ \t\r\n")))
        return reference_fail(err, text, "the name after the path is empty or has '@' or spaces");
    return 0;
}

/* ---- registry references ---- */

/* Lower-case letters and digits, parted by '.', one or two '_', or any number of '-'. */
static bool reference_is_repository_part(const char *at, size_t len)
{
    const char *end = at + len;

    while (at < end) {
        size_t word = strspn(at, LOWER_ALNUM), gap;

        at += word;
        if (!word || at > end)
            return false;
        if (at == end)
            return true;
        gap = *at == '-' ? strspn(at, "-") : *at == '.' ? 1 : strspn(at, "_");
        if (gap == 0 || (*at == '_' && gap > 2))
            return false;
        at += gap;
    }
    return false;
}

static bool reference_is_repository(const char *name)
{
    if (strlen(name) > REPOSITORY_MAX)
        return false;
    for (const char *part = name;; part += strcspn(part, "/") + 1) {
        size_t len = strcspn(part, "/");

        if (!reference_is_repository_part(part, len))
            return false;
        if (part[len] == '\0')
            return true;
    }
}

static bool reference_is_tag(const char *tag)
{
    size_t len = strlen(tag);

    return len > 0 && len <= TAG_MAX && tag[0] != '.' && tag[0] != '-'
           && strspn(tag, LOWER_ALNUM UPPER "_.-") == len;
}

/* A host name or IPv6 address in brackets, and a port. */
static bool reference_is_registry(const char *name)
{
    const char *host_end = name[0] == '[' ? strchr(name, ']') : name + strcspn(name, ":");
    size_t len = host_end ? (size_t)(host_end - name) : 0;

    if (len == 0)
        return false;
    if (name[0] == '[') {
        if (strspn(name + 1, "0123456789abcdefABCDEF:.") != len - 1)
            return false;
        host_end++;
    } else if (strspn(name, LOWER_ALNUM UPPER ".-") != len || strchr(".-", name[0])
               || strchr(".-", name[len - 1])) {
        return false;
    }
    if (*host_end == '\0')
        return true;
    len = strlen(host_end + 1);
    return *host_end == ':' && len >= 1 && len <= 5 && strspn(host_end + 1, "0123456789") == len;
}

/* The length of a registry at the front of 'text', 0 if there is none. */
static size_t reference_registry_length(const char *text)
{
    size_t len = strcspn(text, "/");

    if (text[len] == '\0')
        return 0;
    if (memchr(text, '.', len) || memchr(text, ':', len)
        || (len == 9 && strncmp(text, "localhost", 9) == 0))
        return len;
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            return len;
    return 0;
}

/* Cut ":TAG" and "@DIGEST" off 'name'. */
static int reference_cut_tail(const char *text, char *name, struct reference *ref,
                              struct aq_error *err)
{
    char *at = strchr(name, '@'), *slash, *colon;

    if (at) {
        *at = '\0';
        if (!digest_is_valid(at + 1))
            return reference_fail(err, text,
                                  "a digest is \"sha256:\" and 64 lower-case hex digits");
        ref->digest = aq_strdup(at + 1);
    }
    slash = strrchr(name, '/');
    colon = strchr(slash ? slash : name, ':');
    if (colon) {
        *colon = '\0';
        if (!reference_is_tag(colon + 1))
            return reference_fail(err, text,
                                  "a tag has 1 to 128 letters, digits, '_', '.' and '-', and "
                                  "does not begin with '.' or '-'");
        ref->tag = aq_strdup(colon + 1);
    } else if (!at)
        ref->tag = aq_strdup("latest");
    return 0;
}

static int reference_parse_remote(const char *text, const char *rest, const char *fallback,
                                  struct reference *ref, struct aq_error *err)
{
    size_t len = reference_registry_length(rest);
    AQ_CLEANUP(aq_freep) char *name = aq_strdup(len ? rest + len + 1 : rest);
    bool is_short;
    int r;

    ref->registry = len ? aq_strndup(rest, len)
                        : aq_strdup(fallback ? fallback : REFERENCE_REGISTRY_DEFAULT);
    if (len && !reference_is_registry(ref->registry))
        return reference_fail(err, text,
                              "the part before the first '/' is not a registry's address");
    r = reference_cut_tail(text, name, ref, err);
    if (r < 0)
        return r;
    is_short = strcmp(ref->registry, "docker.io") == 0 && !strchr(name, '/');
    ref->repository = is_short ? aq_format("library/%s", name) : aq_strdup(name);
    if (!reference_is_repository(ref->repository))
        return reference_fail(err, text,
                              "a repository has lower-case letters and digits, parted by '/', "
                              "'.', '_' or '-'");
    ref->text = aq_format("%s/%s%s%s%s%s", ref->registry, ref->repository, ref->tag ? ":" : "",
                          ref->tag ? ref->tag : "", ref->digest ? "@" : "",
                          ref->digest ? ref->digest : "");
    return 0;
}

int reference_parse(const char *text, const char *registry, struct reference *ret,
                    struct aq_error *err)
{
    struct reference ref = { .form = REFERENCE_REGISTRY };
    size_t len = strnlen(text, REFERENCE_MAX + 1), i = 0;
    int r;

    if (len == 0 || len > REFERENCE_MAX)
        return aq_fail_field(err, EINVAL, "image", "an image's name has 1 to %d bytes",
                             REFERENCE_MAX);
    while (i < AQ_COUNT(local_forms)
           && strncmp(text, local_forms[i].prefix, strlen(local_forms[i].prefix)) != 0)
        i++;
    if (i < AQ_COUNT(local_forms)) {
        ref.form = local_forms[i].form;
        r = reference_parse_local(text, text + strlen(local_forms[i].prefix), &ref, err);
    } else if (strcmp(text, "host") == 0 || strcmp(text, IMAGE_OF_FILES) == 0) {
        ref.form = strcmp(text, IMAGE_OF_FILES) == 0 ? REFERENCE_FILES : REFERENCE_HOST;
        ref.text = aq_strdup(text);
        r = 0;
    } else {
        r = reference_parse_remote(text, text + (strncmp(text, "docker://", 9) == 0 ? 9 : 0),
                                   registry, &ref, err);
    }
    if (r < 0)
        reference_done(&ref);
    else
        *ret = ref;
    return r;
}

void reference_done(struct reference *ref)
{
    free(ref->text);
    free(ref->registry);
    free(ref->repository);
    free(ref->tag);
    free(ref->digest);
    free(ref->path);
    free(ref->name);
    *ref = (struct reference){ .form = REFERENCE_REGISTRY };
}

/* ---- allow-lists ---- */

/* '*' stands for any characters; a pattern that ends before a '/' of 'name' admits
 * all that is below.
 */
static bool reference_matches(const char *pattern, size_t len, const char *name)
{
    const char *end = pattern + len, *star = NULL, *resume = NULL;

    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            resume = name;
        } else if (pattern < end && *pattern == *name) {
            pattern++;
            name++;
        } else if (pattern == end && (*name == '/' || pattern[-1] == '/')) {
            return true;
        } else if (star) {
            pattern = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

static char *reference_allow_name(const struct reference *ref)
{
    if (ref->form == REFERENCE_REGISTRY)
        return aq_format("%s/%s", ref->registry, ref->repository);
    return ref->path
               ? aq_strndup(ref->text, strlen(ref->text) - (ref->name ? strlen(ref->name) + 1 : 0))
               : aq_strdup(ref->text);
}

bool reference_is_allowed(const struct reference *ref, const char *const *patterns, size_t count)
{
    AQ_CLEANUP(aq_freep) char *name = reference_allow_name(ref);

    if (ref->form == REFERENCE_FILES)
        return true;
    for (size_t i = 0; name && i < count; i++) {
        const char *pattern = patterns[i];
        bool is_any = strcmp(pattern, "*") == 0;

        if (pattern[0]
            && (is_any ? ref->form == REFERENCE_REGISTRY
                       : reference_matches(pattern, strlen(pattern), name)))
            return true;
    }
    return false;
}

/* Behind "FORM:": a local image. */
static bool reference_names_form(const char *pattern)
{
    static const char *const local[] = { "rootfs:", "oci:", "oci-archive:", "docker-archive:" };

    for (size_t i = 0; i < AQ_COUNT(local); i++)
        if (strncmp(pattern, local[i], strlen(local[i])) == 0)
            return true;
    return false;
}

int reference_check_pattern(const char *pattern, struct aq_error *err)
{
    const char *slash = strrchr(pattern, '/'), *colon = strstr(pattern, ":/");

    if (!pattern[0])
        return aq_fail(err, EINVAL, "a pattern is empty");
    for (const char *c = pattern; *c; c++)
        if (*c < 0x20 || *c > 0x7e || (strchr(" ,\"\\@", *c) && !reference_names_form(pattern)))
            return aq_fail(err, EINVAL,
                           "'%.80s' has a character that no image's name has, or a "
                           "digest; only REGISTRY[/REPOSITORY] counts",
                           pattern);
    if (reference_names_form(pattern))
        return strchr(pattern, ':')[1] == '/' || strchr(pattern, ':')[1] == '*'
                   ? 0
                   : aq_fail(err, EINVAL, "'%.80s': a path is absolute", pattern);
    if (colon && colon[1] == '/')
        return aq_fail(err, EINVAL,
                       "'%.80s' is none of rootfs:/PATH, oci:/PATH, "
                       "oci-archive:/PATH, docker-archive:/PATH, REGISTRY[/REPOSITORY]",
                       pattern);
    if (slash && strchr(slash, ':'))
        return aq_fail(err, EINVAL,
                       "'%.80s' names a tag; whole repositories are admitted: leave "
                       "it out",
                       pattern);
    return 0;
}
