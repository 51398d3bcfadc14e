/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_name.c - see cgroup_name.h */
#include "k8s/limits/cgroup_name.h"

#include <string.h>

struct piece {
    const char *text;
    size_t len;
};

static bool piece_is(const struct piece *piece, const char *text)
{
    return piece->len == strlen(text) && memcmp(piece->text, text, piece->len) == 0;
}

static bool piece_take_prefix(struct piece *piece, const char *prefix)
{
    size_t len = strlen(prefix);

    if (piece->len < len || memcmp(piece->text, prefix, len) != 0)
        return false;
    piece->text += len;
    piece->len -= len;
    return true;
}

static bool piece_take_suffix(struct piece *piece, const char *suffix)
{
    size_t len = strlen(suffix);

    if (piece->len < len || memcmp(piece->text + piece->len - len, suffix, len) != 0)
        return false;
    piece->len -= len;
    return true;
}

/* The next part of a path; false at its end. */
static bool piece_next(struct piece *path, struct piece *ret)
{
    const char *slash;

    if (!path->len || path->text[0] != '/')
        return false;
    path->text++;
    path->len--;
    slash = memchr(path->text, '/', path->len);
    *ret = (struct piece){ path->text, slash ? (size_t)(slash - path->text) : path->len };
    path->text += ret->len;
    path->len -= ret->len;
    return ret->len > 0;
}

/* ---- the parts of a path ---- */

static const char *const classes[] = { "burstable", "besteffort" };

static bool cgroup_name_is_class(const struct piece *piece, bool is_slice)
{
    for (size_t i = 0; i < AQ_COUNT(classes); i++) {
        struct piece part = *piece;

        if (is_slice
            && !(piece_take_prefix(&part, "kubepods-") && piece_take_suffix(&part, ".slice")))
            return false;
        if (piece_is(&part, classes[i]))
            return true;
    }
    return false;
}

static bool cgroup_name_read_pod(struct piece part, bool is_slice, struct cgroup_name *ret)
{
    if (is_slice) {
        if (!piece_take_prefix(&part, "kubepods-") || !piece_take_suffix(&part, ".slice"))
            return false;
        for (size_t i = 0; i < AQ_COUNT(classes); i++)
            if (piece_take_prefix(&part, classes[i]) && !piece_take_prefix(&part, "-"))
                return false;
    }
    if (!piece_take_prefix(&part, "pod") || part.len == 0 || part.len > POD_UID_MAX)
        return false;
    for (size_t i = 0; i < part.len; i++)
        ret->pod[i] = is_slice && part.text[i] == '_' ? '-' : part.text[i];
    ret->pod[part.len] = '\0';
    return pod_is_uid(ret->pod, part.len);
}

static bool cgroup_name_read_container(struct piece part, bool is_slice, struct cgroup_name *ret)
{
    static const char *const runtimes[] = { "cri-containerd-", "crio-", "docker-" };

    if (is_slice) {
        bool is_known = false;

        for (size_t i = 0; i < AQ_COUNT(runtimes) && !is_known; i++)
            is_known = piece_take_prefix(&part, runtimes[i]);
        if (!is_known || !piece_take_suffix(&part, ".scope"))
            return false;
    }
    if (!pod_is_container_id(part.text, part.len))
        return false;
    memcpy(ret->container, part.text, part.len);
    ret->container[part.len] = '\0';
    return true;
}

/* The names in one path; false if it is none of a container. */
static bool cgroup_name_read_path(struct piece path, const char *root, struct cgroup_name *ret)
{
    const char *begin = path.text;
    struct piece part;
    size_t len;
    bool is_relative = false, is_slice;

    if (!piece_next(&path, &part))
        return false;
    if (piece_is(&part, "..")) {
        is_relative = true;
        while (piece_is(&part, ".."))
            if (!piece_next(&path, &part))
                return false;
    } else if (root[0]) {
        path.len += (size_t)(path.text - part.text) + 1;
        path.text = part.text - 1;
        if (!piece_take_prefix(&path, root) || !piece_next(&path, &part))
            return false;
    }
    is_slice = piece_take_suffix(&(struct piece){ part.text, part.len }, ".slice");
    if (piece_is(&part, is_slice ? "kubepods.slice" : "kubepods")) {
        if (!piece_next(&path, &part))
            return false;
    } else if (!is_relative) {
        return false;
    }
    if (cgroup_name_is_class(&part, is_slice) && !piece_next(&path, &part))
        return false;
    if (!cgroup_name_read_pod(part, is_slice, ret) || !piece_next(&path, &part)
        || !cgroup_name_read_container(part, is_slice, ret))
        return false;
    len = (size_t)(part.text + part.len - begin);
    if (is_relative || len > CGROUP_PATH_MAX)
        len = 0;
    memcpy(ret->path, begin, len);
    ret->path[len] = '\0';
    return true;
}

/* ---- the file ---- */

/* The path of the next line, "4:memory:/a/b"; false at the end. One that is no such line is empty.
 */
static bool cgroup_name_next_line(const char **text, struct piece *ret)
{
    const char *line = *text, *end = line + strcspn(line, "\n");
    const char *first = memchr(line, ':', (size_t)(end - line));
    const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

    if (!*line)
        return false;
    *ret = (struct piece){ second ? second + 1 : end, second ? (size_t)(end - second - 1) : 0 };
    *text = *end ? end + 1 : end;
    return true;
}

bool cgroup_name_read(const char *text, const char *root, struct cgroup_name *ret)
{
    struct piece path;
    bool is_found = false;

    ret->path[0] = '\0';
    while (*text) {
        bool is_v2 = strncmp(text, "0::", 3) == 0;
        struct cgroup_name name;

        (void)cgroup_name_next_line(&text, &path);
        if (!cgroup_name_read_path(path, root, &name))
            continue;
        if (is_found
            && (strcmp(name.pod, ret->pod) != 0 || strcmp(name.container, ret->container) != 0))
            return false;
        memcpy(ret->pod, name.pod, sizeof(ret->pod));
        memcpy(ret->container, name.container, sizeof(ret->container));
        if (is_v2)
            memcpy(ret->path, name.path, sizeof(ret->path));
        is_found = true;
    }
    return is_found;
}

void cgroup_name_root(const char *text, char ret[CGROUP_ROOT_MAX + 1])
{
    struct piece path, part, rest;

    ret[0] = '\0';
    while (cgroup_name_next_line(&text, &path)) {
        for (rest = path; piece_next(&rest, &part);)
            if (piece_is(&part, "kubepods") || piece_is(&part, "kubepods.slice")) {
                size_t len = (size_t)(part.text - path.text) - 1;

                if (len > CGROUP_ROOT_MAX)
                    return;
                memcpy(ret, path.text, len);
                ret[len] = '\0';
                return;
            }
    }
}
