/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_revision.c - see backendai_revision.h */
#include "manager/serving/backendai_revision.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "manager/image/image.h"
#include "manager/serving/serving_deploy.h"
#include "model/architecture.h"
#include "model/reference.h"

/* What replicas have if the revision does not say otherwise; model_service_spec. */
#define IMAGE_ARCHITECTURE "x86_64"
#define HEALTH_STATUS 200
#define HEALTH_RETRIES 10
#define HEALTH_INTERVAL_SEC 10
#define HEALTH_TIMEOUT_SEC 15
#define READY_SEC (30 * 60)

struct uuid backendai_revision_id(const struct uuid *service_id, int64_t number)
{
    char text[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s/revision/%" PRId64,
                                                uuid_format(service_id, text), number);

    return gql_uuid_of_name(name);
}

const struct model_service_revision *backendai_revision_find(const struct model_service *s,
                                                             const struct uuid *id)
{
    for (size_t i = 0; i < s->revision_count; i++) {
        struct uuid own = backendai_revision_id(&s->id, s->revisions[i].number);

        if (uuid_equals(&own, id))
            return &s->revisions[i];
    }
    return NULL;
}

struct uuid backendai_runtime_id(const char *name)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format("runtime/%s", name);

    return gql_uuid_of_name(text);
}

const struct serving_runtime *backendai_runtime_find(const struct uuid *id)
{
    for (const struct serving_runtime *runtime = serving_runtimes; runtime->name; runtime++) {
        struct uuid own = backendai_runtime_id(runtime->name);

        if (uuid_equals(&own, id))
            return runtime;
    }
    return NULL;
}

/* ---- rows ---- */

static const char *revision_uuid_text(struct arena *arena, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return arena_strdup(arena, uuid_format(id, text));
}

static const char *revision_image_id(struct arena *arena, const struct model_service_spec *spec)
{
    const char *architecture = spec->session.architecture ? spec->session.architecture
                                                          : IMAGE_ARCHITECTURE;
    struct reference ref;
    struct uuid id;

    if (!spec->session.image || reference_parse(spec->session.image, NULL, &ref, NULL) < 0)
        return "";
    id = gql_image_id(ref.text, architecture_of_machine(architecture));
    reference_done(&ref);
    return revision_uuid_text(arena, &id);
}

static double revision_seconds(int64_t usec, int seconds)
{
    return usec ? (double)usec / USEC_PER_SEC : seconds;
}

static void revision_fill_health(const struct model_service_spec *spec, struct arena *arena,
                                 struct revision_row *ret)
{
    ret->health_path = spec->health_path ? arena_strdup(arena, spec->health_path) : NULL;
    ret->health_status = spec->health_status ? spec->health_status : HEALTH_STATUS;
    ret->health_retries = spec->health_retries ? spec->health_retries : HEALTH_RETRIES;
    ret->health_interval_sec = revision_seconds(spec->health_interval_usec, HEALTH_INTERVAL_SEC);
    ret->health_timeout_sec = revision_seconds(spec->health_timeout_usec, HEALTH_TIMEOUT_SEC);
    ret->ready_sec = revision_seconds(spec->ready_usec, READY_SEC);
}

int backendai_revision_fill(const struct model_service *s,
                            const struct model_service_revision *revision, struct arena *arena,
                            struct revision_row *ret, struct aq_error *err)
{
    const struct model_service_spec *spec = revision->spec;
    int r;

    *ret = (struct revision_row){ .id = backendai_revision_id(&s->id, revision->number),
                                  .service_id = s->id,
                                  .number = revision->number,
                                  .created_usec = revision->created_usec,
                                  .port = spec->port };
    if ((r = serving_deploy_read_asked(revision, arena, &ret->asked, err)) < 0)
        return r;
    ret->id_text = revision_uuid_text(arena, &ret->id);
    revision_fill_health(spec, arena, ret);
    ret->mode = spec->is_multi_node ? "MULTI_NODE" : "SINGLE_NODE";
    ret->cluster_size = spec->cluster_size ? spec->cluster_size : 1;
    ret->runtime = ret->asked.runtime ? ret->asked.runtime : SERVING_RUNTIME_DEFAULT;
    ret->target = arena_strdup(arena,
                               spec->model_target ? spec->model_target : SERVING_MODEL_TARGET);
    ret->title = arena_strdup(arena, spec->model_name ? spec->model_name : s->name);
    ret->image_id_text = revision_image_id(arena, spec);
    ret->model_id_text = "";
    if (spec->model && uuid_parse(spec->model, &ret->model_id) == 0)
        ret->model_id_text = revision_uuid_text(arena, &ret->model_id);
    ret->folders = endpoint_read_folders(&spec->mounts, arena, &ret->folder_count);
    return 0;
}
