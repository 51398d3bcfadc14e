/* SPDX-License-Identifier: Apache-2.0 */
/* template_git.c - the repository that a template names, and the commands that clone it */
#include "manager/template/template_git.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http/url.h"

/* git runs programs for addresses of other forms, such as "ext::sh -c ...". */
static const char *const template_git_schemes[] = { "https://", "http://", "git://", "ssh://" };

static const char *template_git_scheme(const char *repository)
{
    for (size_t i = 0; i < AQ_COUNT(template_git_schemes); i++)
        if (strncmp(repository, template_git_schemes[i], strlen(template_git_schemes[i])) == 0)
            return template_git_schemes[i];
    return NULL;
}

/* "git@host:path": no "::", which names a helper program. */
static bool template_git_is_scp(const char *repository)
{
    const char *at = strchr(repository, '@'), *colon = strchr(repository, ':');

    return at && colon && at < colon && colon[1] && colon[1] != ':'
           && !memchr(repository, '/', (size_t)(colon - repository));
}

static int template_git_refuse(struct aq_error *err, const char *path, const char *member,
                               const char *why)
{
    char field[sizeof(err->field)];

    (void)snprintf(field, sizeof(field), "%s.%s", path, member);
    return aq_fail_as(err, EINVAL, "invalid-api-params", field, "%s", why);
}

/* The password in "https://user:password@host/path"; false if it has none. */
static bool template_git_find_password(const char *repository, size_t *ret_begin, size_t *ret_end)
{
    const char *scheme = template_git_scheme(repository);
    const char *from = scheme ? repository + strlen(scheme) : repository, *at, *colon;

    at = scheme ? memrchr(from, '@', strcspn(from, "/")) : NULL;
    colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
    if (!colon)
        return false;
    *ret_begin = (size_t)(colon + 1 - repository);
    *ret_end = (size_t)(at - repository);
    return true;
}

static bool template_git_is_hidden(const struct template_git *git)
{
    size_t len = strlen(TEMPLATE_HIDDEN), begin, end;

    return (git->password && strcmp(git->password, TEMPLATE_HIDDEN) == 0)
           || (template_git_find_password(git->repository, &begin, &end) && end - begin == len
               && memcmp(git->repository + begin, TEMPLATE_HIDDEN, len) == 0);
}

bool template_git_hide(json_t *git)
{
    json_t *credential = json_object_get(git, "credential");
    const char *repository = json_string_value(json_object_get(git, "repository"));
    size_t begin, end;
    bool has_any = json_object_get(credential, "password");

    if (has_any)
        (void)json_object_set_new(credential, "password", json_string(TEMPLATE_HIDDEN));
    if (repository && template_git_find_password(repository, &begin, &end)) {
        has_any = true;
        (void)json_object_set_new(
            git, "repository",
            json_sprintf("%.*s" TEMPLATE_HIDDEN "%s", (int)begin, repository, repository + end));
    }
    return has_any;
}

int template_git_check(const struct template_git *git, const char *path, struct aq_error *err)
{
    const struct {
        const char *member, *value;
    } words[] = { { "repository", git->repository },
                  { "branch", git->branch },
                  { "commit", git->commit },
                  { "destination_dir", git->destination } };
    const char *scheme;

    if (!git->repository)
        return 0;
    for (size_t i = 0; i < AQ_COUNT(words); i++)
        if (words[i].value && words[i].value[0] == '-')
            return template_git_refuse(err, path, words[i].member, "must not begin with '-'");
    if (template_git_is_hidden(git))
        return template_git_refuse(err, path, git->password ? "credential.password" : "repository",
                                   "has the stars that a password was hidden by: write your own");
    scheme = template_git_scheme(git->repository);
    if (!scheme && !template_git_is_scp(git->repository))
        return template_git_refuse(err, path, "repository",
                                   "must be https://..., http://..., git://..., ssh://... or "
                                   "user@host:path");
    if (git->username && (!scheme || strncmp(scheme, "http", 4) != 0))
        return template_git_refuse(err, path, "credential", "is for http and https only");
    return 0;
}

/* 'text' as one word of a shell. */
static void template_git_quote(struct strbuf *out, const char *text)
{
    strbuf_addc(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            strbuf_adds(out, "'\\''");
        else
            strbuf_addc(out, *text);
    strbuf_addc(out, '\'');
}

/* "https://user:password@host/path" */
static void template_git_write_address(const struct template_git *git, struct strbuf *out)
{
    const char *scheme = template_git_scheme(git->repository);
    AQ_CLEANUP(strbuf_donep) struct strbuf address = STRBUF_INIT;

    if (git->username) {
        strbuf_adds(&address, scheme);
        url_encode(&address, git->username);
        strbuf_addc(&address, ':');
        url_encode(&address, git->password);
        strbuf_addc(&address, '@');
        strbuf_adds(&address, git->repository + strlen(scheme));
    } else {
        strbuf_adds(&address, git->repository);
    }
    template_git_quote(out, address.data);
}

/* The folder that git makes of itself: the last part of the address without ".git". */
static void template_git_write_destination(const struct template_git *git, struct strbuf *out)
{
    size_t len = strlen(git->repository), begin;
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;

    while (len > 0 && git->repository[len - 1] == '/')
        len--;
    if (len > 4 && strncmp(git->repository + len - 4, ".git", 4) == 0)
        len -= 4;
    for (begin = len; begin > 0 && !strchr("/:", git->repository[begin - 1]); begin--)
        ;
    strbuf_add(&name, git->repository + begin, len - begin);
    template_git_quote(out, git->destination ? git->destination
                            : name.len       ? name.data
                                             : "repository");
}

void template_git_write(const struct template_git *git, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf destination = STRBUF_INIT;

    if (!git->repository)
        return;
    template_git_write_destination(git, &destination);
    strbuf_addf(out, "if [ ! -e %s ]; then\n  git clone", destination.data);
    if (git->branch) {
        strbuf_adds(out, " --branch ");
        template_git_quote(out, git->branch);
    }
    strbuf_adds(out, " -- ");
    template_git_write_address(git, out);
    strbuf_addf(out, " %s || exit\n", destination.data);
    if (git->commit) {
        strbuf_addf(out, "  git -C %s checkout ", destination.data);
        template_git_quote(out, git->commit);
        strbuf_adds(out, " -- || exit\n");
    }
    strbuf_adds(out, "fi\n");
}
