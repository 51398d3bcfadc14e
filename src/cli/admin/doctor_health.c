/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the manager says of itself: its servers, its status, a restore. */
#include <string.h>

#include "cli/admin/doctor_cluster.h"

/* Write "TEXT since TIME" if the health names, in 'member', since when a server has been away. */
static bool doctor_find_away(const struct doctor_cluster *c, const char *member,
                             enum check_level level, const char *text, struct finding *ret)
{
    const char *since = json_string_value(json_object_get(c->health, member));

    if (!since)
        return false;
    finding_say(ret, level, "%s since %s", text, since);
    return true;
}

void doctor_check_database(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;

    if (doctor_find_away(c, "database_away_since", CHECK_MISSING,
                         "the manager has not reached its database", ret)) {
        finding_mean(ret, "it answers from memory; changes are refused, and no session starts");
        finding_mend(ret, "on the manager's machine: aliquot doctor manager; start the database "
                          "server");
    } else if (json_object_get(c->health, "database_away_since")) {
        finding_say(ret, CHECK_OK, "the manager reaches its database");
    }
}

void doctor_check_redis(void *data, struct finding *ret)
{
    if (!doctor_find_away(data, "redis_away_since", CHECK_WARNING,
                          "the manager's Redis server has not accepted writes", ret))
        return;
    finding_mean(ret, "sessions are not affected; tools find no live figures in Redis");
    finding_mend(ret, "on the manager's machine: aliquot doctor manager; start the Redis server");
}

void doctor_check_etcd(void *data, struct finding *ret)
{
    if (!doctor_find_away(data, "etcd_away_since", CHECK_WARNING,
                          "etcd and the configuration tree have not been synchronized", ret))
        return;
    finding_mean(ret, "the manager uses the tree in its database; changes are not copied to or "
                      "from etcd");
    finding_mend(ret, "on the manager's machine: aliquot doctor manager; start etcd");
}

void doctor_check_status(void *data, struct finding *ret)
{
    const struct doctor_cluster *c = data;
    const char *status = json_string_value(json_object_get(c->health, "status"));

    if (c->is_reached && status && strcmp(status, "frozen") == 0) {
        finding_say(ret, CHECK_WARNING, "an administrator has frozen the cluster");
        finding_mean(ret,
                     "sessions cannot be started, ended or changed; running sessions continue");
        finding_mend(ret, "aliquot announcement, for the reason; as a superadmin: aliquot admin "
                          "unfreeze");
    } else if (c->is_reached) {
        finding_say(ret, CHECK_OK, "sessions can be started and ended");
    }
}

/* Count the containers that are newer than the backup; -1 = unknown, as only superadmins may list
 * them.
 */
static int doctor_count_newer(struct doctor_cluster *c)
{
    json_t *answer = NULL;
    int count = 0;
    const json_t *item;
    size_t i;

    if (cli_call(c->cli, METHOD_GET, "/aliquot/v1/orphans", NULL, &answer, NULL) < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "items"), i, item)
        count += (int)json_integer_value(json_object_get(item, "containers"));
    json_decref(answer);
    return count;
}

/* Fill 'ret' and return true if agents have seen later commits than the database has. */
static bool doctor_find_older_database(const json_t *health, struct finding *ret)
{
    json_int_t ahead = json_integer_value(json_object_get(health, "epoch_ahead"));
    json_int_t lost = json_integer_value(json_object_get(health, "lost_commits"));

    if (ahead) {
        finding_say(ret, CHECK_MISSING,
                    "agents follow epoch %lld and refuse this manager, which leads epoch %lld",
                    (long long)ahead,
                    (long long)json_integer_value(json_object_get(health, "epoch")));
        finding_mean(ret, "the database is an older copy, or another manager leads");
        finding_mend(ret, "if the database was put back: stop all managers; aliquot admin db "
                          "mark-restored; start them");
    } else if (lost) {
        finding_say(ret, CHECK_WARNING,
                    "the database lacks %lld commits of epoch %lld that agents have seen",
                    (long long)lost,
                    (long long)json_integer_value(json_object_get(health, "lost_commits_epoch")));
        finding_mean(ret,
                     "changes that were acknowledged in them are lost; the containers that they "
                     "started are kept");
        finding_mend(ret, "aliquot admin orphan ls; aliquot admin orphan adopt --all, or end");
    }
    return ahead || lost;
}

void doctor_check_restore(void *data, struct finding *ret)
{
    struct doctor_cluster *c = data;
    const char *made = json_string_value(json_object_get(c->health, "backup_made_at"));
    int newer = c->is_reached && made ? doctor_count_newer(c) : -1;

    if (c->is_reached && made) {
        finding_say(ret, CHECK_MISSING,
                    "the cluster was restored from a backup of %s, and the "
                    "restore is unfinished",
                    made);
        if (newer >= 0)
            finding_mean(ret,
                         "no session starts; %d containers on agents are newer than the "
                         "backup and keep their cores, memory and GPUs",
                         newer);
        else
            finding_mean(ret, "no session starts");
        finding_mend(ret, "%saliquot admin orphan finish",
                     newer ? "aliquot admin orphan ls; aliquot admin orphan adopt --all, or end; "
                           : "");
    } else if (c->is_reached && !doctor_find_older_database(c->health, ret)) {
        finding_say(ret, CHECK_OK, "no unfinished restore");
    }
}
