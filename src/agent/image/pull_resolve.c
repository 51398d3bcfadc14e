/* SPDX-License-Identifier: Apache-2.0 */
/* What an image is: its manifest, of an index the right one, and its configuration. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/image/oci_layout.h"
#include "agent/image/platform.h"
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
    image_config_done(&pull->config);
    r = image_config_parse(pull->config_text.data, pull->config_text.len, &pull->config, err);
    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    if (pull->config.diff_count != pull->manifest.layer_count)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': manifest and configuration have not the same layers",
                          pull->ref.text);
    if ((pull->config.os && strcasecmp(pull->config.os, "linux") != 0)
        || (pull->config.architecture
            && strcmp(pull->config.architecture, pull->architecture) != 0))
        return aq_fail_as(err, EINVAL, "image-architecture", "image",
                          "image '%.80s' is for %.20s/%.20s, not for linux/%.20s", pull->ref.text,
                          pull->config.os ? pull->config.os : "linux",
                          pull->config.architecture ? pull->config.architecture : "?",
                          pull->architecture);
    if (pull->config.variant
        && platform_score(pull->architecture, pull->config.variant, pull->choice.level) < 0)
        return aq_fail_as(err, EINVAL, "image-architecture", "image",
                          "image '%.80s' is for %.20s/%.20s, and this node's processor is v%d",
                          pull->ref.text, pull->architecture, pull->config.variant,
                          pull->choice.level);
    pull_plan(pull);
    return 0;
}

/* A layout is read without skopeo, which knows only what its index.json names itself. */
static bool pull_resolve_is_layout(const struct pull *pull)
{
    return pull->ref.form == REFERENCE_OCI_LAYOUT;
}

/* The next of an index. */
static int pull_resolve_ask_next(struct pull *pull, struct aq_error *err)
{
    int r = index_choice_next(&pull->choice, pull->asked, err);

    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    pull->is_asking_config = false;
    return pull_resolve(pull, err);
}

static int pull_resolve_read_index(struct pull *pull, struct aq_error *err)
{
    bool is_layout = pull_resolve_is_layout(pull), is_top = !pull->asked[0];
    int r = 0;

    if (!is_layout && pull->ref.form != REFERENCE_REGISTRY)
        return aq_fail_as(err, EINVAL, "image-unpack-failed", "image",
                          "image '%.80s' is an index in an archive: unpack the archive into a "
                          "folder with 'tar' and name that, as oci:/FOLDER",
                          pull->ref.text);
    if (is_top && is_layout && !pull->ref.name)
        r = index_choice_check_names(&pull->manifest, err);
    if (r == 0)
        r = index_choice_add(&pull->choice, &pull->manifest, err);
    /* the one that skopeo takes by the same name */
    pull->directory.is_view = is_layout
                              && (!is_top || pull->choice.count != 1
                                  || (!pull->ref.name && pull->manifest.item_count != 1));
    return r < 0 ? aq_error_wrap(err, "image '%.80s'", pull->ref.text)
                 : pull_resolve_ask_next(pull, err);
}

/* Which of an index it is, or what is in it. *ret_more: another question is asked. */
static int pull_resolve_read_manifest(struct pull *pull, bool *ret_more, struct aq_error *err)
{
    const char *wanted = pull->asked[0] ? pull->asked : pull->ref.digest;
    int r;

    digest_compute(pull->manifest_text.data, pull->manifest_text.len, pull->digest);
    if (wanted && strcmp(wanted, pull->digest) != 0)
        return aq_fail_as(err, EBADMSG, "image-damaged", "image",
                          "image '%.80s': the registry gave %s", pull->ref.text, pull->digest);
    manifest_done(&pull->manifest);
    r = manifest_parse(pull->manifest_text.data, pull->manifest_text.len, &pull->manifest, err);
    if (r < 0)
        return aq_error_wrap(err, "image '%.80s'", pull->ref.text);
    *ret_more = pull->manifest.is_index;
    return *ret_more ? pull_resolve_read_index(pull, err) : 0;
}

static void pull_resolve_on_answer(void *data, const char *bytes, size_t len)
{
    struct pull *pull = data;
    struct strbuf *text = pull->is_asking_config ? &pull->config_text : &pull->manifest_text;

    if (text->len <= IMAGE_CONFIG_MAX) /* more is refused by the parser */
        strbuf_add(text, bytes, len);
}

/* The answer is complete. */
static void pull_resolve_go_on(struct pull *pull, struct aq_error *err)
{
    bool more = false;

    if (pull->is_asking_config) {
        if (pull_resolve_check_config(pull, err) == 0)
            pull_fetch_once(pull);
        else if (err->kind && strcmp(err->kind, "image-architecture") == 0
                 && index_choice_has_more(&pull->choice)) {
            *err = (struct aq_error){ 0 };
            (void)pull_resolve_ask_next(pull, err);
        }
        return;
    }
    if (pull_resolve_read_manifest(pull, &more, err) < 0 || more)
        return;
    if (map_gets(&pull->images->records, pull->digest)) {
        pull_publish(pull, false);
        return;
    }
    pull->is_asking_config = true;
    (void)pull_resolve(pull, err);
}

static void pull_resolve_again(struct pull *pull)
{
    struct aq_error err = { 0 };

    pull_tell(pull, IMAGE_RESOLVING, 0);
    if (!pull->is_over && pull_resolve(pull, &err) < 0)
        pull_failed(pull, &err);
}

static void pull_resolve_on_answered(void *data, int status, const char *complaint)
{
    struct pull *pull = data;
    struct aq_error err = { 0 };

    pull->tool = NULL;
    if (status) {
        (void)fetch_failed(&pull->ref, status, complaint, &err);
        if (pull_retry(pull, pull_resolve_again, &err))
            return;
    } else {
        pull->failures = 0;
        pull_resolve_go_on(pull, &err);
    }
    if (err.code)
        pull_failed(pull, &err);
}

/* ---- a layout ---- */

static void pull_resolve_on_read(uv_work_t *work)
{
    struct pull *pull = work->data;
    const char *digest = pull->is_asking_config ? pull->manifest.config
                         : pull->asked[0]       ? pull->asked
                                                : NULL;
    struct strbuf *out = pull->is_asking_config ? &pull->config_text : &pull->manifest_text;

    if (oci_layout_read(pull->ref.path, digest, out, &pull->work_err) < 0)
        (void)aq_error_wrap(&pull->work_err, "image '%.80s'", pull->ref.text);
}

static void pull_resolve_after_read(struct pull *pull, const struct aq_error *failure)
{
    struct aq_error err = *failure;

    if (!err.code)
        pull_resolve_go_on(pull, &err);
    if (err.code)
        pull_failed(pull, &err);
}

int pull_resolve(struct pull *pull, struct aq_error *err)
{
    static const struct tool_events events = { .on_output = pull_resolve_on_answer,
                                               .on_end = pull_resolve_on_answered };

    strbuf_clear(pull->is_asking_config ? &pull->config_text : &pull->manifest_text);
    if (pull_resolve_is_layout(pull)) {
        if (!pull->asked[0] && pull->ref.name && digest_is_valid(pull->ref.name)) {
            (void)strcpy(pull->asked, pull->ref.name);
            pull->directory.is_view = true;
            pull->choice.name = NULL; /* whatever is in an index of this digest is meant */
        }
        pull_work(pull, pull_resolve_on_read, pull_resolve_after_read);
        return 0;
    }
    if (pull->is_asking_config)
        return fetch_config(pull->images, &pull->ref, pull->digest, &events, pull, &pull->tool,
                            err);
    return fetch_manifest(pull->images, &pull->ref, pull->asked[0] ? pull->asked : NULL, &events,
                          pull, &pull->tool, err);
}
