/* SPDX-License-Identifier: Apache-2.0 */
/* Who may make an account without an administrator, and the hook that decides. */
#include "manager/login/signup.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/vec.h"
#include "http/client.h"
#include "http/defer.h"
#include "model/accounts.h"

#define CALLS_MAX 16u /* under way */

struct signup {
    uv_loop_t *loop;
    const struct signup_rules *rules;
    struct login_limits *limits;
    struct hook_command_spec command; /* argv NULL = none */
    struct client *client;            /* NULL = no URL */
    struct list calls;
    size_t call_count;
};

struct signup_call {
    struct list link;
    struct signup *signup;
    struct hook_command *command; /* one of these, until it has ended */
    struct exchange *exchange;
    struct defer *deadline;
    hook_answer_fn *done;
    void *data;
};

/* ---- a question ---- */

static void signup_call_end(struct signup_call *call, const char *answer, size_t len,
                            const struct aq_error *err)
{
    list_remove(&call->link);
    call->signup->call_count--;
    defer_cancel(call->deadline);
    call->done(call->data, answer, len, err);
    if (call->command)
        hook_command_stop(call->command);
    exchange_cancel(call->exchange);
    free(call);
}

static void signup_on_deadline(void *data)
{
    struct signup_call *call = data;
    struct aq_error err = { 0 };

    aq_fail(&err, ETIMEDOUT, "there is no answer after %lld ms",
            (long long)(call->signup->rules->timeout_usec / USEC_PER_MSEC));
    signup_call_end(call, NULL, 0, &err);
}

static void signup_on_command(void *data, const char *answer, size_t len,
                              const struct aq_error *err)
{
    struct signup_call *call = data;

    call->command = NULL;
    signup_call_end(call, answer, len, err);
}

static void signup_on_response(void *data, const struct client_response *response,
                               const struct aq_error *err)
{
    struct signup_call *call = data;
    struct aq_error failed = *err;
    unsigned status = response ? response->head->status : 0;

    call->exchange = NULL;
    if (response && (status < 200 || status > 299))
        aq_fail(&failed, EPROTO, "it answers with status %u", status);
    signup_call_end(call, response ? response->body : NULL, response ? response->body_len : 0,
                    &failed);
}

static int signup_send(struct signup_call *call, const char *question, struct aq_error *err)
{
    const struct signup *signup = call->signup;
    const struct client_request request = {
        .method = METHOD_POST,
        .url = signup->rules->url,
        .headers = "Content-Type: application/json\r\nUser-Agent: aliquot-manager\r\n",
        .body = question,
        .body_len = strlen(question),
        .body_max = HOOK_ANSWER_MAX,
    };

    return client_fetch(signup->client, &request, signup_on_response, call, &call->exchange, err);
}

int signup_ask(struct signup *signup, const char *question, hook_answer_fn *done, void *data,
               struct aq_error *err)
{
    struct signup_call *call;
    int r;

    if (signup->call_count >= CALLS_MAX)
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "too many sign up at this moment; try again in a few seconds");
    call = aq_alloc(sizeof(*call));
    call->deadline = defer_new(signup->loop, signup_on_deadline, call);
    call->signup = signup;
    call->done = done;
    call->data = data;
    r = signup->client ? signup_send(call, question, err)
                       : hook_command_start(signup->loop, &signup->command, question,
                                            signup_on_command, call, &call->command, err);
    if (r < 0) {
        defer_cancel(call->deadline);
        free(call);
        return r;
    }
    list_add(&signup->calls, &call->link);
    signup->call_count++;
    defer_start(call->deadline, (unsigned)(signup->rules->timeout_usec / USEC_PER_MSEC));
    return 0;
}

/* ---- the settings ---- */

static int signup_check_status(const struct signup_rules *rules, struct aq_error *err)
{
    enum user_status status;

    if (user_status_parse(rules->status, &status) == 0
        && (status == USER_ACTIVE || status == USER_BEFORE_VERIFICATION))
        return 0;
    return aq_fail_field(err, EINVAL, "signup.status",
                         "'%.40s' is neither active nor before-verification", rules->status);
}

/* As whom the command runs. */
static int signup_find_user(struct signup *signup, struct aq_error *err)
{
    const char *name = signup->rules->user;
    const struct passwd *entry;

    if (geteuid() != 0)
        return 0; /* as the manager's own user */
    if (!(entry = getpwnam(name)))
        return aq_fail_field(err, EINVAL, "signup.hook-user", "there is no user '%.64s'", name);
    signup->command.sets_user = true;
    signup->command.uid = entry->pw_uid;
    signup->command.gid = entry->pw_gid;
    return 0;
}

static int signup_open_command(struct signup *signup, struct aq_error *err)
{
    const struct conf_list *list = &signup->rules->command;

    if (list->items[0][0] != '/' || access(list->items[0], X_OK) < 0)
        return aq_fail_field(err, EINVAL, "signup.hook-command",
                             "'%.200s' must be the absolute path of a program", list->items[0]);
    signup->command.argv = aq_alloc_array(list->count + 1, sizeof(char *));
    memcpy(signup->command.argv, list->items, list->count * sizeof(char *));
    return signup_find_user(signup, err);
}

static int signup_open_url(struct signup *signup, struct aq_error *err)
{
    const char *text = signup->rules->url;
    struct url url;

    if ((strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0)
        || url_parse(text, &url, NULL) < 0)
        return aq_fail_field(err, EINVAL, "signup.hook-url", "must be a URL of http or https");
    signup->client = client_new(signup->loop, &(struct client_options){ 0 });
    return 0;
}

static int signup_open(struct signup *signup, struct aq_error *err)
{
    const struct signup_rules *rules = signup->rules;
    bool has_url = rules->url && rules->url[0];
    int r = signup_check_status(rules, err);

    if (r == 0 && has_url && rules->command.count)
        r = aq_fail_field(err, EINVAL, "signup.hook-url",
                          "is set beside hook-command; leave one of them out");
    if (r == 0 && has_url)
        r = signup_open_url(signup, err);
    if (r == 0 && rules->command.count)
        r = signup_open_command(signup, err);
    return r;
}

/* ---- beginning and end ---- */

int signup_new(uv_loop_t *loop, const struct signup_rules *rules, struct signup **ret,
               struct aq_error *err)
{
    struct signup *signup = aq_alloc(sizeof(*signup));
    int r;

    signup->loop = loop;
    signup->rules = rules;
    list_init(&signup->calls);
    signup->limits = login_limits_new();
    if ((r = signup_open(signup, err)) < 0) {
        signup_free(signup);
        return r;
    }
    *ret = signup;
    return 0;
}

void signup_stop(struct signup *signup)
{
    struct aq_error err = { 0 };

    aq_fail(&err, ECANCELED, "the manager is stopping");
    while (!list_is_empty(&signup->calls))
        signup_call_end(LIST_ENTRY(signup->calls.next, struct signup_call, link), NULL, 0, &err);
}

void signup_free(struct signup *signup)
{
    if (!signup)
        return;
    signup_stop(signup);
    client_free(signup->client);
    login_limits_free(signup->limits);
    free(signup->command.argv);
    free(signup);
}

const struct signup_rules *signup_get_rules(const struct signup *signup)
{
    return signup->rules;
}

int64_t signup_begin(struct signup *signup, struct login_try *attempt)
{
    return login_limits_begin(signup->limits, attempt);
}

bool signup_has_hook(const struct signup *signup)
{
    return signup->client || signup->command.argv;
}
