/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - volumes with which a pod could leave its part of a GPU, and where they are mounted */
#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "k8s/webhook/webhook_internal.h"

static const char *volumes_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* ---- paths ---- */

/* The path as the runtime takes it: no "//", ".", ".."; "" is the root. */
static void volumes_clean_path(const char *path, struct strbuf *out)
{
    while (*path) {
        size_t len;

        path += strspn(path, "/");
        len = strcspn(path, "/");
        if (len == 2 && memcmp(path, "..", 2) == 0) {
            while (out->len && out->data[out->len - 1] != '/')
                strbuf_truncate(out, out->len - 1);
            strbuf_truncate(out, out->len - (out->len > 0));
        } else if (len && !(len == 1 && path[0] == '.')) {
            strbuf_addc(out, '/');
            strbuf_add(out, path, len);
        }
        path += len;
    }
}

/* Is 'path' the folder or below it? Both are clean. */
static bool volumes_is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* ---- where volumes are mounted ---- */

/* The path of what every container with a part of a GPU is given, if 'path' is it or below it. */
static const char *volumes_given_path(const char *path)
{
    static const char *const given[] = { "/etc/ld.so.preload", "/run/aliquot", "/opt/kernel" };
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    const char *at;

    volumes_clean_path(path, &clean);
    at = clean.data;
    if (strncmp(at, "/var/run/", 9) == 0) /* a link to /run in all usual images */
        at += 4;
    for (size_t i = 0; i < AQ_COUNT(given); i++)
        if (volumes_is_below(at, given[i]))
            return given[i];
    return NULL;
}

int mounts_check(const char *name, const json_t *container, struct aq_error *err)
{
    static const struct {
        const char *list, *path;
    } kinds[] = { { "volumeMounts", "mountPath" }, { "volumeDevices", "devicePath" } };

    for (size_t k = 0; k < AQ_COUNT(kinds); k++) {
        const json_t *place;
        size_t i;

        json_array_foreach(json_object_get(container, kinds[k].list), i, place) {
            const char *path = volumes_text(place, kinds[k].path);
            const char *given = path ? volumes_given_path(path) : NULL;

            if (given)
                return aq_fail(
                    err, EPERM,
                    "container '%.63s': %s[%zu].%s '%.100s' would hide '%s', which enforces "
                    "the container's limits: mount it elsewhere",
                    name, kinds[k].list, i, kinds[k].path, path, given);
        }
    }
    return 0;
}

/* ---- what is mounted ---- */

/* Types whose content is the cluster's or an administrator's; not hostPath, which is looked at
 * below; not flexVolume and gitRepo, which run programs on the node with what the pod says.
 */
static bool volumes_is_type_allowed(const char *type)
{
    static const char *const types[] = {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "fc",
        "gcePersistentDisk",
        "glusterfs",
        "image",
        "iscsi",
        "nfs",
        "persistentVolumeClaim",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "secret",
        "storageos",
        "vsphereVolume",
    };

    for (size_t i = 0; i < AQ_COUNT(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static int volumes_check_host_path(const struct settings *settings, const char *name,
                                   const json_t *source, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    const struct conf_list *allowed = &settings->webhook.host_paths;
    const char *path = volumes_text(source, "path");

    volumes_clean_path(path ? path : "", &clean);
    for (size_t i = 0; i < allowed->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf folder = STRBUF_INIT;

        volumes_clean_path(allowed->items[i], &folder);
        if (volumes_is_below(clean.data, folder.data))
            return 0;
    }
    return aq_fail(
        err, EPERM,
        "volume '%.63s': hostPath.path '%.100s' is of the node, which pods with a part of a "
        "GPU may not mount: use a PersistentVolumeClaim or an emptyDir, or let the "
        "administrator add the folder to webhook.allow-host-paths",
        name, path ? path : "");
}

int volumes_check(const struct settings *settings, const json_t *spec, struct aq_error *err)
{
    const json_t *volume, *source;
    const char *type;
    size_t i;
    int r;

    json_array_foreach(json_object_get(spec, "volumes"), i, volume) {
        const char *name = volumes_text(volume, "name");

        name = name ? name : "";
        json_object_foreach((json_t *)(uintptr_t)volume, type, source) {
            if (strcmp(type, "name") == 0 || volumes_is_type_allowed(type))
                continue;
            if (strcmp(type, "hostPath") != 0)
                return aq_fail(
                    err, EPERM,
                    "volume '%.63s': pods with a part of a GPU may not have volumes of type "
                    "'%.63s': use a PersistentVolumeClaim",
                    name, type);
            r = volumes_check_host_path(settings, name, source, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}
