/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - image references as users write them
 *
 *   [docker://][REGISTRY/]REPOSITORY[:TAG][@sha256:HEX]   in a registry
 *   oci-archive:/PATH[:NAME], docker-archive:/PATH[:NAME]  a file that a tool saved
 *   oci:/FOLDER[:NAME]                                     an OCI layout
 *   rootfs:/PATH                                           an unpacked root file system
 *   host                                                   the node's own root
 *   aliquot/files                                          what agents bring for SFTP sessions
 *
 * Registry references have the grammar and the defaults of Docker's: the
 * first part is a registry if it has a '.' or ':' or is "localhost";
 * a single part in docker.io is below "library/"; the tag is "latest".
 * The canonical text says all of that, so equal images have equal texts.
 */
#ifndef AQ_MODEL_REFERENCE_H
#define AQ_MODEL_REFERENCE_H

#include <stdbool.h>

#include "base/error.h"

#define REFERENCE_MAX 512  /* bytes of a reference */
#define DIGEST_TEXT_MAX 72 /* "sha256:", 64 hex digits, NUL */
#define REFERENCE_REGISTRY_DEFAULT "docker.io"

/* The image of sessions in which folders are reached by SFTP and rsync, and nothing else is run. */
#define IMAGE_OF_FILES "aliquot/files"

enum reference_form {
    REFERENCE_REGISTRY,
    REFERENCE_OCI_ARCHIVE,
    REFERENCE_DOCKER_ARCHIVE,
    REFERENCE_OCI_LAYOUT,
    REFERENCE_ROOTFS,
    REFERENCE_HOST,
    REFERENCE_FILES, /* every node has it, whatever its settings allow */
};

struct reference {
    enum reference_form form;
    char *text;                  /* canonical */
    char *registry, *repository; /* of a registry's; else NULL */
    char *tag, *digest;          /* of a registry's: at least one of them */
    char *path;                  /* of a local form, absolute; else NULL */
    char *name;                  /* of an archive or layout; NULL = the only one in it */
};

/* 'registry' NULL = docker.io. Returns 0 or -EINVAL (field "image"). */
int reference_parse(const char *text, const char *registry, struct reference *ret,
                    struct aq_error *err) AQ_UNTRUSTED;
void reference_done(struct reference *ref);

/* True if the name can never mean other contents: it has a digest. */
static inline bool reference_is_pinned(const struct reference *ref)
{
    return ref->digest != NULL;
}

/* "sha256:" and 64 lower-case hex digits. */
bool digest_is_valid(const char *text) AQ_UNTRUSTED;

/* Whether one of the patterns admits the reference. "*" admits every registry;
 * other patterns are compared with "REGISTRY/REPOSITORY" or, for local forms,
 * with "FORM:/PATH" or "host": equal, above it ("registry.example/team" admits
 * all below it), or with "*" for any characters.
 */
bool reference_is_allowed(const struct reference *ref, const char *const *patterns, size_t count);

/* Can a pattern admit anything? -EINVAL for one with a tag or digest, of an
 * unknown form, or with characters that no name has.
 */
int reference_check_pattern(const char *pattern, struct aq_error *err);

#endif
