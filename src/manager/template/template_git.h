/* SPDX-License-Identifier: Apache-2.0 */
/* template_git.h - the repository that a template names, and the commands that clone it
 *
 * Pure.
 */
#ifndef AQ_MANAGER_TEMPLATE_TEMPLATE_GIT_H
#define AQ_MANAGER_TEMPLATE_TEMPLATE_GIT_H

#include <jansson.h>

#include "base/error.h"
#include "base/strbuf.h"

#define TEMPLATE_HIDDEN "********" /* what others see of a password */

struct template_git {
    const char *repository;                    /* NULL = none */
    const char *branch, *commit, *destination; /* NULL = as git has it */
    const char *username, *password;
};

/* -EINVAL with a field below 'path': an address that git may not be given, or a name that would be
 * an option of git; a password that was hidden.
 */
int template_git_check(const struct template_git *git, const char *path,
                       struct aq_error *err) AQ_UNTRUSTED;

/* Put TEMPLATE_HIDDEN in place of the passwords that the member 'git' of a template has; false if
 * it has none.
 */
bool template_git_hide(json_t *git);

/* Shell commands that clone it where it is not yet, or end the script. */
void template_git_write(const struct template_git *git, struct strbuf *out);

#endif
