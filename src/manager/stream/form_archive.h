/* SPDX-License-Identifier: Apache-2.0 */
/* form_archive.h - the files of a form (multipart/form-data) as a tar archive
 *
 * As Backend.AI's clients upload them: at most 20 of 1 MiB each, held one at a time, with their
 * paths as file names, of which "%2F" and such are decoded.
 */
#ifndef AQ_MANAGER_STREAM_FORM_ARCHIVE_H
#define AQ_MANAGER_STREAM_FORM_ARCHIVE_H

#include <stddef.h>

#include "base/error.h"

#define FORM_FILES_MAX 20
#define FORM_FILE_MAX (1024 * 1024)

struct form_archive;

/* Takes the archive's bytes: 0, or -errno, which ends the feeding. */
typedef int form_archive_fn(void *data, const char *bytes, size_t len);

/* 'content_type' is the request's header. -EINVAL. */
int form_archive_new(const char *content_type, form_archive_fn *on_bytes, void *data,
                     struct form_archive **ret, struct aq_error *err) AQ_UNTRUSTED;
void form_archive_free(struct form_archive *form);

/* -EINVAL for what is no form, -EFBIG past a limit, or what on_bytes() returned. */
int form_archive_feed(struct form_archive *form, const char *bytes, size_t len,
                      struct aq_error *err) AQ_UNTRUSTED;
/* The form has ended: so does the archive. */
int form_archive_finish(struct form_archive *form, struct aq_error *err);

#endif
