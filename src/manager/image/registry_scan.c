/* SPDX-License-Identifier: Apache-2.0 */
/* Which images a container registry has. */
#include "manager/image/registry_scan.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "model/architecture.h"
#include "model/reference.h"
#include "registry/registry_client.h"

#define SCAN_PAGE 100 /* names in one answer */
#define SCAN_REPOSITORIES_MAX 2000
#define SCAN_LISTED_MAX (10 * SCAN_REPOSITORIES_MAX) /* in lists, also of other projects */
#define SCAN_TAGS_MAX 1000                           /* of a repository */
#define SCAN_IMAGES_MAX 5000
#define SCAN_PLATFORMS_MAX 32
#define SCAN_LIST_BODY_MAX (2u << 20)
#define SCAN_BODY_MAX (4u << 20) /* of a manifest, or an image's configuration */
#define SCAN_LABELS_MAX 65536    /* bytes of an image's labels */
#define SCAN_SIZE_MAX (8u << 20) /* bytes of all that is kept of a registry */

#define SCAN_MANIFESTS                                            \
    "application/vnd.oci.image.index.v1+json, "                   \
    "application/vnd.oci.image.manifest.v1+json, "                \
    "application/vnd.docker.distribution.manifest.list.v2+json, " \
    "application/vnd.docker.distribution.manifest.v2+json"

struct scan {
    const struct registry_source *source;
    struct registry_client *client;
    json_t *repositories; /* array of names */
    json_t *images;       /* array */
    json_t *by_digest;    /* digest -> image */
    size_t listed;        /* repositories, also of other projects */
    size_t kept_bytes;
};

/* ---- answers ---- */

/* *ret is NULL for 404. */
static int scan_get(struct scan *scan, const char *path, const char *accept, size_t body_max,
                    json_t **ret, char digest[DIGEST_TEXT_MAX], struct aq_error *err)
{
    struct registry_answer answer = { .body = STRBUF_INIT };
    unsigned char hash[crypto_hash_sha256_BYTES];
    int r = registry_client_get(scan->client, path, accept, body_max, &answer, err);

    *ret = NULL;
    if (r < 0)
        return r;
    if (answer.status == 200) {
        const char *body = answer.body.data ? answer.body.data : "";

        *ret = json_load_text(body, answer.body.len, 0, NULL);
        if (!json_is_object(*ret) && !json_is_array(*ret))
            r = aq_fail(err, EPROTO, "it answers with what is not JSON");
        (void)crypto_hash_sha256(hash, (const unsigned char *)body, answer.body.len);
        if (digest) {
            memcpy(digest, "sha256:", 7);
            (void)sodium_bin2hex(digest + 7, DIGEST_TEXT_MAX - 7, hash, sizeof(hash));
        }
    }
    registry_answer_done(&answer);
    return r;
}

/* ---- repositories ---- */

/* Is it in one of the projects that are wanted? */
static bool scan_is_wanted(const struct registry_source *source, const char *repository)
{
    const char *at = source->project;

    if (!at || !*at)
        return true;
    for (; *(at += strspn(at, " ,")); at += strcspn(at, " ,")) {
        size_t len = strcspn(at, " ,");

        if (strncmp(repository, at, len) == 0 && repository[len] == '/')
            return true;
    }
    return false;
}

/* The canonical name, to be freed. What is none goes into no URL. */
static char *scan_name(const struct scan *scan, const char *repository, const char *tag)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s/%s:%s", scan->source->name, repository, tag);
    struct reference ref;
    char *name = NULL;

    if (reference_parse(text, NULL, &ref, NULL) < 0)
        return NULL;
    if (ref.form == REFERENCE_REGISTRY && ref.tag && !ref.digest && strcmp(ref.tag, tag) == 0)
        name = AQ_TAKE(ref.text);
    reference_done(&ref);
    return name;
}

static int scan_add_repository(struct scan *scan, const char *repository, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = repository ? scan_name(scan, repository, "latest") : NULL;

    if (!name)
        return aq_fail(err, EPROTO, "it has a repository '%.80s', which is no name",
                       repository ? repository : "");
    /* a registry may list other projects' repositories on page after page */
    if (scan->listed++ == SCAN_LISTED_MAX)
        return aq_fail(err, E2BIG, "it lists more than %d repositories", SCAN_LISTED_MAX);
    if (!scan_is_wanted(scan->source, repository))
        return 0;
    if (json_array_size(scan->repositories) >= SCAN_REPOSITORIES_MAX)
        return aq_fail(err, E2BIG, "it has more than %d repositories; name projects in 'project'",
                       SCAN_REPOSITORIES_MAX);
    (void)json_array_append_new(scan->repositories, json_string(repository));
    return 0;
}

/* The path of a page that begins after 'last', or the first. */
static char *scan_page(const char *base, const char *last)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    strbuf_addf(&path, "%s?n=%d", base, SCAN_PAGE);
    if (last) {
        strbuf_adds(&path, "&last=");
        url_encode(&path, last);
    }
    return strbuf_steal(&path);
}

/* One page of names: 1 = another follows, after the name in '*last'. */
static int scan_read_page(struct scan *scan, const char *base, const char *key, size_t names_max,
                          json_t *names, struct aq_error *err)
{
    const char *last = json_string_value(json_array_get(names, json_array_size(names) - 1));
    AQ_CLEANUP(aq_freep) char *path = scan_page(base, json_array_size(names) ? last : NULL);
    struct registry_answer answer = { .body = STRBUF_INIT };
    json_auto_t *page = NULL;
    size_t before = json_array_size(names);
    json_t *list;
    bool has_next;
    int r = registry_client_get(scan->client, path, NULL, SCAN_LIST_BODY_MAX, &answer, err);

    if (r < 0)
        return r;
    has_next = answer.has_next;
    if (answer.status == 200)
        page = json_load_text(answer.body.data ? answer.body.data : "", answer.body.len, 0, NULL);
    r = answer.status == 404 ? -ENOENT : 0;
    registry_answer_done(&answer);
    if (r < 0)
        return r;
    list = json_object_get(page, key);
    if (!page || !(json_is_array(list) || json_is_null(list)))
        return aq_fail(err, EPROTO, "its answer has no list of %s", key);
    if (before + json_array_size(list) > names_max)
        return aq_fail(err, E2BIG, "there are more than %zu %s", names_max, key);
    if (json_array_size(list))
        (void)json_array_extend(names, list);
    return has_next && json_array_size(list);
}

/* -ENOENT without an error: there is nothing of that name. */
static int scan_read_names(struct scan *scan, const char *base, const char *key, size_t names_max,
                           json_t *names, struct aq_error *err)
{
    int r;

    do
        r = scan_read_page(scan, base, key, names_max, names, err);
    while (r > 0);
    return r;
}

static int scan_read_catalogue(struct scan *scan, struct aq_error *err)
{
    json_auto_t *names = json_array();
    json_t *name;
    size_t i;
    int r = scan_read_names(scan, "/v2/_catalog", "repositories", SCAN_LISTED_MAX, names, err);

    if (r == -ENOENT)
        return aq_fail(err, EOPNOTSUPP, "it gives no list of its repositories");
    json_array_foreach(names, i, name)
        if (r == 0)
            r = scan_add_repository(scan, json_string_value(name), err);
    return r;
}

/* One page of a Harbor project: 1 = another follows. */
static int scan_read_project_page(struct scan *scan, const char *project, unsigned page,
                                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *list = NULL;
    json_t *row;
    size_t i;
    int r;

    strbuf_adds(&path, "/api/v2.0/projects/");
    url_encode(&path, project);
    strbuf_addf(&path, "/repositories?page=%u&page_size=%d", page, SCAN_PAGE);
    r = scan_get(scan, path.data, "application/json", SCAN_LIST_BODY_MAX, &list, NULL, err);
    if (r == 0 && !list)
        return aq_fail(err, ENOENT, "it has no project '%.80s'", project);
    json_array_foreach(list, i, row)
        if (r == 0)
            r = scan_add_repository(scan, json_string_value(json_object_get(row, "name")), err);
    return r < 0 ? r : json_array_size(list) >= SCAN_PAGE;
}

static int scan_read_projects(struct scan *scan, struct aq_error *err)
{
    int r = 0;

    for (const char *at = scan->source->project; r == 0 && *(at += strspn(at, " ,"));
         at += strcspn(at, " ,")) {
        AQ_CLEANUP(aq_freep) char *project = aq_strndup(at, strcspn(at, " ,"));
        unsigned page = 1;

        do
            r = scan_read_project_page(scan, project, page++, err);
        while (r > 0);
    }
    return r;
}

/* ---- images ---- */

static int scan_fail_size(struct aq_error *err)
{
    return aq_fail(
        err, E2BIG,
        "the registry has more than %d images, or %d MiB of their names and labels; name "
        "projects in 'project'",
        SCAN_IMAGES_MAX, (int)(SCAN_SIZE_MAX >> 20));
}

/* The manager holds all that is kept in memory, further names of one image included. */
static int scan_count(struct scan *scan, size_t bytes, struct aq_error *err)
{
    scan->kept_bytes += bytes;
    return scan->kept_bytes > SCAN_SIZE_MAX ? scan_fail_size(err) : 0;
}

static int scan_keep(struct scan *scan, const char *digest, const char *name, json_t *image,
                     struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(image, JSON_COMPACT);
    int r = scan_count(scan, strlen(text) + strlen(name), err);

    if (r == 0 && json_array_size(scan->images) >= SCAN_IMAGES_MAX)
        r = scan_fail_size(err);
    if (r < 0)
        return r;
    (void)json_array_append(scan->images, image);
    (void)json_object_set(scan->by_digest, digest, image);
    return 0;
}

static int64_t scan_size_of(const json_t *manifest)
{
    int64_t size = json_integer_value(json_object_get(json_object_get(manifest, "config"), "size"));
    json_t *layer;
    size_t i;

    json_array_foreach(json_object_get(manifest, "layers"), i, layer) {
        int64_t more = json_integer_value(json_object_get(layer, "size"));

        if (more > 0 && size >= 0 && more < INT64_MAX - size)
            size += more;
    }
    return AQ_MAX(size, 0);
}

/* Labels that are texts. */
static json_t *scan_labels_of(const json_t *config)
{
    json_t *labels = json_object_get(json_object_get(config, "config"), "Labels");
    json_t *kept = json_object();
    const char *key;
    json_t *value;
    size_t bytes = 0;

    json_object_foreach(labels, key, value) {
        bytes += strlen(key) + json_string_length(value);
        if (json_is_string(value) && bytes <= SCAN_LABELS_MAX)
            (void)json_object_set(kept, key, value);
    }
    return kept;
}

static char *scan_path(const char *repository, const char *kind, const char *what)
{
    return aq_format("/v2/%s/%s/%s", repository, kind, what);
}

/* A manifest of one image, whose configuration says what it is. */
static int scan_read_image(struct scan *scan, const char *repository, const char *name,
                           const char *digest, const json_t *manifest, struct aq_error *err)
{
    const char *config_digest = json_string_value(
        json_object_get(json_object_get(manifest, "config"), "digest"));
    json_t *known = json_object_get(scan->by_digest, digest);
    json_auto_t *config = NULL, *image = NULL;
    AQ_CLEANUP(aq_freep) char *path = NULL;
    char got[DIGEST_TEXT_MAX];
    const char *architecture;
    int r;

    if (known) {
        (void)json_array_append_new(json_object_get(known, "names"), json_string(name));
        return scan_count(scan, strlen(name), err);
    }
    if (!config_digest || !digest_is_valid(config_digest))
        return 0; /* of the old form, or no image */
    path = scan_path(repository, "blobs", config_digest);
    r = scan_get(scan, path, NULL, SCAN_BODY_MAX, &config, got, err);
    if (r < 0)
        return r;
    if (config && strcmp(got, config_digest) != 0)
        return aq_fail(err, EPROTO, "a blob is not what its digest says");
    architecture = architecture_of_image(
        json_string_value(json_object_get(config, "architecture")));
    if (!architecture || !json_object_get(config, "rootfs"))
        return 0; /* a chart, a signature, ... */
    image = json_pack("{s:s, s:[s], s:s, s:I, s:o}", "digest", digest, "names", name,
                      "architecture", architecture, "size_bytes",
                      (json_int_t)scan_size_of(manifest), "labels", scan_labels_of(config));
    return scan_keep(scan, digest, name, image, err);
}

static int scan_read_manifest(struct scan *scan, const char *repository, const char *reference,
                              const char *name, bool is_in_index, struct aq_error *err);

/* Each platform of Linux. */
static int scan_read_index(struct scan *scan, const char *repository, const char *name,
                           const json_t *manifests, struct aq_error *err)
{
    json_t *row;
    size_t i;
    int r = 0;

    if (json_array_size(manifests) > SCAN_PLATFORMS_MAX)
        return aq_fail(err, E2BIG, "an image has more than %d platforms", SCAN_PLATFORMS_MAX);
    json_array_foreach((json_t *)(uintptr_t)manifests, i, row) {
        const char *digest = json_string_value(json_object_get(row, "digest"));
        const char *os = json_string_value(json_object_get(json_object_get(row, "platform"), "os"));

        if (r == 0 && digest && digest_is_valid(digest) && (!os || strcasecmp(os, "linux") == 0))
            r = scan_read_manifest(scan, repository, digest, name, true, err);
    }
    return r;
}

static int scan_read_manifest(struct scan *scan, const char *repository, const char *reference,
                              const char *name, bool is_in_index, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = scan_path(repository, "manifests", reference);
    json_auto_t *manifest = NULL;
    char digest[DIGEST_TEXT_MAX];
    json_t *manifests;
    int r = scan_get(scan, path, SCAN_MANIFESTS, SCAN_BODY_MAX, &manifest, digest, err);

    if (r < 0 || !manifest) /* removed in between */
        return r;
    if (is_in_index && strcmp(digest, reference) != 0)
        return aq_fail(err, EPROTO, "a manifest is not what its digest says");
    manifests = json_object_get(manifest, "manifests");
    if (json_is_array(manifests))
        return is_in_index ? 0 : scan_read_index(scan, repository, name, manifests, err);
    return scan_read_image(scan, repository, name, digest, manifest, err);
}

static int scan_read_repository(struct scan *scan, const char *repository, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = scan_path(repository, "tags", "list");
    json_auto_t *tags = json_array();
    json_t *tag;
    size_t i;
    int r = scan_read_names(scan, path, "tags", SCAN_TAGS_MAX, tags, err);

    if (r == -ENOENT && !err->code)
        return 0; /* all its images were removed */
    json_array_foreach(tags, i, tag) {
        const char *text = json_string_value(tag);
        AQ_CLEANUP(aq_freep) char *name = text ? scan_name(scan, repository, text) : NULL;

        if (r == 0 && !name)
            r = aq_fail(err, EPROTO, "it has a tag '%.80s', which is none", text ? text : "");
        if (r == 0)
            r = scan_read_manifest(scan, repository, text, name, false, err);
    }
    return r;
}

/* ---- the whole ---- */

static int scan_read_all(struct scan *scan, registry_scan_fn *on_progress, void *data,
                         struct aq_error *err)
{
    const struct registry_source *source = scan->source;
    bool is_harbor = source->type && strcmp(source->type, "harbor2") == 0 && source->project
                     && *source->project;
    int r = is_harbor ? scan_read_projects(scan, err) : scan_read_catalogue(scan, err);
    size_t total = json_array_size(scan->repositories);

    for (size_t i = 0; r == 0 && i < total; i++) {
        const char *repository = json_string_value(json_array_get(scan->repositories, i));
        struct aq_error why = { 0 };

        on_progress(data, i, total, repository);
        r = scan_read_repository(scan, repository, &why);
        if (r < 0)
            return aq_fail(err, why.code, "repository '%.80s': %.200s", repository, why.text);
    }
    return r;
}

int registry_scan(const struct registry_source *source, const atomic_bool *stop,
                  registry_scan_fn *on_progress, void *data, json_t **ret, struct aq_error *err)
{
    struct scan scan = { source, NULL, json_array(), json_array(), json_object(), 0 };
    const struct registry_client_conf conf = { source->url, source->username, source->password,
                                               source->skip_verify, stop };
    int r = registry_client_new(&conf, &scan.client, err);

    if (r == 0)
        r = scan_read_all(&scan, on_progress, data, err);
    registry_client_free(scan.client);
    json_decref(scan.repositories);
    json_decref(scan.by_digest);
    if (r < 0)
        json_decref(scan.images);
    else
        *ret = scan.images;
    return r;
}
