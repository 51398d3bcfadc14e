/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a WWW-Authenticate header of a container registry. */
#include "registry/registry_challenge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "http/url.h"

#define CHALLENGE_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
#define CHALLENGE_VALUE_MAX (CHALLENGE_TEXT_MAX - 1)

void registry_challenge_done(struct registry_challenge *challenge)
{
    free(challenge->realm);
    free(challenge->service);
    free(challenge->scope);
    *challenge = (struct registry_challenge){ 0 };
}

/* A token, or a quoted text; *at is moved behind it. */
static int registry_challenge_value(const char **at, char **ret, struct aq_error *err)
{
    bool is_quoted = **at == '"';
    const char *text = *at + is_quoted;
    size_t len = strcspn(text, is_quoted ? "\"\\" : ", \t\"");

    if (is_quoted && text[len] != '"')
        return aq_fail(err, EINVAL, "a quoted value of its challenge does not end");
    if (len > CHALLENGE_VALUE_MAX)
        return aq_fail(err, EINVAL, "a value of its challenge is longer than %d bytes",
                       CHALLENGE_VALUE_MAX);
    *at = text + len + is_quoted;
    *ret = aq_strndup(text, len);
    return 0;
}

static char **registry_challenge_place(struct registry_challenge *challenge, const char *name,
                                       size_t len)
{
    static const char *const names[] = { "realm", "service", "scope" };
    char **const places[] = { &challenge->realm, &challenge->service, &challenge->scope };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (strlen(names[i]) == len && strncasecmp(names[i], name, len) == 0)
            return places[i];
    return NULL;
}

/* NAME=VALUE. */
static int registry_challenge_read_one(struct registry_challenge *challenge, const char **at,
                                       struct aq_error *err)
{
    const char *name = *at;
    size_t len = strspn(name, CHALLENGE_NAME_CHARS);
    char **place = registry_challenge_place(challenge, name, len);
    AQ_CLEANUP(aq_freep) char *value = NULL;
    int r;

    if (!len || name[len] != '=')
        return aq_fail(err, EINVAL, "its challenge is not NAME=VALUE with commas between");
    *at = name + len + 1;
    if ((r = registry_challenge_value(at, &value, err)) < 0 || !place)
        return r;
    if (*place)
        return aq_fail(err, EINVAL, "its challenge says '%.*s' twice", (int)len, name);
    *place = AQ_TAKE(value);
    return 0;
}

static int registry_challenge_read(const char *text, struct registry_challenge *challenge,
                                   struct aq_error *err)
{
    size_t scheme = strcspn(text, " \t");
    int r = 0;

    challenge->is_bearer = scheme == 6 && strncasecmp(text, "Bearer", 6) == 0;
    if (!challenge->is_bearer && !(scheme == 5 && strncasecmp(text, "Basic", 5) == 0))
        return aq_fail(err, EINVAL, "it wants neither Basic nor Bearer authentication");
    for (text += scheme; r == 0 && *(text += strspn(text, " \t,"));)
        r = registry_challenge_read_one(challenge, &text, err);
    if (r == 0 && challenge->is_bearer && !challenge->realm)
        return aq_fail(err, EINVAL, "its challenge does not say where tokens are");
    return r;
}

int registry_challenge_parse(const char *text, struct registry_challenge *ret, struct aq_error *err)
{
    struct registry_challenge challenge = { 0 };
    int r = registry_challenge_read(text, &challenge, err);

    if (r < 0)
        registry_challenge_done(&challenge);
    else
        *ret = challenge;
    return r;
}

char *registry_challenge_url(const struct registry_challenge *challenge)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    const char *const pairs[][2] = { { "service=", challenge->service },
                                     { "scope=", challenge->scope } };
    char between = strchr(challenge->realm, '?') ? '&' : '?';

    strbuf_adds(&url, challenge->realm);
    for (size_t i = 0; i < AQ_COUNT(pairs); i++) {
        if (!pairs[i][1])
            continue;
        strbuf_add(&url, &between, 1);
        strbuf_adds(&url, pairs[i][0]);
        url_encode(&url, pairs[i][1]);
        between = '&';
    }
    return strbuf_steal(&url);
}
