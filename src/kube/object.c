/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - see object.h */
#include "kube/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"

static const char *object_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

bool kube_object_key(const json_t *object, char ret[KUBE_KEY_MAX + 1])
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *space = object_text(metadata, "namespace"), *name = object_text(metadata, "name");

    if (!name || !name[0] || strchr(name, '/') || (space && strchr(space, '/')))
        return false;
    return snprintf(ret, KUBE_KEY_MAX + 1, "%s%s%s", space ? space : "", space ? "/" : "", name)
           <= KUBE_KEY_MAX;
}

const char *kube_object_version(const json_t *object)
{
    const char *version = object_text(json_object_get(object, "metadata"), "resourceVersion");

    /* it goes into URLs; etcd's are numbers, and others are not known */
    return version && version[0] && strspn(version, "0123456789") == strlen(version) ? version
                                                                                     : NULL;
}

static enum kube_event_kind object_event_kind(const char *type, const json_t *object)
{
    static const struct {
        const char *type;
        enum kube_event_kind kind;
    } types[] = {
        { "ADDED", KUBE_EVENT_IS },     { "MODIFIED", KUBE_EVENT_IS },
        { "DELETED", KUBE_EVENT_GONE }, { "BOOKMARK", KUBE_EVENT_BOOKMARK },
        { "ERROR", KUBE_EVENT_FAILED },
    };

    if (strcmp(type, "ERROR") == 0 && json_integer_value(json_object_get(object, "code")) == 410)
        return KUBE_EVENT_EXPIRED;
    for (size_t i = 0; i < AQ_COUNT(types); i++)
        if (strcmp(type, types[i].type) == 0)
            return types[i].kind;
    return KUBE_EVENT_OTHER;
}

int kube_event_read(const char *line, size_t len, enum kube_event_kind *ret_kind, json_t **ret,
                    struct aq_error *err)
{
    json_t *event = json_load_text(line, len, JSON_REJECT_DUPLICATES, NULL);
    const char *type = object_text(event, "type");
    json_t *object = json_object_get(event, "object");
    char key[KUBE_KEY_MAX + 1];
    int r = 0;

    if (!event)
        return aq_fail(err, EPROTO, "a watch: no JSON");
    if (!type || !json_is_object(object))
        r = aq_fail(err, EPROTO, "a watch: no event");
    else
        *ret_kind = object_event_kind(type, object);
    if (r == 0 && *ret_kind <= KUBE_EVENT_GONE && !kube_object_key(object, key))
        r = aq_fail(err, EPROTO, "a watch: an object without a name");
    if (r == 0)
        *ret = json_incref(object);
    json_decref(event);
    return r;
}

static int object_status_code(int http_status, const char *reason)
{
    switch (http_status) {
    case 400:
    case 422:
        return EINVAL;
    case 401:
        return EACCES;
    case 403:
        return EPERM;
    case 404:
        return ENOENT;
    case 409:
        return reason && strcmp(reason, "AlreadyExists") == 0 ? EEXIST : ESTALE;
    case 410:
        return EKEYEXPIRED;
    case 429:
    case 503:
    case 504:
        return EAGAIN;
    default:
        return EIO;
    }
}

int kube_status_read(int http_status, const char *body, size_t len, struct aq_error *err)
{
    json_t *status = json_load_text(body, len, 0, NULL);
    const char *message = object_text(status, "message"), *reason = object_text(status, "reason");
    int r = aq_fail(err, object_status_code(http_status, reason), "the API server says %d: %.250s",
                    http_status,
                    message  ? message
                    : reason ? reason
                             : "nothing more");

    json_decref(status);
    return r;
}
