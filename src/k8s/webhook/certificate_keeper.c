/* SPDX-License-Identifier: Apache-2.0 */
/* certificate_keeper.c - see certificate_keeper.h */
#include "k8s/webhook/certificate_keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "k8s/webhook/base64.h"
#include "kube/object.h"

#define SERVICE "aliquot-webhook"
#define SECRET "aliquot-webhook-certificate"
#define CONFIGURATION "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/aliquot"
#define AUTHORITY_DAYS 7305
#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)
#define AGAIN_MSEC_MIN 1000

struct keys {
    struct certificate authority, server;
};

struct certificate_keeper {
    const struct settings *settings;
    struct kube_api *api;
    certificate_given_fn *on_given;
    void *data;
    char *host;             /* that the API server calls */
    char *secret;           /* path */
    struct keys keys, made; /* in use; to be written */
    struct kube_call *call;
    uv_timer_t timer; /* to the next look; its closing frees all this */
    unsigned again_msec;
};

static void keeper_look(struct certificate_keeper *keeper);

static void keys_done(struct keys *keys)
{
    certificate_done(&keys->authority);
    certificate_done(&keys->server);
}

/* ---- turns ---- */

static void keeper_on_timer(uv_timer_t *timer)
{
    keeper_look(timer->data);
}

static void keeper_conclude(struct certificate_keeper *keeper, const struct aq_error *err)
{
    unsigned usual = (unsigned)(keeper->settings->webhook.check_usec / 1000);

    if (err->code) {
        log_error("the webhook's certificate: %s", err->text);
        keeper->again_msec = AQ_MIN(AQ_MAX(keeper->again_msec * 2, AGAIN_MSEC_MIN), usual);
    } else {
        keeper->again_msec = 0;
    }
    (void)uv_timer_start(&keeper->timer, keeper_on_timer,
                         keeper->again_msec ? keeper->again_msec : usual, 0);
}

static void keeper_ask(struct certificate_keeper *keeper, const struct kube_ask *ask,
                       kube_done_fn *on_done)
{
    struct aq_error err = { 0 };

    if (kube_api_ask(keeper->api, ask, on_done, keeper, &keeper->call, &err) < 0)
        keeper_conclude(keeper, &err);
}

/* ---- whom the API server believes ---- */

static void keeper_on_told(void *data, const json_t *answer, const struct aq_error *err)
{
    struct certificate_keeper *keeper = data;

    (void)answer;
    keeper->call = NULL;
    if (!err->code)
        log_info("told the API server the authority of the webhook's certificate");
    keeper_conclude(keeper, err);
}

/* An operation for each webhook that is told another authority; what is patched is what was read.
 */
static json_t *keeper_write_bundles(const json_t *configuration, const char *bundle)
{
    const char *version = kube_object_version(configuration);
    json_t *patch = version ? json_pack("[{s:s, s:s, s:s}]", "op", "test", "path",
                                        "/metadata/resourceVersion", "value", version)
                            : NULL;
    const json_t *webhook;
    size_t i;

    json_array_foreach(json_object_get(configuration, "webhooks"), i, webhook) {
        const char *is = json_string_value(
            json_object_get(json_object_get(webhook, "clientConfig"), "caBundle"));
        char path[64];

        if (is && strcmp(is, bundle) == 0)
            continue;
        (void)snprintf(path, sizeof(path), "/webhooks/%zu/clientConfig/caBundle", i);
        json_array_append_new(
            patch, json_pack("{s:s, s:s, s:s}", "op", "add", "path", path, "value", bundle));
    }
    return patch;
}

static void keeper_on_configuration(void *data, const json_t *answer, const struct aq_error *failed)
{
    struct certificate_keeper *keeper = data;
    const char *authority = keeper->keys.authority.cert;
    AQ_CLEANUP(aq_freep) char *bundle = base64_write(authority, strlen(authority)), *text = NULL;
    struct kube_ask ask = { .method = METHOD_PATCH,
                            .path = CONFIGURATION,
                            .type = KUBE_JSON_PATCH };
    struct aq_error err = *failed;
    json_t *patch = answer ? keeper_write_bundles(answer, bundle) : NULL;

    keeper->call = NULL;
    if (answer && json_array_size(patch) > 1)
        text = json_dump_text(patch, JSON_COMPACT);
    if (answer && !patch)
        (void)aq_fail(&err, EPROTO, "the webhook's configuration cannot be changed");
    json_decref(patch);
    ask.body = text;
    if (text)
        keeper_ask(keeper, &ask, keeper_on_told);
    else
        keeper_conclude(keeper, &err);
}

static void keeper_use(struct certificate_keeper *keeper, struct keys *keys)
{
    const struct kube_ask ask = { .method = METHOD_GET, .path = CONFIGURATION };
    struct aq_error err = { 0 };
    int r = 0;

    if (!keeper->keys.server.cert || strcmp(keeper->keys.server.cert, keys->server.cert) != 0)
        r = keeper->on_given(keeper->data, &keys->server, &err);
    if (r < 0) {
        keeper_conclude(keeper, &err);
        return;
    }
    AQ_SWAP(keeper->keys, *keys);
    keeper_ask(keeper, &ask, keeper_on_configuration);
}

/* ---- the Secret ---- */

static const struct {
    const char *name;
    size_t offset;
} keys_members[] = {
    { "ca.crt", offsetof(struct keys, authority.cert) },
    { "ca.key", offsetof(struct keys, authority.key) },
    { "tls.crt", offsetof(struct keys, server.cert) },
    { "tls.key", offsetof(struct keys, server.key) },
};

static char **keys_member(struct keys *keys, size_t i)
{
    return (char **)(void *)((char *)keys + keys_members[i].offset);
}

/* False if one is missing. */
static bool keys_read(const json_t *secret, struct keys *keys)
{
    const json_t *data = json_object_get(secret, "data");
    bool are_all = true;

    for (size_t i = 0; i < AQ_COUNT(keys_members); i++) {
        const char *text = json_string_value(json_object_get(data, keys_members[i].name));

        *keys_member(keys, i) = text ? base64_read(text) : NULL;
        are_all &= *keys_member(keys, i) != NULL;
    }
    return are_all;
}

static char *keys_write(struct keys *keys, const char *version)
{
    json_t *data = json_object();
    json_t *patch = json_pack("{s:{s:s}, s:O}", "metadata", "resourceVersion", version, "data",
                              data);
    char *text;

    for (size_t i = 0; i < AQ_COUNT(keys_members); i++) {
        const char *member = *keys_member(keys, i);
        AQ_CLEANUP(aq_freep) char *encoded = base64_write(member, strlen(member));

        json_object_set_new(data, keys_members[i].name, json_string(encoded));
    }
    text = json_dump_text(patch, JSON_COMPACT);
    json_decref(data);
    json_decref(patch);
    return text;
}

static int keeper_make(const struct certificate_keeper *keeper, struct keys *keys,
                       struct aq_error *err)
{
    int days = (int)keeper->settings->webhook.days, r;

    certificate_done(&keys->server);
    if (keys->authority.cert && keys->authority.key
        && certificate_issue(&keys->authority, keeper->host, days, &keys->server, NULL) == 0)
        return 0;
    certificate_done(&keys->authority);
    r = certificate_authority_new("aliquot webhook authority", AUTHORITY_DAYS, &keys->authority,
                                  err);
    return r < 0 ? r : certificate_issue(&keys->authority, keeper->host, days, &keys->server, err);
}

static void keeper_on_written(void *data, const json_t *answer, const struct aq_error *err)
{
    struct certificate_keeper *keeper = data;

    keeper->call = NULL;
    if (answer) {
        log_info("made a certificate for %s, of %d days", keeper->host,
                 (int)keeper->settings->webhook.days);
        keeper_use(keeper, &keeper->made);
    } else if (err->code == ESTALE) {
        keeper_look(keeper); /* another replica has made one */
    } else {
        keeper_conclude(keeper, err);
    }
    keys_done(&keeper->made);
}

static void keeper_write(struct certificate_keeper *keeper, struct keys *keys, const char *version)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;
    struct kube_ask ask = { .method = METHOD_PATCH,
                            .path = keeper->secret,
                            .type = KUBE_MERGE_PATCH };
    struct aq_error err = { 0 };
    int r = version ? keeper_make(keeper, keys, &err)
                    : aq_fail(&err, EPROTO, "the Secret has no version");

    if (r < 0) {
        keeper_conclude(keeper, &err);
        return;
    }
    text = keys_write(keys, version);
    AQ_SWAP(keeper->made, *keys);
    ask.body = text;
    keeper_ask(keeper, &ask, keeper_on_written);
}

static void keeper_on_secret(void *data, const json_t *answer, const struct aq_error *failed)
{
    AQ_CLEANUP(keys_done) struct keys keys = { .server = { .cert = NULL } };
    struct certificate_keeper *keeper = data;
    struct aq_error err = *failed;
    int64_t end = 0;

    keeper->call = NULL;
    if (!answer) {
        if (err.code == ENOENT)
            (void)aq_fail(&err, ENOENT,
                          "there is no Secret " SECRET ": apply the manifests once more");
        keeper_conclude(keeper, &err);
        return;
    }
    if (!keys_read(answer, &keys))
        log_info("the Secret " SECRET " has no certificate yet");
    else if (certificate_check(&keys.server, keys.authority.cert, keeper->host, &end, &err) < 0)
        log_warning("the Secret " SECRET " is of no use: %s", err.text);
    if (end - clock_realtime_usec() > keeper->settings->webhook.days * DAY_USEC / 3)
        keeper_use(keeper, &keys);
    else
        keeper_write(keeper, &keys, kube_object_version(answer));
}

static void keeper_look(struct certificate_keeper *keeper)
{
    const struct kube_ask ask = { .method = METHOD_GET, .path = keeper->secret };

    keeper_ask(keeper, &ask, keeper_on_secret);
}

/* ---- life ---- */

static void keeper_on_closed(uv_handle_t *handle)
{
    struct certificate_keeper *keeper = handle->data;

    keys_done(&keeper->keys);
    keys_done(&keeper->made);
    free(keeper->host);
    free(keeper->secret);
    free(keeper);
}

void certificate_keeper_free(struct certificate_keeper *keeper)
{
    if (!keeper)
        return;
    kube_call_cancel(keeper->call);
    uv_close((uv_handle_t *)&keeper->timer, keeper_on_closed);
}

struct certificate_keeper *certificate_keeper_new(const struct settings *settings,
                                                  struct kube_api *api, const char *space,
                                                  certificate_given_fn *on_given, void *data)
{
    struct certificate_keeper *keeper = aq_alloc(sizeof(*keeper));

    *keeper = (struct certificate_keeper){
        .settings = settings,
        .api = api,
        .on_given = on_given,
        .data = data,
        .host = aq_format(SERVICE ".%s.svc", space),
        .secret = aq_format("/api/v1/namespaces/%s/secrets/" SECRET, space),
    };
    (void)uv_timer_init(kube_api_loop(api), &keeper->timer);
    keeper->timer.data = keeper;
    (void)uv_timer_start(&keeper->timer, keeper_on_timer, 0, 0);
    return keeper;
}
