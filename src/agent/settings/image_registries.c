/* SPDX-License-Identifier: Apache-2.0 */
/* image_registries.c - the lists of [image] in agent.toml: allowed images, mirrors, registries
 * without TLS
 */
#include "agent/settings/image_registries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/reference.h"

#define REGISTRY_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:/[]"

/* ---- checking ---- */

/* "HOST[:PORT][/PATH]" */
static bool image_registries_is_valid(const char *text, size_t len)
{
    return len > 0 && text[0] != '/' && text[0] != ':' && strspn(text, REGISTRY_CHARS) >= len
           && !memmem(text, len, "//", 2);
}

static int image_registries_check_insecure(const char *value, struct aq_error *err)
{
    if (image_registries_is_valid(value, strlen(value)))
        return 0;
    return aq_fail_field(err, EINVAL, "image.insecure",
                         "image.insecure: '%.80s' is not the address of a registry, such as "
                         "registry.example:5000",
                         value);
}

static int image_registries_check_mirror(const char *value, struct aq_error *err)
{
    const char *equals = strchr(value, '=');

    if (equals && image_registries_is_valid(value, (size_t)(equals - value))
        && image_registries_is_valid(equals + 1, strlen(equals + 1)))
        return 0;
    return aq_fail_field(err, EINVAL, "image.mirrors",
                         "image.mirrors: '%.80s' is not REGISTRY=MIRROR, such as "
                         "docker.io=mirror.example:5000",
                         value);
}

static int image_registries_check_allow(const char *value, struct aq_error *err)
{
    struct aq_error why = { 0 };

    if (reference_check_pattern(value, &why) == 0)
        return 0;
    return aq_fail_field(err, EINVAL, "image.allow", "image.allow: %s", why.text);
}

static int image_registries_check_each(const struct conf_list *list,
                                       int (*check)(const char *, struct aq_error *),
                                       struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = check(list->items[i], err);
    return r;
}

int image_registries_check(const struct settings *settings, struct aq_error *err)
{
    int r = image_registries_check_each(&settings->image_allow, image_registries_check_allow, err);

    if (r == 0)
        r = image_registries_check_each(&settings->image_mirrors, image_registries_check_mirror,
                                        err);
    return r < 0 ? r
                 : image_registries_check_each(&settings->image_insecure,
                                               image_registries_check_insecure, err);
}

/* ---- where they are ---- */

/* "HOST[:PORT][/PATH]" */
static void image_registries_tell(const char *text, image_registries_fn *fn, void *data)
{
    size_t len = strcspn(text, ":/=");
    char host[256] = "";
    unsigned long port = text[len] == ':' ? strtoul(text + len + 1, NULL, 10) : 0;

    if (len == 0 || len >= sizeof(host) || text[strcspn(text, "*[")] || port > UINT16_MAX
        || (len == strlen("docker.io") && memcmp(text, "docker.io", len) == 0))
        return;
    memcpy(host, text, len);
    fn(data, host, (uint16_t)port);
}

/* Of the values of 'allow': "HOST[:PORT][/PATH]", not "oci:/PATH", "host" or a repository. */
static bool image_registries_is_host(const char *text)
{
    size_t len = strcspn(text, "/");

    return !strstr(text, ":/")
           && (memchr(text, '.', len) || memchr(text, ':', len)
               || (len == strlen("localhost") && memcmp(text, "localhost", len) == 0));
}

void image_registries_each(const struct settings *settings, image_registries_fn *fn, void *data)
{
    const struct conf_list *mirrors = &settings->image_mirrors, *allow = &settings->image_allow;

    if (settings->image_registry)
        image_registries_tell(settings->image_registry, fn, data);
    for (size_t i = 0; i < settings->image_insecure.count; i++)
        image_registries_tell(settings->image_insecure.items[i], fn, data);
    for (size_t i = 0; i < mirrors->count; i++) {
        image_registries_tell(mirrors->items[i], fn, data);
        image_registries_tell(strchr(mirrors->items[i], '=') + 1, fn, data);
    }
    for (size_t i = 0; i < allow->count; i++)
        if (image_registries_is_host(allow->items[i]))
            image_registries_tell(allow->items[i], fn, data);
}

/* ---- registries.conf ---- */

static bool image_registries_is_insecure(const struct settings *settings, const char *name,
                                         size_t len)
{
    for (size_t i = 0; i < settings->image_insecure.count; i++) {
        const char *item = settings->image_insecure.items[i];

        if (strlen(item) == len && memcmp(item, name, len) == 0)
            return true;
    }
    return false;
}

/* Is this the registry, before its "="? */
static bool image_registries_is_mirror_of(const char *mirror, const char *name, size_t len)
{
    return strncmp(mirror, name, len) == 0 && mirror[len] == '=';
}

/* Is the registry among the first 'count' mirrors'? */
static bool image_registries_is_before(const struct settings *settings, size_t count,
                                       const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (image_registries_is_mirror_of(settings->image_mirrors.items[i], name, len))
            return true;
    return false;
}

static void image_registries_write_registry(const struct settings *settings, const char *name,
                                            size_t len, struct strbuf *out)
{
    strbuf_addf(out, "\n[[registry]]\nprefix = \"%.*s\"\nlocation = \"%.*s\"\ninsecure = %s\n",
                (int)len, name, (int)len, name,
                image_registries_is_insecure(settings, name, len) ? "true" : "false");
    for (size_t i = 0; i < settings->image_mirrors.count; i++) {
        const char *mirror = settings->image_mirrors.items[i];

        if (!image_registries_is_mirror_of(mirror, name, len))
            continue;
        mirror += len + 1;
        strbuf_addf(out, "[[registry.mirror]]\nlocation = \"%s\"\ninsecure = %s\n", mirror,
                    image_registries_is_insecure(settings, mirror, strlen(mirror)) ? "true"
                                                                                   : "false");
    }
}

void image_registries_write(const struct settings *settings, struct strbuf *out)
{
    const struct conf_list *mirrors = &settings->image_mirrors;
    const struct conf_list *insecure = &settings->image_insecure;

    if (mirrors->count || insecure->count)
        strbuf_adds(out, "unqualified-search-registries = []\n");
    for (size_t i = 0; i < insecure->count; i++)
        if (!image_registries_is_before(settings, mirrors->count, insecure->items[i],
                                        strlen(insecure->items[i])))
            image_registries_write_registry(settings, insecure->items[i],
                                            strlen(insecure->items[i]), out);
    for (size_t i = 0; i < mirrors->count; i++) {
        size_t len = strcspn(mirrors->items[i], "=");

        if (!image_registries_is_before(settings, i, mirrors->items[i], len))
            image_registries_write_registry(settings, mirrors->items[i], len, out);
    }
}

/* ---- one image ---- */

/* Does an entry of the list, up to its "=" if it has one, begin the name as registries.conf has it?
 */
static bool image_registries_have(const struct conf_list *list, const struct reference *ref)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s/%s", ref->registry, ref->repository);

    for (size_t i = 0; i < list->count; i++) {
        size_t len = strcspn(list->items[i], "=");

        if (strncmp(name, list->items[i], len) == 0 && strchr("/:", name[len]))
            return true;
    }
    return false;
}

bool image_registries_has_mirror(const struct settings *settings, const struct reference *ref)
{
    return image_registries_have(&settings->image_mirrors, ref);
}

bool image_registries_may_lack_tls(const struct settings *settings, const struct reference *ref)
{
    return image_registries_have(&settings->image_insecure, ref);
}
