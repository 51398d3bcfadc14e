/* SPDX-License-Identifier: Apache-2.0 */
/* Names of sessions, agents and users: whatever is accepted has only the promised
 * characters and length, so that it is safe in paths, logs and URLs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/agent.h"
#include "model/email.h"
#include "model/end_signal.h"
#include "model/rerun.h"
#include "model/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    struct aq_error err = { 0 };
    enum dependency_condition condition;
    const char *session;
    struct rerun_policy policy;
    int64_t before_usec;
    int signal_number;
    struct uuid id;
    char *text = malloc(size + 1);
    size_t len;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    len = strlen(text);
    if (session_name_check(text, &err) == 0)
        require(len >= SESSION_NAME_MIN && len <= SESSION_NAME_MAX && strspn(text, word) == len);
    else
        require(strcmp(err.field, "name") == 0 && err.text[0]);
    if (session_name_check_any(text) == 0 && session_name_check(text, NULL) < 0)
        require(len > 0 && text[len - 1] == ']' && strchr(text, '['));
    if (session_name_check_new(text, &err) == 0)
        require(session_name_check(text, NULL) == 0 && uuid_parse(text, &id) < 0);
    if (agent_id_check(text, &err) == 0)
        require(len >= 1 && len <= AGENT_ID_MAX && strspn(text, word) == len && text[0] != '.');
    else
        require(strcmp(err.field, "agent_id") == 0 && err.text[0]);
    if (topology_check(text, &err) == 0)
        require(len >= 1 && len <= TOPOLOGY_MAX && !strstr(text, "//") && text[0] != '/');
    else
        require(strcmp(err.field, "topology") == 0 && err.text[0]);
    if (dependency_parse(text, &condition, &session, &err) == 0)
        require(session >= text && session <= text + len
                && (session == text || session[-1] == ':'));
    else
        require(strcmp(err.field, "dependencies") == 0 && strchr(text, ':'));
    if (rerun_policy_parse(text, &policy, &err) < 0)
        require(err.field[0] && err.text[0]);
    if (end_signal_parse(text, &signal_number, &before_usec, &err) == 0)
        require(signal_number > 0 && before_usec >= 0);
    else
        require(err.text[0]);
    if (email_check_new(text, &err) == 0)
        require(strchr(text, '@') && !strpbrk(text, " $`&|;<>(){}[]*?!#~\"\\\n") && text[0] != '-');
    else
        require(strcmp(err.field, "email") == 0 && err.text[0]);
    free(text);
    return 0;
}
