/* SPDX-License-Identifier: Apache-2.0 */
/* login_file.h - the login for a repository in a containers-auth.json(5)
 *
 * The most specific key matches: "HOST/TEAM/IMAGE", "HOST/TEAM", "HOST". Logins by helper programs
 * and by identity tokens are not read.
 */
#ifndef AQ_AGENT_IMAGE_LOGIN_FILE_H
#define AQ_AGENT_IMAGE_LOGIN_FILE_H

#include "base/error.h"

struct login {
    char *username, *password; /* NULL = none for this repository */
};

/* 'text' is the file, NUL-terminated. -ENOTSUP for a helper or an identity token, -EINVAL for a
 * file that has another form.
 */
int login_file_find(const char *text, const char *registry, const char *repository,
                    struct login *ret, struct aq_error *err);

/* Overwrites the password. */
void login_done(struct login *login);

#endif
