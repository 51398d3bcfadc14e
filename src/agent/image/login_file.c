/* SPDX-License-Identifier: Apache-2.0 */
/* login_file.c - the login for a repository in a containers-auth.json(5) */
#include "agent/image/login_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define LOGIN_MAX 16384 /* bytes of "USER:PASSWORD" */

void login_done(struct login *login)
{
    if (login->password)
        explicit_bzero(login->password, strlen(login->password));
    free(login->username);
    free(login->password);
    *login = (struct login){ 0 };
}

/* Keys may be the addresses that docker writes: "https://HOST/v1/". */
static bool login_file_is_host(const char *key, const char *registry)
{
    const char *host = strstr(key, "://") ? strstr(key, "://") + 3 : key;
    size_t len = strcspn(host, "/");

    if (host == key && host[len])
        return false;
    if (strcmp(registry, "docker.io") == 0 && len == strlen("index.docker.io")
        && memcmp(host, "index.docker.io", len) == 0)
        return true;
    return strlen(registry) == len && memcmp(host, registry, len) == 0;
}

static json_t *login_file_get(json_t *auths, const char *registry, const char *repository)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s/%s", registry, repository);
    char *end = name;
    const char *key;
    json_t *value;

    while (end) {
        if ((value = json_object_get(auths, name)))
            return value;
        if ((end = strrchr(name, '/')))
            *end = '\0';
    }
    json_object_foreach(auths, key, value)
        if (login_file_is_host(key, registry))
            return value;
    return NULL;
}

/* base64 of "USER:PASSWORD". */
static int login_file_decode(const char *text, struct login *ret, struct aq_error *err)
{
    char pair[LOGIN_MAX + 1];
    size_t len = 0;
    char *colon;
    int r = 0;

    if (sodium_base642bin((unsigned char *)pair, LOGIN_MAX, text, strlen(text), NULL, &len, NULL,
                          sodium_base64_VARIANT_ORIGINAL)
        != 0)
        return aq_fail(err, EINVAL, "a login in the auth file is not base64");
    pair[len] = '\0';
    colon = strchr(pair, ':');
    if (!colon || strlen(pair) != len) {
        r = aq_fail(err, EINVAL, "a login in the auth file is not USER:PASSWORD");
    } else {
        *colon = '\0';
        ret->username = aq_strdup(pair);
        ret->password = aq_strdup(colon + 1);
    }
    explicit_bzero(pair, sizeof(pair));
    return r;
}

int login_file_find(const char *text, const char *registry, const char *repository,
                    struct login *ret, struct aq_error *err)
{
    json_auto_t *file = json_load_string(text, 0);
    json_t *entry, *auth;

    if (!json_is_object(file))
        return aq_fail(err, EINVAL, "the auth file is not a JSON object");
    if (json_object_get(file, "credsStore")
        || json_object_size(json_object_get(file, "credHelpers")))
        return aq_fail(err, ENOTSUP, "the auth file names a credential helper");
    entry = login_file_get(json_object_get(file, "auths"), registry, repository);
    if (!entry)
        return 0;
    if (json_object_get(entry, "identitytoken"))
        return aq_fail(err, ENOTSUP, "the auth file has an identity token");
    auth = json_object_get(entry, "auth");
    if (!json_is_string(auth))
        return aq_fail(err, ENOTSUP, "the auth file has no user and password for the registry");
    return login_file_decode(json_string_value(auth), ret, err);
}
