/* SPDX-License-Identifier: Apache-2.0 */
/* What an image is: its manifest, of an index the right one, and its configuration. */
#include <errno.h>
#include <string.h>

#include "agent/image/pull.h"

static int pull_resolve_check_config(struct pull *pull, struct aq_error *err)
{
    char digest[DIGEST_TEXT_MAX];
    int r;

    digest_compute(pull->config_text.data, pull->config_text.len, digest);
    if (strcmp(digest, pull->manifest.config) != 0)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': its configuration is not the one that its manifest names",
                          pull->ref.text);
    r = image_config_parse(pull->config_text.data, pull->config_text.len, &pull->config, err);
    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    if (pull->config.diff_count != pull->manifest.layer_count)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': manifest and configuration have not the same layers",
                          pull->ref.text);
    if ((pull->config.os && strcmp(pull->config.os, "linux") != 0)
        || (pull->config.architecture
            && strcmp(pull->config.architecture, pull->architecture) != 0))
        return aq_fail_as(err, EINVAL, "image-architecture", "image",
                          "image '%.80s' is for %.20s/%.20s, not for linux/%.20s", pull->ref.text,
                          pull->config.os ? pull->config.os : "linux",
                          pull->config.architecture ? pull->config.architecture : "?",
                          pull->architecture);
    return pull_plan(pull, err);
}

/* Which of an index it is, or what is in it. *ret_more: another question is asked. */
static int pull_resolve_read_manifest(struct pull *pull, bool *ret_more, struct aq_error *err)
{
    const char *wanted = pull->asked[0] ? pull->asked : pull->ref.digest, *picked;
    int r;

    digest_compute(pull->manifest_text.data, pull->manifest_text.len, pull->digest);
    if (wanted && strcmp(wanted, pull->digest) != 0)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': the registry gave %s", pull->ref.text, pull->digest);
    manifest_done(&pull->manifest);
    r = manifest_parse(pull->manifest_text.data, pull->manifest_text.len, &pull->manifest, err);
    if (r < 0 || !pull->manifest.is_index)
        return r < 0 ? aq_error_wrap(err, "image '%.80s'", pull->ref.text) : 0;
    if (pull->asked[0] || pull->ref.form != REFERENCE_REGISTRY)
        return aq_fail_as(err, EINVAL, "image-unpack-failed", "image",
                          "image '%.80s' is an index of images; name one of them", pull->ref.text);
    r = manifest_pick(&pull->manifest, pull->architecture, &picked, err);
    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    (void)strcpy(pull->asked, picked);
    *ret_more = true;
    return pull_resolve(pull, err);
}

static void pull_resolve_on_answer(void *data, const char *bytes, size_t len)
{
    struct pull *pull = data;
    struct strbuf *text = pull->is_asking_config ? &pull->config_text : &pull->manifest_text;

    if (text->len <= IMAGE_CONFIG_MAX) /* more is refused by the parser */
        strbuf_add(text, bytes, len);
}

static void pull_resolve_on_answered(void *data, int status, const char *complaint)
{
    struct pull *pull = data;
    struct aq_error err = { 0 };
    bool more = false, was_config = pull->is_asking_config;

    pull->tool = NULL;
    if (status)
        (void)fetch_failed(&pull->ref, status, complaint, &err);
    else if (was_config)
        (void)pull_resolve_check_config(pull, &err);
    else
        (void)pull_resolve_read_manifest(pull, &more, &err);
    if (err.code) {
        pull_failed(pull, &err);
    } else if (was_config) {
        pull_fetch(pull);
    } else if (!more && map_gets(&pull->images->records, pull->digest)) {
        pull_publish(pull, false);
    } else if (!more) {
        pull->is_asking_config = true;
        if (pull_resolve(pull, &err) < 0)
            pull_failed(pull, &err);
    }
}

int pull_resolve(struct pull *pull, struct aq_error *err)
{
    static const struct tool_events events = { .on_output = pull_resolve_on_answer,
                                               .on_end = pull_resolve_on_answered };

    if (pull->is_asking_config)
        return fetch_config(pull->images, &pull->ref, pull->digest, &events, pull, &pull->tool,
                            err);
    strbuf_clear(&pull->manifest_text);
    return fetch_manifest(pull->images, &pull->ref, pull->asked[0] ? pull->asked : NULL, &events,
                          pull, &pull->tool, err);
}
