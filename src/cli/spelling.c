/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and options by the names that docker, Slurm and kubectl have for them. */
#include "cli/spelling.h"

#include <string.h>

#include "cli/help.h"
#include "cli/verbs.h"

/* 'ours' begins with a command; with 'runs' it is one, and takes the same arguments. */
static const struct spelling {
    const char *theirs, *ours;
    bool runs;
} spellings[] = {
    /* work */
    { "stop", "rm", true },
    { "kill", "rm", true },
    { "cancel", "rm", true },
    { "terminate", "rm", true },
    { "start", "session restart", true },
    { "restart", "session restart", true },
    { "list", "ps", true },
    { "ls", "ps", true },
    { "queue", "ps", true },
    { "agents", "agent ls", true },
    { "images", "image ls", true },
    { "pull", "image pull", true },
    { "rmi", "image rm", true },
    { "history", "session history", true },
    { "inspect", "session info", true },
    { "info", "session info", true },
    { "why", "session why", true },
    { "stats", "session stats", true },
    { "attach", "session attach", true },
    { "wait", "session wait", true },
    { "rename", "session rename", true },
    { "resize", "session resize", true },
    { "create", "session create", true },
    { "session ps", "session ls", true },
    { "session run", "run", true },
    { "session submit", "submit", true },
    { "session exec", "exec", true },
    { "session top", "top", true },
    { "session start", "session restart", true },

    { "template list", "template ls", true },
    { "template get", "template show", true },
    { "template update", "template edit", true },
    { "template delete", "template rm", true },
    { "session-template create", "template create", false },
    { "session-template list", "template ls", true },
    { "session-template get", "template show", true },
    { "session-template update", "template edit", false },
    { "session-template delete", "template rm", true },

    /* model services, as Backend.AI, kubectl and gcloud name what is done with them */
    { "service status", "service info", true },
    { "service get-endpoint", "service url", true },
    { "service generate-token", "service token create", false },
    { "service update-traffic-ratio", "service ratio", false },
    { "service history", "service revisions", true },
    { "service undo", "service rollback", true },
    { "rollout status", "service wait", false },
    { "rollout history", "service revisions", false },
    { "rollout undo", "service rollback", false },
    { "rollout restart", "service deploy", false },
    { "get deployments", "service ls", false },
    { "get services", "service ls", false },
    { "serve", "service create", false },

    /* Backend.AI's word for a project */
    { "admin group ls", "admin project ls", true },
    { "admin group create", "admin project create", true },
    { "admin group set", "admin project set", true },
    { "admin group add-user", "admin project add-user", true },
    { "admin group remove-user", "admin project remove-user", true },
    { "admin group rm", "admin project rm", true },
    { "admin group restore", "admin project restore", true },

    /* what it tells and freezes */
    { "admin announcement show", "announcement", true },
    { "admin announcement get", "announcement", true },
    { "admin announcement delete", "admin announcement clear", true },
    { "admin manager freeze", "admin freeze", true },
    { "admin manager unfreeze", "admin unfreeze", true },
    { "admin manager status", "doctor", false },

    /* whom it notifies */
    { "notification channel list", "admin notification channel ls", true },
    { "notification channel info", "admin notification channel info", true },
    { "notification channel delete", "admin notification channel rm", true },
    { "notification channel create", "admin notification channel create", false },
    { "notification channel update", "admin notification channel set", false },
    { "notification channel validate", "admin notification channel test", false },
    { "notification rule list", "admin notification rule ls", true },
    { "notification rule info", "admin notification rule info", true },
    { "notification rule delete", "admin notification rule rm", true },
    { "notification rule create", "admin notification rule create", false },
    { "notification rule update", "admin notification rule set", false },
    { "notification rule validate", "admin notification rule test", false },
    { "notification rule types", "admin notification rule types", true },
    { "notification rule schema", "admin notification rule types", false },

    /* its configuration in etcd */
    { "admin etcd get", "admin config get", true },
    { "admin etcd put", "admin config set", true },
    { "admin etcd put-json", "admin config import", true },
    { "admin etcd delete", "admin config rm", true },
    { "admin etcd move-subtree", "admin config move", true },
    { "mgr etcd get", "admin config get", true },
    { "mgr etcd put", "admin config set", true },
    { "mgr etcd put-json", "admin config import", true },
    { "mgr etcd delete", "admin config rm", true },
    { "mgr etcd move-subtree", "admin config move", true },
    { "mgr fixture populate", "admin fixture populate", true },
    { "admin etcd set", "admin config set", true },
    { "admin etcd export", "admin config export", true },
    { "admin etcd import", "admin config import", true },

    /* Slurm */
    { "squeue", "ps", false },
    { "sacct", "ps --all", false },
    { "sinfo", "nodes", false },
    { "snodes", "nodes", false },
    { "scancel", "rm", false },
    { "srun", "run", false },
    { "sbatch", "submit", false },
    { "srun --pty", "run -it", false },
    { "sbatch --wrap", "run --detach", false },
    { "squeue --start", "session why", false },
    { "squeue -j", "session info", false },
    { "sacct -j", "session history", false },
    { "seff", "session stats", false },
    { "salloc", "session create", false },
    { "sattach", "session attach", false },
    { "sstat", "session stats", false },
    { "sprio", "session why", false },
    { "sshare", "fair-share", false },
    { "sacctmgr", "admin user ls", false },
    { "scontrol", "session info", false },
    { "scontrol show jobs", "ps", false },
    { "scontrol show config", "config show", false },
    { "scontrol wait_job", "session wait", false },
    { "scontrol show node", "agent info", false },
    { "scontrol show nodes", "nodes", false },
    { "scontrol show partition", "admin resource-group ls", false },
    { "scontrol update", "session resize", false },
    { "scontrol requeue", "session restart", false },

    /* kubectl */
    { "get", "ps", false },
    { "get nodes", "nodes", false },
    { "get node", "nodes", false },
    { "get events", "session history", false },
    { "get namespaces", "admin project ls", false },
    { "get ns", "admin project ls", false },
    { "describe", "session info", false },
    { "describe node", "agent info", false },
    { "describe nodes", "agent info", false },
    { "delete", "rm", false },
    { "delete node", "agent rm", false },
    { "apply", "session create", false },
    { "scale", "run --count N", false },
    { "cordon", "agent drain", false },
    { "drain", "agent drain", false },
    { "uncordon", "agent undrain", false },
    { "cluster-info", "agent ls", false },
    { "events", "session history", false },

    /* docker */
    { "container", "ps", false },
    { "container run", "run", false },
    { "container rm", "rm", false },
    { "container stop", "rm", false },
    { "container kill", "rm", false },
    { "container logs", "logs", false },
    { "container exec", "exec", false },
    { "container inspect", "session info", false },
    { "container stats", "session stats", false },
    { "tag", "image alias", false },
    { "volume", "folder ls", false },
    { "volume create", "folder create", false },
    { "volume inspect", "folder info", false },
    { "volume rm", "folder rm", false },
    { "node", "nodes", false },
    { "prune", "image gc", false },
    { "system prune", "image gc", false },
    { "system df", "image ls", false },
    { "system info", "agent ls", false },
    { "compose", "session create", false },
};

/* What one does to a thing, after its noun: "session list", "agent describe". */
static const struct {
    const char *theirs, *ours;
} spelling_actions[] = {
    { "list", "ls" },        { "show", "info" },    { "inspect", "info" },
    { "describe", "info" },  { "get", "show" },     { "get", "info" },
    { "list", "show" },      { "ls", "show" },      { "delete", "rm" },
    { "remove", "rm" },      { "stop", "rm" },      { "kill", "rm" },
    { "cancel", "rm" },      { "terminate", "rm" }, { "add", "create" },
    { "new", "create" },     { "update", "set" },   { "edit", "set" },
    { "modify", "set" },     { "tag", "alias" },    { "untag", "unalias" },
    { "cordon", "drain" },   { "prune", "gc" },     { "uncordon", "undrain" },
    { "resume", "undrain" },
};

#define COPY "aliquot cp FILE SESSION:PATH"
#define REGISTRY "images come from a registry: aliquot image pull IMAGE"

/* What is not there yet, and what one does meanwhile. */
static const struct {
    const char *theirs, *instead;
} spelling_missing[] = {
    { "sbcast", COPY },
    { "build", REGISTRY },
    { "push", REGISTRY },
    { "load", REGISTRY },
    { "commit", REGISTRY },
    { "port", "aliquot session info SESSION shows its ports" },
    { "pause", "a session cannot be stopped and go on; aliquot rm SESSION ends it" },
    { "unpause", "a session cannot be stopped and go on; aliquot run begins another" },
    { "suspend", "a session cannot be stopped and go on; aliquot rm SESSION ends it" },
};

#define CORES "-r cpu=N"
#define MEMORY "-r mem=4g"
#define GPUS "-r cuda.shares=0.5 or, of whole ones, -r cuda.device=1"
#define PARTITION "--resource-group NAME"

/* Options of docker run, srun and kubectl run, where sessions are made. */
static const struct {
    const char *theirs, *ours;
} spelling_options[] = {
    { "--cpus", CORES },
    { "--cpus-per-task", CORES },
    { "-c", CORES },
    { "--ntasks-per-node", CORES },
    { "--ntasks", CORES " for the cores; --count N runs the command N times" },
    { "--memory", MEMORY },
    { "--mem", MEMORY },
    { "--mem-per-cpu", MEMORY },
    { "-m", MEMORY },
    { "--gpus", GPUS },
    { "--gres", GPUS },
    { "-G", GPUS },
    { "--gpus-per-node", GPUS },
    { "--gpus-per-task", GPUS },
    { "--nodes", "--cluster N" },
    { "-N", "--cluster N" },
    { "--array", "--count N" },
    { "-a", "--count N" },
    { "--job-name", "--name NAME" },
    { "--comment", "--tag TEXT" },
    { "--export", "--env NAME[=VALUE]" },
    { "--hold", "--starts-at TIME" },
    { "--wrap", "aliquot run --detach 'COMMAND'" },
    { "-J", "--name NAME" },
    { "--partition", PARTITION },
    { "--priority", "-p N; a partition is " PARTITION ", a port --port N" },
    { "--publish", "--port N" },
    { "--account", "--group PROJECT" },
    { "-A", "--group PROJECT" },
    { "--namespace", "--group PROJECT" },
    { "--time", "--timeout 10m" },
    { "--begin", "--starts-at TIME" },
    { "-b", "--starts-at TIME" },
    { "--dependency", "--after SESSION" },
    { "--nodelist", "--agent AGENT" },
    { "-w", "--agent AGENT; a directory is changed by the command: 'cd DIRECTORY && ...'" },
    { "--workdir", "a command that changes it: 'cd DIRECTORY && ...'" },
    { "-D", "a command that changes it: 'cd DIRECTORY && ...'" },
    { "--chdir", "a command that changes it: 'cd DIRECTORY && ...'" },
    { "--pty", "-it" },
    { "--stdin", "-i" },
    { "--network", "each container has a network of its own; --port N publishes a port" },
    { "--entrypoint", "the words of COMMAND, which are the program and its arguments" },
    { "--user", "programs run as the session's own user, not as another" },
    { "-u", "programs run as the session's own user, not as another" },
    { "--label", "--tag TEXT" },
    { "-l", "--tag TEXT" },
    { "--volume", "--mount FOLDER[:TARGET]; folders are made by aliquot folder create" },
};

static const struct cli_verb *spelling_get_verb(const char *name)
{
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}

/* The row with the most words of those at the front of argv. */
static const struct spelling *spelling_match(bool runs, int argc, char *const argv[],
                                             int *ret_words)
{
    const struct spelling *found = NULL;
    bool is_whole;

    *ret_words = 0;
    for (size_t i = 0; i < AQ_COUNT(spellings); i++) {
        int words = verb_match_words(spellings[i].theirs, argc, argv, &is_whole);

        if (!is_whole || words <= *ret_words || spellings[i].runs != runs)
            continue;
        found = &spellings[i];
        *ret_words = words;
    }
    return found;
}

/* The command of the noun argv[0 .. words) for the action argv[words]. */
static const struct cli_verb *spelling_find_action(int words, char *const argv[])
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    size_t noun_len;

    for (int i = 0; i < words; i++)
        strbuf_addf(&name, "%s ", argv[i]);
    noun_len = name.len;
    for (size_t i = 0; i < AQ_COUNT(spelling_actions); i++) {
        const struct cli_verb *verb;

        if (strcmp(spelling_actions[i].theirs, argv[words]) != 0)
            continue;
        strbuf_truncate(&name, noun_len);
        strbuf_adds(&name, spelling_actions[i].ours);
        verb = spelling_get_verb(name.data);
        if (verb)
            return verb;
    }
    return NULL;
}

const struct cli_verb *spelling_find(int argc, char *const argv[], int *ret_words)
{
    const struct spelling *found = spelling_match(true, argc, argv, ret_words);
    const struct cli_verb *verb;
    int words;

    if (found)
        return spelling_get_verb(found->ours);
    words = verb_noun_words(argc, argv);
    verb = words > 0 && words < argc ? spelling_find_action(words, argv) : NULL;
    *ret_words = verb ? words + 1 : 0;
    return verb;
}

const char *spelling_suggest(int argc, char *const argv[], int *ret_words)
{
    const struct spelling *found = spelling_match(false, argc, argv, ret_words);

    return found ? found->ours : NULL;
}

const char *spelling_find_missing(const char *word)
{
    for (size_t i = 0; i < AQ_COUNT(spelling_missing); i++)
        if (strcmp(spelling_missing[i].theirs, word) == 0)
            return spelling_missing[i].instead;
    return NULL;
}

const char *spelling_find_option(const char *option)
{
    for (size_t i = 0; i < AQ_COUNT(spelling_options); i++)
        if (strcmp(spelling_options[i].theirs, option) == 0)
            return spelling_options[i].ours;
    return NULL;
}

void spelling_write_all(struct strbuf *out)
{
    strbuf_adds(out, "Names of other programs, and ours. These work as they are:\n\n");
    for (size_t i = 0; i < AQ_COUNT(spellings); i++)
        if (spellings[i].runs)
            strbuf_addf(out, "  %-24s aliquot %s\n", spellings[i].theirs, spellings[i].ours);
    strbuf_adds(out, "\nFor these, type ours:\n\n");
    for (size_t i = 0; i < AQ_COUNT(spellings); i++)
        if (!spellings[i].runs)
            strbuf_addf(out, "  %-24s aliquot %s\n", spellings[i].theirs, spellings[i].ours);
    strbuf_adds(out, "\nThese are not there yet:\n\n");
    for (size_t i = 0; i < AQ_COUNT(spelling_missing); i++)
        strbuf_addf(out, "  %-24s %s\n", spelling_missing[i].theirs, spelling_missing[i].instead);
    strbuf_adds(out, "\nOptions of run and session create:\n\n");
    for (size_t i = 0; i < AQ_COUNT(spelling_options); i++)
        strbuf_addf(out, "  %-24s %s\n", spelling_options[i].theirs, spelling_options[i].ours);
    strbuf_adds(out, "\nAfter a noun (session, agent, image, admin user, ...):\n\n");
    for (size_t i = 0; i < AQ_COUNT(spelling_actions); i++)
        strbuf_addf(out, "  %-24s %s\n", spelling_actions[i].theirs, spelling_actions[i].ours);
}
